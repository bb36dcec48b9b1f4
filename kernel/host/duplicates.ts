import type { Contribution } from '../hooks/index.js'
import type { BoundReconciler } from '../reconcile/loop.js'
import type { Registries } from './registries.js'

/** What two plugins have both taken, in plan order. */
export interface Duplicate {
  /** `route GET /api/things` */
  readonly what: string
  readonly owners: readonly [string, string]
}

/** The first kind, reconciler, route, command, error, event or path that is taken twice. */
export function duplicateOf(registries: Registries): Duplicate | undefined {
  return (
    taken('kind', registries.kinds.collect(), kind => kind.name) ??
    taken('reconciler of', registries.reconcilers.collect(), reconciler => reconciler.kind) ??
    taken(
      'route',
      registries.routes.collect(),
      ({ route }) => `${route.method} ${route.path.replace(/\{[^}]+\}/g, '{}')}`,
    ) ??
    taken('command', registries.commands.collect(), command => command.path) ??
    taken('error', registries.errors.collect(), error => error.code) ??
    taken('event', registries.events.collect(), event => event.name) ??
    taken('setting', registries.settings.collect(), setting => setting.path)
  )
}

function taken<T>(what: string, all: readonly Contribution<T>[], keyOf: (entry: T) => string): Duplicate | undefined {
  const first = new Map<string, string>()
  for (const { owner, entry } of all) {
    const key = keyOf(entry)
    const holder = first.get(key)
    if (holder !== undefined) return { what: `${what} ${key}`, owners: [holder, owner] }
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
