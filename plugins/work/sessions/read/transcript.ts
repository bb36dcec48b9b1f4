import { clip } from '../../../../kernel/kit/text.js'
import type { TranscriptEntry } from '../../../../schemas/sessions.js'
import type { StoredSessionEvent } from '../events.js'
import { standsAlone } from '../journal/entry-index.js'
import type { SessionLog } from '../journal/session-log.js'

type Part = TranscriptEntry['message']['parts'][number]

/**
 * Limits of the newest parts of one message and of the characters of one text: readers get the whole entry, so it must stay
 * bounded.
 */
const MAX_PARTS = 2000
/** Events at the beginning of a message whose parts are kept; a `data-omitted` part separates them from the newest parts. */
const HEAD_EVENTS = 200
/** Events up to which a message is read whole. */
const WHOLE_EVENTS = 5000
const MAX_TEXT = 1024 * 1024
/** Characters of the tool inputs and outputs of one message; later ones keep only their names. */
const MAX_TOOL_DATA = 4 * 1024 * 1024

/** Types of events that can each create a part. */
const MAKES_PARTS: ReadonlySet<string> = new Set([
  'agent_message',
  'thought',
  'tool_call',
  'permission',
  'error',
  'runtime_warning',
  'runtime_progress',
])
const QUIET: ReadonlySet<string> = new Set(['done', 'usage', 'hook_run'])

interface OpenEntry {
  readonly id: string
  readonly role: 'user' | 'assistant' | 'system'
  readonly turnId: string
  readonly start: number
  /** Parts by the key with which later events update them; a number for parts without updates. */
  readonly head: Map<string | number, Part>
  /** The newest parts, in ascending order. */
  readonly tail: Map<string | number, Part>
  newest: string | number | undefined
  /** Parts between the two were left out. */
  isCut: boolean
  metadata: Record<string, unknown> | undefined
  sequence: number
  toolData: number
  keys: number
}

/** Folds events in order into messages for people; only the last message can still change. */
export class TranscriptFolder {
  #open: OpenEntry | undefined

