import type { BoundReconciler } from './bound.js'

type Watching = Pick<BoundReconciler, 'owner' | 'kind'> & { readonly watches: readonly { readonly kind: string }[] }

/**
 * The first reconciler that closes a cycle of watches with earlier ones: its owner, and the cycle as a path of kinds. Reconcilers
 * of `fresh` owners come last, so that they are blamed.
 */
export function watchCycle(
  reconcilers: readonly Watching[],
  fresh: ReadonlySet<string> = new Set(),
): { owner: string; path: string[] } | undefined {
  const watched = new Map<string, readonly string[]>()
  const inOrder = [...reconcilers].sort((a, b) => Number(fresh.has(a.owner)) - Number(fresh.has(b.owner)))
  for (const { owner, kind, watches } of inOrder) {
    watched.set(
      kind,
      watches.map(watch => watch.kind),
    )
    const path = pathTo(kind, kind, watched)
    if (path) return { owner, path: [kind, ...path] }
  }
  return undefined
}

/** The recursion ends, because there is no cycle without the current reconciler. */
function pathTo(goal: string, from: string, watched: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  for (const next of watched.get(from) ?? []) {
    const rest = next === goal ? [] : pathTo(goal, next, watched)
    if (rest) return [next, ...rest]
  }
  return undefined
}

/** Reconcilers in boot order: `after` first, ties by kind. A cycle keeps the order of the kinds. */
export function bootOrder(reconcilers: readonly BoundReconciler[]): BoundReconciler[] {
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
