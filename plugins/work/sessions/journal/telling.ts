import { clip } from '../../../../kernel/kit/text.js'
import { type EventContent, isProcessFailure } from '../../acp/api.js'
import type { NewEvent, SessionEventType } from '../events.js'
import type { LiveSession } from '../lifecycle/live-session.js'
import type { Recorded, SessionHooks } from '../points.js'

/** Callbacks for each event: before it is appended, and when it was passed to the file. */
export interface EventListeners {
  readonly recording?: (event: NewEvent) => void
  readonly recorded?: (event: NewEvent, sequence: number) => void
}

/** Characters of a message that are reported at its end. */
const WHOLE = 64 * 1024
/** These events end a message: text before and after them belongs to different messages. Other events are only notes. */
const ENDS: ReadonlySet<SessionEventType> = new Set<SessionEventType>([
  ...(['user_message', 'thought', 'tool_call', 'tool_result', 'plan', 'permission'] as const),
  ...(['done', 'error', 'session_stopped'] as const),
])

/** A message that may continue. */
interface OpenMessage {
  readonly turnId: string
  readonly content: EventContent
  text: string
}

/** Notifies the hooks of sessions about journal events. No caller waits for them. */
export class Telling {
  readonly #open = new Map<string, OpenMessage>()
  /** Source of the running turn, by session. */
  readonly #sources = new Map<string, string>()

  constructor(private readonly points: SessionHooks) {}

  recording(sessionId: string, { type, turnId, content }: NewEvent): void {
    if (type !== 'hook_run' && this.points.eventRecording.isUsed())
      void this.points.eventRecording.call({ sessionId, type, turnId, content })
  }

  recorded(sessionId: string, event: NewEvent, sequence: number): void {
    const { type, turnId, content, failure, cause } = event
    const isCrash = failure !== undefined && isProcessFailure(failure)
    // A hook on recorded events would otherwise record its own runs and be notified of them without end.
    if (type === 'hook_run') return
    const open = this.#open.get(sessionId)
    if (open && (ENDS.has(type) || open.turnId !== turnId)) this.#end(sessionId, open)
    if (type === 'agent_message') this.#piece(sessionId, event)
    if (type === 'user_message' && typeof content.source === 'string') this.#sources.set(sessionId, content.source)
    const source = this.#sources.get(sessionId)
    if (type === 'done' || type === 'error') this.#sources.delete(sessionId)
    const more = {
      ...(source !== undefined && { source }),
      ...(isCrash && { isCrash }),
      ...(cause != null && { cause }),
    }
    tellRecorded(this.points, { sessionId, type, turnId, content, sequence, ...more })
  }

  #piece(sessionId: string, { type, turnId, content }: NewEvent): void {
    const open = this.#open.get(sessionId)
    const text = typeof content.text === 'string' ? content.text : ''
    if (open) {
      open.text = clip(open.text + text, WHOLE)
      return
    }
    this.#open.set(sessionId, { turnId, content, text: clip(text, WHOLE) })
    void this.points.messageStart.call({ sessionId, type, turnId, content })
  }

  #end(sessionId: string, { turnId, content, text }: OpenMessage): void {
    this.#open.delete(sessionId)
    if (!this.points.messageEnd.isUsed()) return
    void this.points.messageEnd.call({ sessionId, type: 'agent_message', turnId, content: { ...content, text } })
  }
}

function tellRecorded(points: SessionHooks, record: Recorded): void {
  const { type, content } = record
  void points.eventRecorded.call(record)
  switch (type) {
    case 'user_message':
      void points.messagePersisted.call(record)
      void points.turnStart.call(record)
      break
    case 'agent_message':
      void points.messagePersisted.call(record)
      void points.messageDelta.call(record)
      break
    case 'tool_result':
      void (content.status === 'failed' ? points.toolPostError : points.toolPostCall).call(record)
      break
    case 'permission':
      if (content.status !== 'resolved') break
      void points.permissionResolved.call(record)
      if (!String(content.decision).startsWith('allow')) void points.permissionDenied.call(record)
      break
    case 'session.compaction_fired':
      void points.contextCompacted.call(record)
      break
    case 'done':
    case 'error':
      void points.turnEnd.call(record)
      break
  }
}

/** Records a hook run, without waiting. A session that is stopping or full is skipped, so that this cannot delay its end. */
export function noteHookRun(live: LiveSession | undefined, content: EventContent): void {
  if (!live || live.stopping || live.isFull || live.log.damage || live.row.state === 'stopped') return
  live.log.append({ type: 'hook_run', turnId: live.turn?.id ?? '', content })
}
