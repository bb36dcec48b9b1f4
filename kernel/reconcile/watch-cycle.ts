import type { BoundReconciler } from './kind-loop.js'

type Watching = Pick<BoundReconciler, 'owner' | 'kind'> & { readonly watches: readonly { readonly kind: string }[] }

/** The first reconciler that closes a cycle of watches with those before it: its owner, and the cycle as a path of kinds. */
export function watchCycle(reconcilers: readonly Watching[]): { owner: string; path: string[] } | undefined {
  const watched = new Map<string, readonly string[]>()
  for (const { owner, kind, watches } of reconcilers) {
    watched.set(
      kind,
      watches.map(watch => watch.kind),
    )
    const path = pathTo(kind, kind, watched)
    if (path) return { owner, path: [kind, ...path] }
  }
  return undefined
}

/** Ends, for without the reconciler that is asked about there is no cycle. */
function pathTo(goal: string, from: string, watched: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  for (const next of watched.get(from) ?? []) {
    const rest = next === goal ? [] : pathTo(goal, next, watched)
    if (rest) return [next, ...rest]
  }
  return undefined
}
