import { isDeepStrictEqual } from 'node:util'
import type { ToolCallFields } from '../../acp/api.js'
import type { NewEvent } from '../events.js'
import { boundValue } from '../journal/bounds.js'

/** Remembered calls of one turn; the oldest finished ones are removed first. */
const MAX_CALLS = 500

/** Characters of a content that are never cut for the journal, and the number of larger contents kept. */
const MIN_KEPT = 64 * 1024
const MAX_KEPT = 8

const ENDED: ReadonlySet<string> = new Set(['completed', 'failed'])

/** The current state of a tool call; missing members have a plain default. */
export interface ToolCall {
  readonly id: string
  readonly title: string
  readonly kind: string
  readonly status: string
  readonly fields: Partial<ToolCallFields>
  /** The call has ended and its output was recorded. */
  readonly isRecorded: boolean
}

/**
 * The tool calls of one turn. Agents repeat themselves, begin with an update or omit members: each update is merged into the known
 * state, and only a change becomes an event.
 */
export class ToolCalls {
  readonly #calls = new Map<string, ToolCall>()
  /** Uncut contents of open calls whose journal event was cut. */
  readonly #diffs = new Map<string, NonNullable<ToolCallFields['content']>>()

  /** Number of calls that have begun. */
  startedCount = 0

  /** The call that the last update ended, with its fields, which are not kept; undefined: the update ended none. */
  ended: ToolCall | undefined

  get(id: string): ToolCall | undefined {
    return this.#calls.get(id)
  }

  /** The state of an open call with uncut diffs, because a person may be asked about it. */
  whole(id: string): Partial<ToolCallFields> | undefined {
    const call = this.#calls.get(id)
    const content = this.#diffs.get(id)
    return call && (content ? { ...call.fields, content } : call.fields)
  }

  /** The most recent open call. */
  get current(): ToolCall | undefined {
    return [...this.#calls.values()].findLast(isOpen)
  }

  /** Merges a `tool_call` or `tool_call_update`; returns its events, without those that repeat known state. */
  take(turnId: string, update: ToolCallFields): NewEvent[] {
    const before = this.#calls.get(update.toolCallId)
    if (!before) this.startedCount++
    const call = merge(before, update)
    this.ended = undefined
    if (before && ENDED.has(before.status)) {
      // A late `pending` does not reopen a call, and a result is recorded again only when the first one was empty.
      if (before.isRecorded || !hasOutput(call)) return []
      this.#remember(light(call))
      this.ended = call
      return [event('tool_result', turnId, call)]
    }
    const ended = ENDED.has(call.status)
    this.#keepDiffs(update, ended)
    this.#remember(ended ? light(call) : call)
    const events: NewEvent[] = []
    // The first update of a call may already be its result.
    if (!before || (!ended && tellsMore(before, call))) events.push(event('tool_call', turnId, call))
    if (ended) {
      events.push(event('tool_result', turnId, call))
      this.ended = call
    }
    return events
  }

  /** Synthetic results for open calls that can no longer end. */
  abandon(turnId: string, reason: string): NewEvent[] {
    const open = [...this.#calls.values()].filter(isOpen)
    for (const call of open) this.#calls.set(call.id, { ...call, status: 'failed' })
    return open.map(({ id, title, kind }) => syntheticResult(turnId, { id, title, kind }, reason))
  }

  #keepDiffs({ toolCallId, content }: ToolCallFields, isOver: boolean): void {
    if (content || isOver) this.#diffs.delete(toolCallId)
    if (isOver || !content?.some(({ type }) => type === 'diff')) return
    const size = (blocks: typeof content) => JSON.stringify(blocks).length
    if (size(content) <= MIN_KEPT) return
    this.#diffs.set(toolCallId, content)
    for (const oldest of this.#diffs.keys()) if (this.#diffs.size > MAX_KEPT) this.#diffs.delete(oldest)
  }

  #remember(call: ToolCall): void {
    this.#calls.set(call.id, call)
    if (this.#calls.size <= MAX_CALLS) return
    const [oldest] = this.#calls.keys()
    this.#calls.delete(this.#firstOver() ?? oldest!)
  }

  #firstOver(): string | undefined {
    for (const call of this.#calls.values()) if (!isOpen(call)) return call.id
    return undefined
  }
}

const isOpen = ({ status }: ToolCall) => !ENDED.has(status)

/** The result of a call whose agent will not send one. */
export function syntheticResult(
  turnId: string,
  call: { readonly id: string; readonly title: string; readonly kind: string },
  reason: string,
): NewEvent {
  const { id, title, kind } = call
  const content = { tool_call_id: id, title, kind, status: 'failed', synthetic: true, error: reason }
  return { type: 'tool_result', turnId, content }
}

function merge(before: ToolCall | undefined, update: ToolCallFields): ToolCall {
  const present = Object.fromEntries(
    Object.entries(update).filter(([, value]) => value !== undefined && value !== null),
  )
  const fields: Partial<ToolCallFields> = { ...before?.fields, ...(boundValue(present) as Partial<ToolCallFields>) }
  const status = before && ENDED.has(before.status) ? before.status : fields.status
  const kind = fields.kind ?? 'other'
  return {
    id: update.toolCallId,
    title: fields.title ?? fields.name ?? (kind === 'other' ? 'tool call' : kind),
    kind,
    status: status ?? 'pending',
    fields,
    isRecorded: false,
  }
}

/** The kept part of a finished call. */
function light(call: ToolCall): ToolCall {
  return { ...call, fields: {}, isRecorded: hasOutput(call) }
}

function hasOutput({ fields }: ToolCall): boolean {
  return (fields.content?.length ?? 0) > 0 || fields.rawOutput !== undefined
}

/** Whether the update has visible progress; growing output is recorded once, with the result. */
function tellsMore(before: ToolCall, after: ToolCall): boolean {
  const head = ({ title, kind, status, fields }: ToolCall) => [title, kind, status, fields.rawInput, fields.locations]
  return !isDeepStrictEqual(head(before), head(after))
}

function event(type: 'tool_call' | 'tool_result', turnId: string, call: ToolCall): NewEvent {
  const { content, locations, rawInput, rawOutput, name } = call.fields
  return {
    type,
    turnId,
    content: {
      tool_call_id: call.id,
      title: call.title,
      kind: call.kind,
      status: call.status,
      ...(name !== undefined && { name }),
      ...(rawInput !== undefined && { raw_input: rawInput }),
      ...(locations !== undefined && { locations }),
      ...(content !== undefined && { content }),
      ...(rawOutput !== undefined && { raw_output: rawOutput }),
    },
  }
}