  /** Folds one event; returns the entry that it created or changed. */
  take(event: StoredSessionEvent): TranscriptEntry | undefined {
    if (standsAlone(event.type)) {
      this.#open = undefined
      return entryOf(aloneEntry(event))
    }
    const continues = this.#open?.turnId === event.turnId
    // The end of a turn without output creates no message; neither does a hook run.
    if (!continues && QUIET.has(event.type)) return undefined
    if (!continues || !this.#open) this.#open = openEntry(event, 'assistant')
    this.#open.sequence = event.sequence
    addTo(this.#open, event)
    return entryOf(this.#open)
  }

  /** Marks the open entry as cut: events in its middle are skipped. */
  skip(): void {
    if (!this.#open) return
    this.#open.isCut = true
    this.#open.newest = undefined
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
  const { starts, hasOlder } = await startsOfEntries(log, end, limit)
  const folder = new TranscriptFolder()
  const entries: TranscriptEntry[] = []
  for (const [n, start] of starts.entries()) {
    const entry = await foldEntry(log, folder, start, (starts[n + 1] ?? end) - 1)
    if (entry) entries.push(entry)
  }
  return { entries, hasOlder, nextBefore: hasOlder ? starts[0] : undefined, maxSequence }
}

/** A folder whose open entry is the one of the event at `cursor`. */
export async function folderAt(log: SessionLog, cursor: number): Promise<TranscriptFolder> {
  const folder = new TranscriptFolder()
  const {
    starts: [start = cursor + 1],
  } = await startsOfEntries(log, cursor + 1, 1)
  await foldEntry(log, folder, start, cursor)
  return folder
}

/** Folds the events of one entry. Of a long entry only the beginning and the events of the newest parts are folded. */
async function foldEntry(
  log: SessionLog,
  folder: TranscriptFolder,
  from: number,
  to: number,
): Promise<TranscriptEntry | undefined> {
  let entry: TranscriptEntry | undefined
  const fold = async (first: number, last: number) => {
    for await (const event of log.range(first, last)) entry = folder.take(event) ?? entry
  }
  if (to - from < WHOLE_EVENTS) {
    await fold(from, to)
    return entry
  }
  await fold(from, from + HEAD_EVENTS - 1)
  folder.skip()
  let tail = to + 1
  let parts = 0
  let later: string | undefined
  const visited = new Set<unknown>()
  for await (const { sequence, type, content } of log.backwards(to + 1)) {
    if (sequence < from + HEAD_EVENTS || parts > MAX_PARTS) break
    tail = sequence
    if (!MAKES_PARTS.has(type)) continue
    // All events of a tool call form one part, and so do consecutive texts.
    const key = content.tool_call_id ?? content.request_id
    if (key === undefined ? type !== later : !visited.has(key)) parts++
    if (key !== undefined) visited.add(key)
    later = type
  }
  await fold(tail, to)
  return entry
}

/**
 * A text summary of the conversation before a sequence, for an agent that cannot load it: at most `max` characters, newest last.
 */
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

/**
 * The starts of the newest `count` entries before `end`, ascending, and whether older ones exist; removed events do not count. Only
 * positions are kept, even for long entries. A long entry is read back only to the end of a stretch whose entry start the log
 * knows.
 */
async function startsOfEntries(
  log: SessionLog,
  end: number,
  count: number,
): Promise<{ readonly starts: readonly number[]; readonly hasOlder: boolean }> {
  const starts: number[] = []
  let later: StoredSessionEvent | undefined
  for (let next: number | undefined = end; next !== undefined; ) {
    const before: number = next
    next = undefined
    for await (const event of log.backwards(before)) {
      const sameAsLater = later && !standsAlone(event.type) && !standsAlone(later.type) && later.turnId === event.turnId
      if (!sameAsLater && starts.push(event.sequence) > count)
        return { starts: starts.slice(0, count).reverse(), hasOlder: true }
      starts[starts.length - 1] = event.sequence
      later = event
      const begin = log.entryStart(event.sequence)
      if (begin === undefined || begin >= event.sequence) continue
      starts[starts.length - 1] = begin
      next = begin
      break
    }
  }
  return { starts: starts.reverse(), hasOlder: false }
}

function openEntry(event: StoredSessionEvent, role: OpenEntry['role']): OpenEntry {
  const { id, turnId, sequence } = event
  const parts = { head: new Map(), tail: new Map(), newest: undefined, isCut: false, keys: 0 }
  return { id, role, turnId, start: sequence, sequence, ...parts, metadata: undefined, toolData: 0 }
}

function aloneEntry(event: StoredSessionEvent): OpenEntry {
  const { type, content } = event
  const entry = openEntry(event, type === 'user_message' ? 'user' : 'system')
  if (type === 'user_message') addPart(entry, { type: 'text', text: textOf(content.text) })
  else {
    const stop = event.stopReason && { stop_reason: event.stopReason, stop_detail: event.stopDetail }
    addPart(entry, { type: `data-${type}`, data: { ...content, ...stop } })
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
      // The call itself was left out.
      if (type === 'tool_result' && entry.isCut && !partAt(entry, `tool ${content.tool_call_id}`)) break
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
  const key = entry.newest
  const last = key === undefined ? undefined : partAt(entry, key)
  if (key === undefined || last?.type !== type) {
    addPart(entry, { type, text: clip(text, MAX_TEXT) })
    return
  }
  const room = MAX_TEXT - (last.text?.length ?? 0)
  if (room > 0) mapOf(entry, key).set(key, { ...last, text: last.text + clip(text, room) })
}

function addPart(entry: OpenEntry, part: Part): void {
  setPart(entry, entry.keys++, () => part)
}

function setPart(entry: OpenEntry, key: string | number, make: (before: Part | undefined) => Part): void {
  const before = partAt(entry, key)
  if (before) {
    mapOf(entry, key).set(key, make(before))
    return
  }
  const { head, tail } = entry
  const isBeginning = entry.sequence < entry.start + HEAD_EVENTS && !entry.isCut
  ;(isBeginning ? head : tail).set(key, make(undefined))
  entry.newest = key
  if (head.size + tail.size <= MAX_PARTS) return
  const [oldest] = tail.keys()
  if (oldest === undefined) return
  tail.delete(oldest)
  entry.isCut = true
}

const mapOf = ({ head, tail }: OpenEntry, key: string | number) => (head.has(key) ? head : tail)
const partAt = (entry: OpenEntry, key: string | number) => mapOf(entry, key).get(key)

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
  const { id, role, head, tail, isCut, metadata, start, sequence } = entry
  const omitted: Part[] = isCut ? [{ type: 'data-omitted', data: { after_sequence: start + HEAD_EVENTS - 1 } }] : []
  return {
    message: { id, role, parts: [...head.values(), ...omitted, ...tail.values()], ...(metadata && { metadata }) },
    sequence,
    start_sequence: start,
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
}
