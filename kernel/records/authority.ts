import type { Actor, Party } from '../contract/actor.js'
import { KernelErrors } from '../contract/errors.js'
import type { RecordScope } from '../contract/kind.js'
import type { RecordWrite, StoredRecord } from '../contract/record.js'

/** By what way a write comes: a record route, a service in the process, or the snapshot of a source. */
export type Way = 'route' | 'service' | 'snapshot'

/** Whether an actor's grants and largest scope cover a kind, and a scope where one is given. */
export function covers(actor: Actor, kind: string, scope?: RecordScope): boolean {
  const { grantedKinds = [], grantedScopes = [], maxScope } = actor
  const granted = (grants: readonly string[], wanted: string) =>
    grants.length === 0 ? actor.kind !== 'extension' : grants.includes(wanted)
  if (!granted(grantedKinds, kind)) return false
  if (!scope) return true
  if (maxScope?.kind === 'workspace' && (scope.kind !== 'workspace' || scope.id !== maxScope.id)) return false
  return granted(grantedScopes.map(alike), alike(scope.kind))
}

/** `user` and `global` mean the same. */
export const alike = (scope: RecordScope['kind']) => (scope === 'user' ? 'global' : scope)

/** What an actor may read: within its grants, and of an extension only what comes from it. `conditions` says it for lists. */
export function reads(actor: Actor, record: StoredRecord): boolean {
  return (actor.kind !== 'extension' || isFrom(record, actor.source)) && covers(actor, record.kind, record.scope)
}

export const isFrom = ({ source }: StoredRecord, party: Party) => source.kind === party.kind && source.id === party.id

/** Refuses who may not write records of this kind this way at all. */
export function checkActor(actor: Actor, kind: string, way: Way): void {
  if (actor.kind === 'extension' && way !== 'snapshot')
    throw KernelErrors.forbidden('an extension writes no single records; it publishes a snapshot of all that it has')
  if (!covers(actor, kind)) throw KernelErrors.not_granted(`${actor.id} has no grant for records of kind ${kind}`)
}

export function checkGrant(actor: Actor, kind: string, scope: RecordScope): void {
  if (covers(actor, kind, scope)) return
  const where = scope.id === undefined ? scope.kind : `${scope.kind} ${scope.id}`
  const granted = actor.maxScope?.id ?? ((actor.grantedScopes ?? []).join(', ') || 'none')
  throw KernelErrors.not_granted(
    `${actor.id} has no grant for records of kind ${kind} in scope ${where}; granted: ${granted}`,
  )
}

/** A stored record is changed and removed by its source only, within that actor's grants. */
export function checkSource(actor: Actor, before: StoredRecord): void {
  if (!isFrom(before, actor.source)) {
    throw KernelErrors.source_mismatch(
      `this record comes from ${before.source.kind}/${before.source.id} and can be changed only by it`,
    )
  }
  checkGrant(actor, before.kind, before.scope)
}

/** Who will own what is written; stamped anew by every write. */
export function ownerOf(actor: Actor, write: RecordWrite): Party {
  if (write.owner && actor.kind !== 'daemon')
    throw KernelErrors.forbidden('only the daemon and its plugins may say who owns a record')
  return write.owner ?? (actor.kind === 'extension' ? actor.source : actor.owner)
}
