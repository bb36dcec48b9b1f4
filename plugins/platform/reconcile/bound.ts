import type { Bound } from '../../../kernel/platform.js'
import type { Batch, Contribution, Reconciler, Scope, StoredRecord } from '../../../kernel/plugin.js'

/** A reconciler with its service bound and its types erased. */
export interface BoundReconciler {
  readonly owner: string
  readonly scope: Scope
  readonly kind: string
  readonly after: readonly string[]
  readonly watches: readonly { readonly kind: string; readonly keys: (record: StoredRecord) => readonly string[] }[]
  readonly projected?: (() => ReadonlyMap<string, number>) | undefined
  readonly run: (batch: Batch<unknown>, signal: AbortSignal) => unknown
}

/** The reconciler of a surface, with kinds by their names. */
export function bound({ owner, entry }: Contribution<Bound<Reconciler<unknown, unknown>>>): BoundReconciler {
  const { scope, self: service } = entry
  const { kind, after = [], watches = [], projected, run } = entry.entry
  return {
    owner,
    scope,
    kind: kind.name,
    after: after.map(({ name }) => name),
    watches: watches.map(watch => ({ kind: watch.kind.name, keys: record => watch.keys(service, record) })),
    ...(projected ? { projected: () => projected(service) } : {}),
    run: run.bind(undefined, service),
  }
}
