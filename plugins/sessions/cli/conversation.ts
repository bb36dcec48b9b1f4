import { type CommandContext, type Frame, messageOf } from '../../../kernel/plugin.js'
import type { PromptReceipt, SessionEvent } from '../../../schemas/sessions.js'
import { contentOf, EventLines } from './event-lines.js'
import { Questions } from './questions.js'

/** A session as somebody follows it: shows what happens, puts questions where there is a terminal, cancels on Ctrl-C. */
export class Conversation {
  /** Sequence of the newest event that was shown. */
  last = 0
  /** Ctrl-C was pressed for the turn that runs. */
  interrupted = false
  readonly #lines: EventLines
  readonly #questions: Questions | undefined
  /** Texts that the reader sees already; by text, for the event may come before the answer to the request. */
  readonly #typed: unknown[] = []
  #giveBack: (() => void) | undefined

  constructor(
    private readonly context: CommandContext,
    private readonly base: string,
    /** Sequence up to which it is the past. */
    private readonly past: number,
  ) {
    const { terminal, out, args } = context
    this.#lines = new EventLines(String(args.session_id), out, terminal !== undefined)
    this.#questions = terminal && new Questions(context, terminal, base)
  }

  /** Events of the session's stream, each of them shown, until the daemon ends it. */
  async *events(query: string, signal?: AbortSignal): AsyncGenerator<SessionEvent> {
    const path = `${this.base}/stream?frames=raw&${query}`
    for await (const frame of this.context.client.stream(path, { ...(signal && { signal }) })) {
      const event = eventOf(frame, this.context)
      if (!event) continue
      this.last = event.sequence
      this.#show(event)
      yield event
    }
  }

  /** Sends a prompt of which the reader knows the text. */
  async send(body: Readonly<Record<string, unknown>>): Promise<PromptReceipt> {
    this.#typed.push(body.text)
    try {
      const reply = await this.context.client.request('POST', `${this.base}/prompt`, body)
      return (reply as { prompt: PromptReceipt }).prompt
    } catch (error) {
      this.#isTyped(body.text)
      throw error
    }
  }

  /** The next Ctrl-C cancels a turn, or takes its prompt out of the queue; the one after it ends the command. */
  cancelOnInterrupt(queueEntry?: string): void {
    this.#giveBack?.()
    this.#giveBack = this.context.onInterrupt(() => {
      this.interrupted = true
      this.say('canceling; Ctrl-C again leaves it running')
      this.#cancel(queueEntry).catch(error => this.fail(error))
    })
  }

  /** Ctrl-C ends the command again. */
  endOnInterrupt(): void {
    this.#giveBack?.()
    this.#giveBack = undefined
    this.interrupted = false
  }

  /** A line that was typed: an answer when something is asked. Returns whether it was. */
  answer(line: string): boolean {
    const questions = this.#questions
    if (!questions?.isAsking) return false
    questions.answer(line).catch(error => this.fail(error))
    return true
  }

  /** Was a turn canceled because its session stops: that is told next. */
  async isStopping(end: SessionEvent): Promise<boolean> {
    if (end.type !== 'done') return false
    const { session } = (await this.context.client.request('GET', this.base)) as { session: { state: string } }
    return session.state === 'stopping' || session.state === 'stopped'
  }

  /** A line of this command's own. */
  say(text: string): void {
    this.#lines.end()
    this.context.out.line(this.context.out.color('dim', text))
  }

  fail(error: unknown): void {
    this.#lines.end()
    this.context.out.line(this.context.out.color('red', messageOf(error)))
  }

  #show(event: SessionEvent): void {
    const { out } = this.context
    if (out.json) out.value(event)
    else if (event.type !== 'user_message' || !this.#isTyped(contentOf(event).text)) this.#lines.show(event)
    this.#questions?.take(event, event.sequence >= this.past)
  }

  /** Was this text typed here; it counts once. */
  #isTyped(text: unknown): boolean {
    const at = this.#typed.indexOf(text)
    if (at >= 0) this.#typed.splice(at, 1)
    return at >= 0
  }

  async #cancel(queueEntry: string | undefined): Promise<void> {
    const { client } = this.context
    const queued =
      queueEntry !== undefined &&
      (await client.request('DELETE', `${this.base}/prompt/queue/${encodeURIComponent(queueEntry)}`).then(
        () => true,
        () => false,
      ))
    if (!queued) await client.request('POST', `${this.base}/prompt/cancel`)
  }
}

/** The stored event of a frame; undefined for what is none. What ends the stream with an error ends the command. */
export function eventOf({ event, data }: Frame, { fault }: Pick<CommandContext, 'fault'>): SessionEvent | undefined {
  // A turn that failed is a stored event with the same name as the failure of the stream.
  if (typeof data === 'object' && data !== null && 'sequence' in data) return data as SessionEvent
  if (event !== 'error') return undefined
  const { error, code } = (data ?? {}) as { error?: string; code?: string }
  return fault(code ?? 'stream', error ?? 'the stream failed')
}

/** Sequence of the newest event; 0 when there is none. */
export async function newestSequence({ client }: Pick<CommandContext, 'client'>, base: string): Promise<number> {
  const { events } = (await client.request('GET', `${base}/events?limit=1`)) as { events: SessionEvent[] }
  return events[0]?.sequence ?? 0
}

/** How an event ends a turn; undefined when it does not. */
export function endOfTurn(
  event: SessionEvent,
  turnId: string | undefined,
): 'completed' | 'canceled' | 'failed' | undefined {
  if (event.type === 'session_stopped') return 'failed'
  if (event.turn_id !== turnId) return undefined
  const { status, note } = contentOf(event)
  if (event.type === 'done') return status === 'completed' ? 'completed' : 'canceled'
  if (event.type === 'system' && note === 'prompt_dropped') return 'canceled'
  return event.type === 'error' ? 'failed' : undefined
}

/** May a prompt start the session again that this event tells the end of. */
export function canGoOn({ stop_reason }: SessionEvent): boolean {
  return stop_reason === 'shutdown' || stop_reason === 'agent_crashed'
}
