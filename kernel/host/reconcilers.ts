import type { Scope } from '../contract/scope.js'
import type { BoundReconciler } from '../reconcile/kind-loop.js'
import type { ReconcileLoop } from '../reconcile/loop.js'
import type { Registries } from './registries.js'

/** Starts the reconcilers that do not run yet; each ends with the scope of its owner. Resolves when they have had their boot. */
export async function startReconcilers(
  registries: Registries,
  loop: ReconcileLoop,
  scopeOf: (owner: string) => Scope | undefined,
): Promise<void> {
  const running = new Set(loop.health().map(({ kind }) => kind))
  const all = registries.reconcilers.collect().map(({ entry }) => entry)
  for (const reconciler of kindOrder(all.filter(({ kind }) => !running.has(kind)))) {
    const { kind, owner } = reconciler
    scopeOf(owner)?.defer(`reconciler ${kind}`, () => loop.remove(kind))
    await loop.add(reconciler)
  }
}

/** Reconcilers in the order of their boot: `after` first, ties by kind. A cycle keeps the order of the kinds. */
function kindOrder(reconcilers: readonly BoundReconciler[]): BoundReconciler[] {
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
