import type { Contribution } from '../contract/hook.js'
import type { Registry } from '../hooks/index.js'
import { operationId } from '../http/operation-id.js'
import { watchCycle } from '../reconcile/watch-cycle.js'
import type { Registries } from './registries.js'

/**
 * The first thing that a plugin takes although it is taken (a kind, reconciler, route, command, error, event or path), or the
 * reconciler that closes a cycle of watches. Of two the later loses: those that are `fresh` come after all others.
 */
export function duplicateOf(
  registries: Registries,
  fresh: ReadonlySet<string>,
): { owner: string; error: string } | undefined {
  const inOrder = <T>(entries: readonly Contribution<T>[]) =>
    [...entries].sort((a, b) => Number(fresh.has(a.owner)) - Number(fresh.has(b.owner)))
  const all = <T>(registry: Registry<T>) => inOrder(registry.collect())
  const routes = all(registries.routes)
  const commands = inOrder([
    ...registries.commands.collect().map(({ owner, entry }) => ({ owner, entry: entry.path })),
    ...routes.flatMap(({ owner, entry }) => (entry.route.cli ? [{ owner, entry: entry.route.cli.path }] : [])),
  ])
  const reconcilers = all(registries.reconcilers)
  return (
    taken('kind', all(registries.kinds), kind => kind.name) ??
    taken('reconciler of', reconcilers, reconciler => reconciler.kind) ??
    taken('route', routes, ({ route }) => `${route.method} ${route.path.replace(/\{[^}]+\}/g, '{}')}`) ??
    taken('operation', routes, ({ route }) => operationId(route)) ??
    taken('command', commands, path => path) ??
    taken('error', all(registries.errors), error => error.code) ??
    taken('event', all(registries.events), event => event.name) ??
    taken('setting', all(registries.settings), setting => setting.path) ??
    closed(watchCycle(reconcilers.map(({ entry }) => entry)))
  )
}

const closed = (cycle: ReturnType<typeof watchCycle>) =>
  cycle && { owner: cycle.owner, error: `its reconciler closes a cycle of watches: ${cycle.path.join(' → ')}` }

function taken<T>(what: string, all: readonly Contribution<T>[], keyOf: (entry: T) => string) {
  const first = new Map<string, string>()
  for (const { owner, entry } of all) {
    const key = keyOf(entry)
    const holder = first.get(key)
    if (holder !== undefined) return { owner, error: `the ${what} ${key} belongs to ${holder} already` }
    first.set(key, owner)
  }
  return undefined
}
