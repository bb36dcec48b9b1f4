import { type Envelope, memberOf } from './envelope.js'
import type { TriggerRecord } from './trigger-kind.js'

/** Is the trigger about this? Its scope has to be the same: one of no workspace does not see what happens in them. */
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

/** A value as filters write it: objects, lists and null are never equal to anything. */
function comparable(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value).toString() : String(value)
  return typeof value === 'string' || typeof value === 'boolean' ? String(value) : undefined
}
