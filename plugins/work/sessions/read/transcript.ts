import { clip } from '../../../../kernel/kit/text.js'
import type { TranscriptEntry } from '../../../../schemas/sessions.js'
import type { StoredSessionEvent } from '../events.js'
import type { SessionLog } from '../journal/session-log.js'

type Part = TranscriptEntry['message']['parts'][number]

/** Parts of one message, characters of one text: an entry goes to its readers whole, so it must not grow for ever. */
const MAX_PARTS = 2000
const MAX_TEXT = 1024 * 1024
/** Characters of the inputs and outputs of tools in one message; later ones are only named. */
const MAX_TOOL_DATA = 4 * 1024 * 1024

const QUIET: ReadonlySet<string> = new Set(['done', 'usage', 'hook_run'])
const ALONE: ReadonlySet<string> = new Set(['user_message', 'system', 'session_stopped'])

interface OpenEntry {
  readonly id: string
  readonly role: 'user' | 'assistant' | 'system'
  readonly turnId: string
  readonly start: number
  readonly parts: Part[]
  /** Parts that later events change, by what they are about. */
  readonly byKey: Map<string, number>
  metadata: Record<string, unknown> | undefined
  sequence: number
  toolData: number
}

/** Folds events, in order, into messages as a person sees them: only the last one can still change. */
export class TranscriptFolder {
  #open: OpenEntry | undefined

