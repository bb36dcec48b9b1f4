import { aborted } from '../../../kernel/kit/backoff.js'
import { type Frame, messageOf } from '../../../kernel/plugin.js'
import type { PromptReceipt, SessionEvent } from '../../../schemas/sessions.js'
import { contentOf, EventLines } from './event-lines.js'
import { Questions, type QuestionTerminal } from './questions.js'
import type { KeyUse, TaskContext } from './task-context.js'

/** Input prompt while no question is open. */
const PROMPT = '> '

/** A followed session: shows its events, asks questions at a terminal, cancels on Ctrl-C. */
export class Conversation {
  /** Sequence of the last event shown. */
  last = 0
  /** Ctrl-C was pressed for the running turn. */
  interrupted = false
  readonly #lines: EventLines
  readonly #questions: Questions | undefined
  /** Sent texts, which are already on the screen. Matched by text, because the event may arrive before the response. */
  readonly #typed: unknown[] = []
  #giveBack: (() => void) | undefined
  #tokens: number | undefined
  #isWorking = false
  /** The waiting prompt that a cancel removes from the queue. */
  #queueEntry: string | undefined
  /** Prompts without a receipt. */
  readonly #sending = new Set<Promise<unknown>>()
  /** Turns of the prompts sent here that have not ended. */
  readonly #open = new Set<string>()
  /** Turns that have begun. */
  readonly #begun = new Set<string>()

