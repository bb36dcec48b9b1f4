import { type Frame, messageOf } from '../../../../kernel/plugin.js'
import type { PromptReceipt, SessionEvent } from '../../../../schemas/sessions.js'
import { contentOf, EventLines } from './event-lines.js'
import { type QuestionPlace, Questions } from './questions.js'
import type { TaskContext } from './task-context.js'

/** Stands before what is typed while nothing is asked. */
const PROMPT = '> '

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
  #tokens: number | undefined

  constructor(
    private readonly context: TaskContext,
    private readonly base: string,
    /** Sequence up to which it is the past. */
    private readonly past: number,
    /** `isUnattended`: without a terminal nothing waits for an answer. */
    { id = String(context.args.session_id), isUnattended = false } = {},
  ) {
    const place = placeOf(context)
    this.#lines = new EventLines(id, context, place ? 'asked' : isUnattended ? 'absent' : 'elsewhere')
    this.#questions = place || isUnattended ? new Questions(context, place, base) : undefined
  }

  /** Questions that were rejected because nobody was there to answer. */
  get denied(): number {
    return this.#questions?.denied ?? 0
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

  /** Sends a prompt of which the reader knows the text. One that has to wait is shown again when it begins. */
  async send(body: Readonly<Record<string, unknown>>): Promise<PromptReceipt> {
    this.#typed.push(body.text)
    try {
      const reply = await this.context.client.request('POST', `${this.base}/prompt`, body)
      const { prompt } = reply as { prompt: PromptReceipt }
      if (prompt.queued === true || prompt.goal) this.#isTyped(body.text)
      else this.working()
      return prompt
    } catch (error) {
      this.#isTyped(body.text)
      throw error
    }
  }

  /**
   * Takes lines as they are typed: answers while something is asked, else what `take` does with them; undefined at the end of the
   * input. The returned function ends it.
   */
  typing(take: (line: string | undefined) => void, history: readonly string[] = []): (() => void) | undefined {
    const { screen, terminal, out } = this.context
    const line = (text: string | undefined) => {
      if (text === undefined || !this.#answer(text)) take(text)
    }
    if (!screen) return terminal?.onLine(line)
    return screen.edit({
      prompt: PROMPT,
      history,
      take: text => {
        // What was typed is taken from below the stream and becomes part of it.
        if (text !== undefined && text.trim() !== '') {
          this.#lines.end()
          out.line(out.color('bold', `${this.#questions?.isAsking ? '  ' : PROMPT}${text}`))
        }
        line(text)
      },
    })
  }

  /** A turn runs: silence is explained. */
  working(): void {
    const more = () => (this.#tokens === undefined ? '' : `${tokensText(this.#tokens)} tokens`)
    this.context.screen?.working(more)
  }

  /** Nothing runs any more. */
  resting(): void {
    this.context.screen?.working(undefined)
  }

  /**
   * The next Ctrl-C cancels a turn, or takes its prompt out of the queue; the one after it calls `detach`, or ends the
   * command where there is none.
   */
  cancelOnInterrupt(queueEntry?: string, detach?: () => void): void {
    this.#giveBack?.()
    this.#giveBack = this.context.onInterrupt(() => {
      this.interrupted = true
      this.say('Canceling… Ctrl-C again detaches.')
      if (detach) this.#giveBack = this.context.onInterrupt(detach)
      this.#cancel(queueEntry).catch(error => this.fail(error))
    })
  }

  /** Ctrl-C ends the command again. */
  endOnInterrupt(): void {
    this.#giveBack?.()
    this.#giveBack = undefined
    this.interrupted = false
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

  /** Cancels the turn that runs, or takes a prompt out of the queue. */
  cancel(): Promise<void> {
    return this.#cancel(undefined)
  }

  #answer(line: string): boolean {
    const questions = this.#questions
    if (!questions?.takes(line)) return false
    questions.answer(line).catch(error => this.fail(error))
    return true
  }

  #show(event: SessionEvent): void {
    const { out } = this.context
    if (out.json) (out.row ?? out.value).call(out, event)
    else if (event.type !== 'user_message' || !this.#isTyped(contentOf(event).text)) this.#lines.show(event)
    this.#questions?.take(event, event.sequence >= this.past)
    if (event.type === 'usage') this.#tokens = tokensOf(contentOf(event).usage) ?? this.#tokens
    const isOver = event.type === 'done' || event.type === 'error' || event.type === 'session_stopped'
    if (isOver || this.#questions?.isAsking) this.resting()
    else if (event.sequence >= this.past && event.turn_id !== '') this.working()
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

/** Where questions are put: before what is typed on a screen, else at the end of what is shown. */
function placeOf({ terminal, screen, out }: TaskContext): QuestionPlace | undefined {
  if (!terminal) return undefined
  const now = () => terminal.now()
  if (screen) return { now, ask: prompt => screen.ask(prompt ?? PROMPT) }
  return { now, ask: prompt => prompt !== undefined && out.text(out.color('yellow', `  ${prompt}`)) }
}

function tokensOf(usage: unknown): number | undefined {
  const used = (usage as { used?: unknown } | null | undefined)?.used
  return typeof used === 'number' && used > 0 ? used : undefined
}

function tokensText(count: number): string {
  return count < 1000 ? String(count) : `${(count / 1000).toFixed(1)}k`
}

/** The stored event of a frame; undefined for what is none. What ends the stream with an error ends the command. */
export function eventOf({ event, data }: Frame, { fault }: Pick<TaskContext, 'fault'>): SessionEvent | undefined {
  // A turn that failed is a stored event with the same name as the failure of the stream.
  if (typeof data === 'object' && data !== null && 'sequence' in data) return data as SessionEvent
  if (event !== 'error') return undefined
  const { error, code } = (data ?? {}) as { error?: string; code?: string }
  return fault(code ?? 'stream', error ?? 'the stream failed')
}

/** Sequence of the newest event; 0 when there is none. */
export async function newestSequence({ client }: Pick<TaskContext, 'client'>, base: string): Promise<number> {
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
export function canGoOn({ stop_reason, failure }: SessionEvent): boolean {
  const notStarted = failure?.kind === 'startup_failure' || failure?.kind === 'handshake_failure'
  return stop_reason === 'shutdown' || stop_reason === 'agent_crashed' || (stop_reason === 'error' && notStarted)
}
