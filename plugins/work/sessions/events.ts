import { iso } from '../../../kernel/plugin.js'
import type { SessionEvent } from '../../../schemas/sessions.js'
import type { EventContent } from '../acp/api.js'
import type { SessionFailure, StopReason } from './api.js'
import type { SessionRow } from './table.js'

export type { EventContent }

/** Types of the stored events that this plugin writes. */
export type SessionEventType =
  | 'user_message'
  | 'agent_message'
  | 'thought'
  | 'tool_call'
  | 'tool_result'
  | 'plan'
  | 'permission'
  | 'usage'
  | 'runtime_progress'
  | 'runtime_warning'
  | 'transcript_marker.created'
  | 'session.compaction_fired'
  | 'system'
  | 'done'
  | 'error'
  | 'session_stopped'
  | 'hook_run'

/** Schema name of the member `content`. */
const CONTENT_SCHEMA = 'svc.session.event.v1'

/** An event before it is written to the journal. */
export interface NewEvent {
  readonly type: SessionEventType
  /** Empty outside of turns. */
  readonly turnId: string
  readonly content: EventContent
  readonly failure?: SessionFailure | undefined
  readonly stopReason?: StopReason | undefined
  readonly stopDetail?: string | undefined
  /** ID of the event or request that led to it; part of notifications, not of the journal. */
  readonly cause?: string | null | undefined
}

/** An event as it is stored in the journal. */
export interface StoredSessionEvent extends Omit<NewEvent, 'type'> {
  readonly sequence: number
  /** `evt_` and 16 hex. */
  readonly id: string
  /** A {@link SessionEventType}, unless another version of this plugin wrote it. */
  readonly type: string
  /** Epoch milliseconds. */
  readonly at: number
}

/** Bytes of one journal record. Strings are stored as JSON, so that a person can read the files. */
export function encodeEvent(event: NewEvent, id: string, at: number): Uint8Array {
  const { type, turnId, content, failure, stopReason, stopDetail } = event
  return Buffer.from(
    JSON.stringify({
      id,
      type,
      turn_id: turnId,
      timestamp: iso(at),
      content: { schema: CONTENT_SCHEMA, ...content },
      ...(failure && { failure: failureToWire(failure) }),
      ...(stopReason && { stop_reason: stopReason }),
      ...(stopDetail && { stop_detail: stopDetail }),
    }),
  )
}

/** The event of a journal record. An unreadable record becomes an event of type `system` that says so. */
export function decodeEvent(sequence: number, payload: Uint8Array): StoredSessionEvent {
  const raw = parse(payload)
  const text = (name: string) => (typeof raw?.[name] === 'string' ? (raw[name] as string) : undefined)
  const content = isObject(raw?.content) ? raw.content : { note: 'this record cannot be read' }
  const failure = isObject(raw?.failure) ? raw.failure : undefined
  const stopReason = text('stop_reason')
  const stopDetail = text('stop_detail')
  const at = Date.parse(text('timestamp') ?? '')
  return {
    sequence,
    id: text('id') ?? `evt_${sequence.toString(16).padStart(16, '0')}`,
    type: text('type') ?? 'system',
    turnId: text('turn_id') ?? '',
    at: Number.isNaN(at) ? 0 : at,
    content,
    ...(failure && {
      failure: {
        kind: String(failure.kind) as SessionFailure['kind'],
        summary: String(failure.summary ?? ''),
        ...(failure.crash_bundle_path ? { crashBundlePath: String(failure.crash_bundle_path) } : {}),
      },
    }),
    ...(stopReason && { stopReason: stopReason as StopReason }),
    ...(stopDetail && { stopDetail }),
  }
}

/** A failure under its names on the wire. */
export function failureToWire(failure: SessionFailure) {
  return {
    kind: failure.kind,
    summary: failure.summary,
    ...(failure.crashBundlePath && { crash_bundle_path: failure.crashBundlePath }),
  }
}

/** A stored event under its names on the wire. */
export function eventToWire(event: StoredSessionEvent, row: SessionRow): SessionEvent {
  return {
    id: event.id,
    sequence: event.sequence,
    type: event.type,
    turn_id: event.turnId,
    timestamp: iso(event.at),
    agent_name: row.agent_name,
    content: event.content,
    session_id: row.id,
    spawn_depth: 0,
    workspace_id: row.workspace_id,
    workspace_path: row.workspace_path,
    ...(event.failure && { failure: failureToWire(event.failure) }),
    ...(event.stopReason && { stop_reason: event.stopReason }),
    ...(event.stopDetail && { stop_detail: event.stopDetail }),
  }
}

function parse(payload: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString())
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Events `from` to `to`, ascending, with one marker for each range that the damaged journal lost. */
export function withGaps(events: readonly StoredSessionEvent[], from: number, to: number): StoredSessionEvent[] {
  const whole: StoredSessionEvent[] = []
  let next = from
  let at = events[0]?.at ?? 0
  const fill = (until: number) => {
    if (next < until) whole.push(gapEvent(next, until - 1, at))
  }
  for (const event of events) {
    fill(event.sequence)
    whole.push(event)
    next = event.sequence + 1
    at = event.at
  }
  fill(to + 1)
  return whole
}

/** The marker has the sequence of the last lost event, so that a reader continues after the gap. */
function gapEvent(first: number, last: number, at: number): StoredSessionEvent {
  const content = { reason: 'journal_damaged', from_sequence: first, to_sequence: last }
  return { sequence: last, id: `gap_${first}_${last}`, type: 'transcript_marker.gap', turnId: '', at, content }
}
