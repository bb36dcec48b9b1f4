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
    const path = pathTo(kind, kind, watched, new Set())
    if (path) return { owner, path: [kind, ...path] }
  }
  return undefined
}

function pathTo(
  goal: string,
  from: string,
  watched: ReadonlyMap<string, readonly string[]>,
  seen: Set<string>,
): string[] | undefined {
  for (const next of watched.get(from) ?? []) {
    if (next === goal) return [next]
    if (seen.has(next)) continue
    seen.add(next)
    const rest = pathTo(goal, next, watched, seen)
    if (rest) return [next, ...rest]
  }
  return undefined
}
