import type { Contribution } from '../hooks/index.js'
import { operationId } from '../http/operation-id.js'
import type { BoundReconciler } from '../reconcile/kind-loop.js'
import { watchCycle } from '../reconcile/watch-cycle.js'
import type { Registries } from './registries.js'

/**
 * The first thing that a later plugin takes although it is taken: a kind, reconciler, route, command, error, event or path; or
 * the reconciler with which it closes a cycle of watches.
 */
export function duplicateOf(registries: Registries): { owner: string; error: string } | undefined {
  return (
    taken('kind', registries.kinds.collect(), kind => kind.name) ??
    taken('reconciler of', registries.reconcilers.collect(), reconciler => reconciler.kind) ??
    taken(
      'route',
      registries.routes.collect(),
      ({ route }) => `${route.method} ${route.path.replace(/\{[^}]+\}/g, '{}')}`,
    ) ??
    taken('operation', registries.routes.collect(), ({ route }) => operationId(route)) ??
    taken('command', registries.commands.collect(), command => command.path) ??
    taken('error', registries.errors.collect(), error => error.code) ??
    taken('event', registries.events.collect(), event => event.name) ??
    taken('setting', registries.settings.collect(), setting => setting.path) ??
    closed(watchCycle(registries.reconcilers.collect().map(({ entry }) => entry)))
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

/** Reconcilers in the order of their boot: `after` first, ties by kind. A cycle keeps the order of the kinds. */
export function kindOrder(reconcilers: readonly BoundReconciler[]): BoundReconciler[] {
  const rest = [...reconcilers].sort((a, b) => (a.kind < b.kind ? -1 : 1))
  const ordered: BoundReconciler[] = []
  while (rest.length > 0) {
    const waiting = new Set(rest.map(({ kind }) => kind))
    const at = Math.max(
      0,
      rest.findIndex(({ kind, after }) => !after.some(other => other !== kind && waiting.has(other))),
    )
    ordered.push(...rest.splice(at, 1))
  }
  return ordered
}
