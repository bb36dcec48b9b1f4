import { clip } from '../../../../kernel/kit/text.js'
import { iso } from '../../../../kernel/plugin.js'
import type { LogEvent } from '../../../../schemas/daemon/logs.js'
import type { StoredEvent } from '../../../platform/events/api.js'

/** Characters of a summary. */
const SUMMARY = 300
/** Payload members with a description, best first. */
const TELLING = ['summary', 'message', 'error', 'reason', 'detail', 'title', 'text', 'note', 'name'] as const
/** Payload members that become members of the event. */
const COPIED = [
  'task_id',
  'run_id',
  'workflow_id',
  'provider',
  'parent_session_id',
  'root_session_id',
  'coordinator_session_id',
  'hook_event',
  'hook_name',
  'claim_token_hash',
  'release_reason',
  'scheduler_reason',
] as const
/** Endings of event types that report a failure, and such values of `status` or `severity`. */
const FAILURE =
  /(?:^|[._])(?:failed|failure|error|fail|crashed|hung|lost|dropped|damaged|degraded|auth_required|needs_attention)$/
const FAILED = /^(?:failed|failure|error|critical|crashed|degraded|needs_attention)$/

/** Looks up the agent and depth of a session. */
export type SessionOf = (
  id: string,
) => { readonly agentName: string; readonly lineage?: { readonly spawn_depth: number } | undefined } | undefined

type Payload = Readonly<Record<string, unknown>>

const payloadOf = ({ payload }: StoredEvent): Payload =>
  typeof payload === 'object' && payload !== null && !Array.isArray(payload) ? (payload as Payload) : {}
const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

/** Whether an event reports a failure. */
export function isFailure(event: StoredEvent): boolean {
  if (FAILURE.test(event.name)) return true
  const { status, to, severity, error } = payloadOf(event)
  return [status, to, severity].some(value => FAILED.test(`${value}`)) || textOf(error) !== undefined
}

/** Wire form of an event. */
export function logEventOf(event: StoredEvent, sessionOf: SessionOf): LogEvent {
  const payload = payloadOf(event)
  const { subject = '', scope, actor } = event
  const sessionId = textOf(payload.session_id) ?? (/^ses_/.test(subject) ? subject : '')
  const session = sessionId === '' ? undefined : sessionOf(sessionId)
  const wire: Partial<Record<keyof LogEvent, unknown>> = {
    id: event.id,
    seq: event.seq,
    timestamp: iso(event.at),
    type: event.name,
    component: event.name.split('.')[0],
    agent_name: textOf(payload.agent_name) ?? textOf(payload.agent) ?? session?.agentName ?? '',
    session_id: sessionId,
    spawn_depth: depthOf(payload, session),
    actor_kind: actor.kind,
    actor_id: actor.id,
    content: event.payload,
  }
  const workspace = textOf(payload.workspace_id) ?? scope
  if (workspace !== undefined) wire.workspace_id = workspace
  for (const name of COPIED) {
    const value = textOf(payload[name])
    if (value !== undefined) wire[name] = value
  }
  if (wire.task_id === undefined && /^task_/.test(subject)) wire.task_id = subject
  const outcome = textOf(payload.outcome) ?? textOf(payload.status) ?? textOf(payload.to)
  if (outcome !== undefined) wire.outcome = outcome
  wire.summary = summaryOf(event, payload)
  return wire as LogEvent
}

function depthOf({ spawn_depth: depth }: Payload, session: ReturnType<SessionOf>): number {
  return typeof depth === 'number' && Number.isInteger(depth) ? depth : (session?.lineage?.spawn_depth ?? 0)
}

/** Summary of an event in one line: its subject and the text of its payload. */
function summaryOf({ subject }: StoredEvent, payload: Payload): string {
  const words = TELLING.map(name => textOf(payload[name])).find(text => text !== undefined)
  const status = textOf(payload.status) ?? textOf(payload.to)
  const parts = [subject, status === words ? undefined : status, words]
  return clip(
    parts
      .filter(part => part !== undefined && part !== '')
      .join(': ')
      .replace(/\s+/g, ' '),
    SUMMARY,
  )
}
