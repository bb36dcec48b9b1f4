import type { EncodedFrame, Frame } from '../../../../kernel/plugin.js'
import type { SessionsContext } from '../context.js'
import type { StoredSessionEvent } from '../events.js'
import type { SessionLog } from '../journal/session-log.js'
import type { SessionRow } from '../table.js'
import type { PromptAnswer } from '../turn/prompting.js'

/** Declares the version of the AI SDK stream protocol. */
export const UI_STREAM_HEADERS = { 'x-vercel-ai-ui-message-stream': 'v1' } as const

/** End-of-stream mark of the AI SDK. */
const LAST = Buffer.from('data: [DONE]\n\n')

/** A message chunk of the AI SDK. */
type Chunk = { readonly type: string } & Readonly<Record<string, unknown>>

/** Sends a prompt and streams its turn; without frames when the prompt waits or is a repetition. */
export async function promptStream(
  { kernel, logs }: SessionsContext,
  row: SessionRow,
  submit: () => Promise<PromptAnswer>,
  caller: AbortSignal,
): Promise<{ readonly answer: PromptAnswer; readonly frames?: AsyncIterable<Frame | EncodedFrame> }> {
  const { log, release } = await logs.hold(row.id)
  try {
    const from = log.last + 1
    const answer = await submit()
    const turnId = answer.prompt.new_turn_id
    if (answer.status !== 200 || turnId === undefined) {
      release()
      return { answer }
    }
    const signal = AbortSignal.any([caller, kernel.scope.signal])
    // A reader that disconnects before its first frame never runs the generator.
    signal.addEventListener('abort', release, { once: true })
    return { answer, frames: turnFrames(log, from, turnId, signal, release) }
  } catch (error) {
    release()
    throw error
  }
}

async function* turnFrames(
  log: SessionLog,
  from: number,
  turnId: string,
  signal: AbortSignal,
  release: () => void,
): AsyncGenerator<Frame | EncodedFrame> {
  const message = new UiMessage(turnId)
  try {
    for (let next = from; !signal.aborted; ) {
      for await (const event of log.range(next)) {
        next = event.sequence + 1
        for (const data of event.turnId === turnId ? message.take(event) : []) yield { data }
        if (event.type === 'session_stopped') for (const data of message.cut(event)) yield { data }
        if (message.isOver) {
          yield LAST
          return
        }
      }
      await log.changed(next - 1, signal)
    }
  } finally {
    release()
  }
}

/** Turns the events of one turn into AI SDK chunks of one message: texts have a start and an end, tools are keyed by their call. */
export class UiMessage {
  isOver = false
  #hasBegun = false
  #open: { readonly type: 'text' | 'reasoning'; readonly id: string } | undefined

  constructor(private readonly turnId: string) {}

  take(event: StoredSessionEvent): Chunk[] {
    const { type, content } = event
    const chunks: Chunk[] = []
    if (!this.#hasBegun) {
      this.#hasBegun = true
      chunks.push({ type: 'start', messageId: this.turnId }, { type: 'start-step' })
    }
    switch (type) {
      case 'agent_message':
      case 'thought':
        if (typeof content.text === 'string') chunks.push(...this.#text(event, content.text))
        break
      case 'tool_call':
      case 'tool_result':
        chunks.push(...this.#close(), ...toolChunks(type, content))
        break
      case 'usage':
        chunks.push({ type: 'message-metadata', messageMetadata: { usage: content.usage } })
        break
      case 'permission':
      case 'plan':
        chunks.push({ type: `data-${type}`, id: String(content.request_id ?? type), data: content })
        break
      case 'runtime_warning':
      case 'runtime_progress':
        chunks.push({ type: `data-${type}`, data: content, transient: true })
        break
      case 'done':
        chunks.push(...this.#close(), { type: 'finish-step' }, ...this.#end(content))
        break
      case 'error':
        chunks.push(...this.#close(), { type: 'error', errorText: String(content.error) })
        this.isOver = true
        break
    }
    return chunks
  }

  /** Ends the message when the session stopped before the end of the turn. */
  cut({ stopReason, stopDetail }: StoredSessionEvent): Chunk[] {
    if (this.isOver) return []
    this.isOver = true
    const why = stopDetail ? `${stopReason}: ${stopDetail}` : (stopReason ?? 'stopped')
    return [...this.#close(), { type: 'error', errorText: `the session stopped (${why})` }]
  }

  #text({ id, type }: StoredSessionEvent, delta: string): Chunk[] {
    const kind = type === 'thought' ? 'reasoning' : 'text'
    if (this.#open?.type === kind) return [{ type: `${kind}-delta`, id: this.#open.id, delta }]
    const closed = this.#close()
    this.#open = { type: kind, id }
    return [...closed, { type: `${kind}-start`, id }, { type: `${kind}-delta`, id, delta }]
  }

  #close(): Chunk[] {
    const open = this.#open
    this.#open = undefined
    return open ? [{ type: `${open.type}-end`, id: open.id }] : []
  }

  #end({ status, stop_reason }: StoredSessionEvent['content']): Chunk[] {
    this.isOver = true
    if (status === 'canceled') return [{ type: 'abort' }]
    return [{ type: 'finish', messageMetadata: { status, stop_reason } }]
  }
}

function toolChunks(type: 'tool_call' | 'tool_result', content: StoredSessionEvent['content']): Chunk[] {
  const { tool_call_id: toolCallId, title, kind, name, raw_input: input, status, error } = content
  const head = { toolCallId, dynamic: true }
  if (type === 'tool_call') {
    return [{ type: 'tool-input-available', ...head, toolName: name ?? kind, title, input: input ?? {} }]
  }
  if (status === 'failed') return [{ type: 'tool-output-error', ...head, errorText: String(error ?? 'failed') }]
  return [{ type: 'tool-output-available', ...head, output: content.raw_output ?? content.content ?? null }]
}
