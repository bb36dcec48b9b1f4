import { type Envelope, memberOf } from './envelope.js'
import type { TriggerRecord } from './trigger-kind.js'

/** Whether the trigger matches. The scope must be equal: a global trigger does not see events of workspaces. */
export function matches({ spec, scope }: TriggerRecord, envelope: Envelope): boolean {
  return (
    spec.event === envelope.kind &&
    scope.id === envelope.workspaceId &&
    Object.entries(spec.filter ?? {}).every(([key, wanted]) => comparable(memberOfKey(key, envelope)) === wanted)
  )
}

function memberOfKey(key: string, envelope: Envelope): unknown {
  const [name = '', ...below] = key.split('.')
  const { kind, scope, workspaceId, source, data } = envelope
  return memberOf({ kind, scope, workspace_id: workspaceId, source, data }, [name, ...below])
}

/** A value as filters compare it: objects, arrays and null never match. */
function comparable(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value).toString() : String(value)
  return typeof value === 'string' || typeof value === 'boolean' ? String(value) : undefined
}