  /** Takes one event in; returns the entry that it made or changed. */
  take(event: StoredSessionEvent): TranscriptEntry | undefined {
    if (standsAlone(event)) {
      this.#open = undefined
      return entryOf(aloneEntry(event))
    }
    const continues = this.#open?.turnId === event.turnId
    // The end of a turn that said nothing is no message, nor is a hook.
    if (!continues && QUIET.has(event.type)) return undefined
    if (!continues || !this.#open) this.#open = openEntry(event, 'assistant')
    addTo(this.#open, event)
    this.#open.sequence = event.sequence
    return entryOf(this.#open)
  }
}

/** One page of the transcript: the newest entries before a sequence. */
export interface TranscriptPage {
  readonly entries: TranscriptEntry[]
  readonly hasOlder: boolean
  readonly nextBefore: number | undefined
  readonly maxSequence: number
}

/** The newest `limit` entries made of events before `before`, ascending. */
export async function readPage(log: SessionLog, limit: number, before?: number): Promise<TranscriptPage> {
  const maxSequence = log.last
  const end = Math.min(before ?? maxSequence + 1, maxSequence + 1)
  const start = await startOfEntries(log, end, limit)
  const entries = await foldRange(log, start, end - 1)
  const hasOlder = start > Math.max(log.first, 1)
  return { entries, hasOlder, nextBefore: hasOlder ? start : undefined, maxSequence }
}

/** Sequence at which the entry begins that the event before `end` belongs to; `end` when there is none. */
export function startOfLastEntry(log: SessionLog, end: number): Promise<number> {
  return startOfEntries(log, end, 1)
}

/** Entries of the events `from` to `to`, ascending. */
async function foldRange(log: SessionLog, from: number, to: number): Promise<TranscriptEntry[]> {
  const folder = new TranscriptFolder()
  const entries = new Map<string, TranscriptEntry>()
  for await (const event of log.range(from, to)) {
    const entry = folder.take(event)
    if (entry) entries.set(entry.message.id, entry)
  }
  return [...entries.values()]
}

/** The conversation before a sequence in words, for an agent that cannot load it: at most `max` characters, newest last. */
export async function summarize(log: SessionLog, max: number, before?: number): Promise<string> {
  const { entries } = await readPage(log, 40, before)
  const lines = entries.flatMap(({ message }) =>
    message.parts.flatMap(part => {
      if (part.type === 'text' && part.text) return [`${message.role}: ${part.text.trim()}`]
      if (part.type === 'dynamic-tool') return [`tool: ${part.title ?? part.toolName} (${part.state})`]
      return []
    }),
  )
  const kept: string[] = []
  let left = max
  for (const line of lines.reverse()) {
    const piece = line.length > 4000 ? `${clip(line, 4000)}…` : line
    if (piece.length > left) break
    left -= piece.length
    kept.unshift(piece)
  }
  return kept.join('\n\n')
}

/** Walks back over `count` entries; only positions are kept, however long an entry is. */
async function startOfEntries(log: SessionLog, end: number, count: number): Promise<number> {
  let start = end
  let entries = 0
  let later: StoredSessionEvent | undefined
  for await (const event of log.backwards(end)) {
    const sameAsLater = later && !standsAlone(event) && !standsAlone(later) && later.turnId === event.turnId
    if (!sameAsLater && ++entries > count) break
    start = event.sequence
    later = event
  }
  return start
}

function standsAlone({ type }: StoredSessionEvent): boolean {
  return ALONE.has(type) || type.startsWith('transcript_marker.')
}

function openEntry(event: StoredSessionEvent, role: OpenEntry['role']): OpenEntry {
  const { id, turnId, sequence } = event
  return { id, role, turnId, start: sequence, sequence, parts: [], byKey: new Map(), metadata: undefined, toolData: 0 }
}

function aloneEntry(event: StoredSessionEvent): OpenEntry {
  const { type, content } = event
  const entry = openEntry(event, type === 'user_message' ? 'user' : 'system')
  if (type === 'user_message') entry.parts.push({ type: 'text', text: textOf(content.text) })
  else {
    const stop = event.stopReason && { stop_reason: event.stopReason, stop_detail: event.stopDetail }
    entry.parts.push({ type: `data-${type}`, data: { ...content, ...stop } })
  }
  return entry
}

function addTo(entry: OpenEntry, event: StoredSessionEvent): void {
  const { type, content } = event
  switch (type) {
    case 'agent_message':
      if (typeof content.text === 'string') addText(entry, 'text', content.text)
      else addPart(entry, { type: 'data-block', data: content.block })
      break
    case 'thought':
      addText(entry, 'reasoning', textOf(content.text))
      break
    case 'tool_call':
    case 'tool_result':
      setPart(entry, `tool ${content.tool_call_id}`, before => boundedTool(entry, toolPart(type, content, before)))
      break
    case 'plan':
      setPart(entry, 'plan', () => ({ type: 'data-plan', data: { entries: content.entries } }))
      break
    case 'permission':
      setPart(entry, `permission ${content.request_id}`, before => ({
        type: 'data-permission',
        id: textOf(content.request_id),
        state: textOf(content.status),
        data: { ...(before?.data as object | undefined), ...content, turn_id: event.turnId },
      }))
      break
    case 'usage':
      entry.metadata = { ...entry.metadata, usage: content.usage }
      break
    case 'done':
      entry.metadata = { ...entry.metadata, status: content.status, stop_reason: content.stop_reason }
      break
    case 'error':
      entry.metadata = { ...entry.metadata, status: 'failed' }
      addPart(entry, { type: 'data-error', errorText: textOf(content.error), data: event.failure ?? {} })
      break
    default:
      addPart(entry, { type: `data-${type}`, data: content })
  }
}

function addText(entry: OpenEntry, type: 'text' | 'reasoning', text: string): void {
  const last = entry.parts.at(-1)
  if (last?.type !== type) {
    addPart(entry, { type, text: clip(text, MAX_TEXT) })
    return
  }
  const room = MAX_TEXT - (last.text?.length ?? 0)
  if (room > 0) entry.parts[entry.parts.length - 1] = { ...last, text: last.text + clip(text, room) }
}

function addPart(entry: OpenEntry, part: Part): void {
  if (entry.parts.length < MAX_PARTS) entry.parts.push(part)
}

function setPart(entry: OpenEntry, key: string, make: (before: Part | undefined) => Part): void {
  const index = entry.byKey.get(key)
  if (index !== undefined) {
    entry.parts[index] = make(entry.parts[index])
    return
  }
  if (entry.parts.length >= MAX_PARTS) return
  entry.byKey.set(key, entry.parts.length)
  entry.parts.push(make(undefined))
}

function boundedTool(entry: OpenEntry, part: Part): Part {
  entry.toolData += JSON.stringify([part.input, part.output]).length
  if (entry.toolData <= MAX_TOOL_DATA) return part
  const { input: _input, output: _output, ...head } = part
  return head
}

function toolPart(type: string, content: StoredSessionEvent['content'], before: Part | undefined): Part {
  const failed = content.status === 'failed'
  const ended = type === 'tool_result'
  const input = content.raw_input ?? before?.input
  const output = { ...(content.content !== undefined && { content: content.content }) }
  return {
    type: 'dynamic-tool',
    toolCallId: textOf(content.tool_call_id),
    toolName: textOf(content.name ?? content.kind),
    title: textOf(content.title),
    state: ended ? (failed ? 'output-error' : 'output-available') : 'input-available',
    ...(input !== undefined && { input }),
    ...(ended && { output: { ...output, ...(content.raw_output !== undefined && { raw: content.raw_output }) } }),
    ...(ended && failed && { errorText: textOf(content.error ?? 'failed') }),
  }
}

function entryOf(entry: OpenEntry): TranscriptEntry {
  const { id, role, parts, metadata, start, sequence } = entry
  return {
    message: { id, role, parts: [...parts], ...(metadata && { metadata }) },
    sequence,
    start_sequence: start,
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
}