  constructor(
    private readonly context: TaskContext,
    private readonly base: string,
    /** Events up to this sequence are history. */
    private readonly past: number,
    /** `isUnattended`: without a terminal, questions are rejected at once. */
    { id = String(context.args.session_id), isUnattended = false } = {},
  ) {
    const terminal = terminalOf(context)
    this.#lines = new EventLines(id, context, terminal ? 'asked' : isUnattended ? 'absent' : 'elsewhere')
    this.#questions =
      terminal || isUnattended ? new Questions(context, terminal, base, text => this.#steer(text)) : undefined
  }

  /** Number of questions rejected without a person at the terminal. */
  get denied(): number {
    return this.#questions?.denied ?? 0
  }

  /** Shows the events of the session's stream until the daemon ends it; a prompt sent here continues it after a stop. */
  async *events(query: string, signal?: AbortSignal): AsyncGenerator<SessionEvent> {
    for (let from = query; ; from = `after_sequence=${this.last}`) {
      const path = `${this.base}/stream?frames=raw&${from}`
      let last = ''
      for await (const frame of this.context.client.stream(path, { ...(signal && { signal }) })) {
        const event = eventOf(frame, this.context)
        if (!event) continue
        this.last = event.sequence
        last = event.type
        if (last === 'user_message') this.#begun.add(event.turn_id)
        this.#show(event)
        yield event
      }
      if (last !== 'session_stopped' || !this.isWaiting) return
    }
  }

  /** Whether a prompt sent here has not ended. */
  get isWaiting(): boolean {
    return this.#open.size > 0
  }

  /**
   * The end of a prompt sent here by an event; undefined when the event ends none. A turn ends by the event with its ID. A stop ends
   * the prompts that it found, but not one that starts the session again.
   */
  async endBy(event: SessionEvent, signal?: AbortSignal): Promise<TurnEnd | undefined> {
    const end = endOfTurn(event, event.turn_id)
    if (!end) return undefined
    // The receipt that names a turn may arrive after the turn's end.
    await Promise.race([Promise.allSettled(this.#sending), ...(signal ? [aborted(signal)] : [])])
    if (event.type === 'session_stopped') return (await this.#endOpen()) ? end : undefined
    if (!this.#open.has(event.turn_id)) return undefined
    if (end === 'canceled' && !this.interrupted && (await this.#isStopping(event))) return undefined
    this.#open.delete(event.turn_id)
    return end
  }

  /** Ends the prompts that a stop found; returns whether there were any. */
  async #endOpen(): Promise<boolean> {
    const found = this.#open.size
    for (const turn of this.#open) {
      if (this.#begun.has(turn) || !(await this.#comesLater(turn))) this.#open.delete(turn)
    }
    return this.#open.size < found
  }

  /** Whether a prompt that had not begun before a stop begins after it: the session runs again, or has the prompt already. */
  async #comesLater(turn: string): Promise<boolean> {
    const query = `events?turn_id=${encodeURIComponent(turn)}&limit=1`
    return !(await this.#isEnding()) || (await newestSequence(this.context, this.base, query)) > this.last
  }

  /** Sends a prompt whose text is on the screen. A queued prompt is shown again when it begins. */
  send(body: Readonly<Record<string, unknown>>): Promise<PromptReceipt> {
    const sent = this.#send(body)
    this.#sending.add(sent)
    const settled = () => void this.#sending.delete(sent)
    sent.then(settled, settled)
    return sent
  }

  async #send(body: Readonly<Record<string, unknown>>): Promise<PromptReceipt> {
    this.#typed.push(body.text)
    try {
      const reply = await this.context.client.request('POST', `${this.base}/prompt`, body)
      const { prompt } = reply as { prompt: PromptReceipt }
      if (prompt.queued === true || prompt.goal) this.#isTyped(body.text)
      else this.working()
      if (prompt.new_turn_id !== undefined && !prompt.goal && !prompt.replayed) this.#open.add(prompt.new_turn_id)
      return prompt
    } catch (error) {
      this.#isTyped(body.text)
      throw error
    }
  }

  /**
   * Reads typed lines: answers while a question is open, else input for `take`; undefined at the end of the input. The returned
   * function ends it.
   */
  typing(
    take: (line: string | undefined) => void,
    { history = [], complete }: TypingHelp = {},
  ): (() => void) | undefined {
    const { screen, terminal, out, compose } = this.context
    const line = (text: string | undefined) => {
      if (text === undefined || !this.#answer(text)) take(text)
    }
    if (!screen) return terminal?.onLine(line)
    return screen.edit({
      prompt: PROMPT,
      history,
      take: (text, shown) => {
        // The editor line is removed below the stream, so the text is printed as part of it.
        if (text !== undefined && text.trim() !== '') {
          this.#lines.end()
          out.line(out.color('bold', `${this.#questions?.isAsking ? '  ' : PROMPT}${shown}`))
        }
        line(text)
      },
      key: (key, typed) => this.#press(key, typed),
      ...(complete && { complete }),
      ...(compose && { compose }),
    })
  }

  /** Whether single key presses are received. */
  get hasKeys(): boolean {
    return this.context.screen !== undefined
  }

  /** Shows the full output and changes of the last tool; repeated calls go back to earlier tools. */
  showMore(): void {
    this.#lines.showMore()
  }

  #press(key: string, typed: string): KeyUse {
    if (key === 'ctrl-o') {
      this.showMore()
      return 'taken'
    }
    const use = this.#questions?.press(key, typed)
    if (use) return use
    if (key !== 'escape' || typed !== '' || !this.#isWorking) return 'edit'
    this.interrupted = true
    this.say('Canceling…')
    this.#cancel(this.#queueEntry).catch(error => this.fail(error))
    return 'taken'
  }

  /** Shows that a turn runs, so that silence is not mistaken for a hang. */
  working(): void {
    this.#isWorking = true
    const more = () => (this.#tokens === undefined ? '' : `${tokensText(this.#tokens)} tokens`)
    this.context.screen?.working(more)
  }

  /** Removes that display. */
  resting(): void {
    this.#isWorking = false
    this.context.screen?.working(undefined)
  }

  /**
   * The next Ctrl-C cancels the turn, or removes its prompt from the queue. The Ctrl-C after it calls `detach`, or ends the command
   * without one.
   */
  cancelOnInterrupt(queueEntry?: string, detach?: () => void): void {
    this.#giveBack?.()
    this.#queueEntry = queueEntry
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

  /** Whether a turn was canceled by a stop of its session, which the next event reports. */
  async #isStopping({ type }: SessionEvent): Promise<boolean> {
    return type === 'done' && this.#isEnding()
  }

  async #isEnding(): Promise<boolean> {
    const { session } = (await this.context.client.request('GET', this.base)) as { session: { state: string } }
    return session.state === 'stopping' || session.state === 'stopped'
  }

  /** Prints a message of the CLI itself. */
  say(text: string): void {
    this.#lines.end()
    this.context.out.line(this.context.out.color('dim', text))
  }

  fail(error: unknown): void {
    // The errors of an interrupted command are those of its interruption.
    if (this.context.signal.aborted) return
    this.#lines.end()
    this.context.out.line(this.context.out.color('red', messageOf(error)))
  }

  /** Cancels the running turn, or removes a prompt from the queue. */
  cancel(): Promise<void> {
    return this.#cancel(undefined)
  }

  /** Sends a text to the running turn, delivered with its next tool result. */
  async #steer(text: string): Promise<void> {
    await this.send({ text, mode: 'steer' })
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
    if (isOver) this.resting()
    // While a question is open, the person causes the silence.
    else if (this.#questions?.isAsking) this.context.screen?.working(undefined)
    else if (event.sequence >= this.past && event.turn_id !== '') this.working()
  }

  /** Whether this text was typed here; each text counts once. */
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

/** The place for questions: before the input line of a screen, else at the end of the output. */
function terminalOf({ terminal, screen, out }: TaskContext): QuestionTerminal | undefined {
  if (!terminal) return undefined
  const now = () => terminal.now()
  if (screen) {
    const ask = (prompt: string | undefined) => screen.ask(prompt ?? PROMPT, { aside: prompt !== undefined })
    return { now, ask, hasKeys: true, isTyping: () => screen.isTyping }
  }
  const ask = (prompt: string | undefined) => prompt !== undefined && out.text(out.color('yellow', `  ${prompt}`))
  return { now, ask, hasKeys: false, isTyping: () => false }
}

/** Completion, editor and keys of the input line. */
export interface TypingHelp {
  /** Earlier prompts, newest first. */
  readonly history?: readonly string[]
  /** Resolves to the replacement of the text before the cursor on Tab. */
  readonly complete?: (before: string) => Promise<string | undefined>
}

function tokensOf(usage: unknown): number | undefined {
  const used = (usage as { used?: unknown } | null | undefined)?.used
  return typeof used === 'number' && used > 0 ? used : undefined
}

function tokensText(count: number): string {
  return count < 1000 ? String(count) : `${(count / 1000).toFixed(1)}k`
}

/** The stored event of a frame; undefined for other frames. An error of the stream ends the command. */
export function eventOf({ event, data }: Frame, { fault }: Pick<TaskContext, 'fault'>): SessionEvent | undefined {
  // A failed turn is a stored event with the same name as an error of the stream.
  if (typeof data === 'object' && data !== null && 'sequence' in data) return data as SessionEvent
  if (event !== 'error') return undefined
  const { error, code } = (data ?? {}) as { error?: string; code?: string }
  return fault(code ?? 'stream', error ?? 'the stream failed')
}

/** Sequence of the newest event; 0 when there is none. */
export async function newestSequence(
  { client }: Pick<TaskContext, 'client'>,
  base: string,
  query = 'events?limit=1',
): Promise<number> {
  const { events } = (await client.request('GET', `${base}/${query}`)) as { events: SessionEvent[] }
  return events[0]?.sequence ?? 0
}

/** ACP stop reasons of an unfinished turn. */
const UNFINISHED: ReadonlySet<unknown> = new Set(['max_tokens', 'max_turn_requests', 'refusal'])

type TurnEnd = 'completed' | 'unfinished' | 'canceled' | 'failed'

/** The end of a turn by an event; undefined for any other event. A stop ends every turn. */
export function endOfTurn(event: SessionEvent, turnId: string | undefined): TurnEnd | undefined {
  if (event.type === 'session_stopped') return 'failed'
  if (event.turn_id !== turnId) return undefined
  const { status, note, stop_reason: reason } = contentOf(event)
  if (event.type === 'done' && status === 'completed') return UNFINISHED.has(reason) ? 'unfinished' : 'completed'
  if (event.type === 'done') return 'canceled'
  if (event.type === 'system' && note === 'prompt_dropped') return 'canceled'
  return event.type === 'error' ? 'failed' : undefined
}

/** Whether a prompt may restart the session that this event stopped. */
export function canGoOn({ stop_reason, failure }: SessionEvent): boolean {
  const notStarted = failure?.kind === 'startup_failure' || failure?.kind === 'handshake_failure'
  return stop_reason === 'shutdown' || stop_reason === 'agent_crashed' || (stop_reason === 'error' && notStarted)
}
