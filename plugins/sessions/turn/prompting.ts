import { SerialBy } from '../../../kernel/kit/serial.js'
import { type Actor, messageOf, type Tx } from '../../../kernel/plugin.js'
import type { PromptBody, PromptReceipt } from '../../../schemas/sessions.js'
import { SessionErrors, type SessionPrompt, type TurnOutcome } from '../api.js'
import type { SessionsContext } from '../context.js'
import type { LiveSession } from '../lifecycle/live-session.js'
import { isRestartable } from '../states.js'
import { digestOf, droppedEvent, type PromptRow, promptEvent } from './prompts.js'
import type { TurnRequest } from './turn.js'

/** The sessions that are in memory. */
export interface LiveSessions {
  /** Opens it when it is not there. */
  open(id: string): Promise<LiveSession>
  peek(id: string): LiveSession | undefined
}

/** The answer to a prompt, and its status: 200 begun, 202 queued or repeated. */
export interface PromptAnswer {
  readonly status: 200 | 202
  readonly prompt: PromptReceipt
}

type Mode = 'queue' | 'interrupt' | 'steer'
/** What is known of a prompt before it is stored. */
type NewPrompt = Omit<PromptRow, 'seq' | 'status' | 'generation' | 'reply'>

/** Prompts of all sessions: one at a time per session; the others wait in a durable queue. */
export class Prompting {
  /** What is decided about one session is decided one after the other. */
  readonly #decisions = new SerialBy()
  readonly #following = new Set<Promise<void>>()
  /** Of sessions whose turn is being steered: the prompt that takes over. */
  readonly #steering = new Map<string, string>()
  #closed = false

  constructor(
    private readonly context: SessionsContext,
    private readonly sessions: LiveSessions,
  ) {}

  /** A prompt over the API. Without text it only restarts a session that was interrupted. */
  async submit(id: string, body: PromptBody, actor: Actor): Promise<PromptAnswer> {
    const text = textOf(body)
    if (text === undefined) return this.#resume(id)
    const { table, prompts, kernel } = this.context
    const mode: Mode = body.mode ?? 'queue'
    const digest = digestOf(text, mode, body.runtime)
    const messageId = body.message_id ?? body.messageId
    return this.#decisions.run(id, async () => {
      const replay = prompts.replay(id, body.idempotency_key, messageId, digest)
      if (replay) return { status: 202, prompt: replay }
      await kernel.needs.daemon.admit('prompt')
      this.#checkOpen()
      const row = table.get(id)
      if (row && body.runtime && body.runtime.provider !== row.provider) throw SessionErrors.provider_fixed()
      const live = await this.sessions.open(id)
      const request = {
        id: kernel.ids.id('prq'),
        session_id: id,
        message_id: messageId ?? kernel.ids.id('msg'),
        idempotency_key: body.idempotency_key ?? null,
        digest,
        text,
        mode,
        source: 'user',
        turn_id: kernel.ids.id('trn'),
        cause: actor.cause ?? null,
        enqueued_at: kernel.clock.now(),
      }
      const waiting = prompts.queued(id).length
      return live.turn || waiting > 0 ? this.#enqueue(live, request, waiting) : this.#begin(live, request)
    })
  }

  /** Guidance for the turn that runs, taken at its next tool result. Throws `no_active_prompt` (409) without a turn. */
  async steer(id: string, text: string, actor: Actor): Promise<PromptReceipt> {
    if (!this.sessions.peek(id)?.turn) throw SessionErrors.no_active_prompt()
    return (await this.submit(id, { text, mode: 'steer' }, actor)).prompt
  }

  /** The running turn has a tool result: a prompt that steers takes over at this point. */
  atToolResult(id: string): void {
    const staged = this.context.prompts.queued(id).find(({ mode }) => mode === 'steer')
    const turn = this.sessions.peek(id)?.turn
    if (!staged || !turn) return
    this.#steering.set(id, staged.id)
    turn.cancel('user')
  }

  /** A prompt of another plugin: it does not wait in the queue. Resolves when its turn has begun. */
  async begin(id: string, prompt: SessionPrompt): Promise<{ turnId: string; outcome: Promise<TurnOutcome> }> {
    const { kernel, prompts } = this.context
    const begun = await this.#decisions.run(id, async () => {
      this.#checkOpen()
      if (prompts.queued(id).length > 0) throw SessionErrors.session_busy('prompts are waiting in this session')
      const live = await this.sessions.open(id)
      return this.#guarded(live, () => live.begin({ ...prompt, turnId: kernel.ids.id('trn') }))
    })
    return { ...begun, outcome: begun.outcome.finally(() => this.#continue(id)) }
  }

  /** Does something while no turn of a session runs. Throws 404, 409 `session_busy`, `session_stopped`. */
  whileIdle<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#decisions.run(id, async () => {
      const row = this.context.table.get(id)
      if (!row) throw SessionErrors.session_not_found(`no session ${id}`)
      if (row.state !== 'active' && !isRestartable(row.state, row.stop_reason ?? undefined)) {
        throw SessionErrors.session_stopped(
          `this session is ${row.state}${row.stop_reason ? ` (${row.stop_reason})` : ''}`,
        )
      }
      if (this.sessions.peek(id)?.turn) throw SessionErrors.session_busy()
      return work()
    })
  }

  /** Ends the wait for the ends of turns; resolves when all are written down. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled([...this.#following, this.#decisions.idle()])
  }

  async #resume(id: string): Promise<PromptAnswer> {
    const { kernel, table } = this.context
    return this.#decisions.run(id, async () => {
      const row = table.get(id)
      if (row && !isRestartable(row.state, row.stop_reason ?? undefined)) {
        if (row.state === 'stopped') {
          throw SessionErrors.session_stopped(`this session is stopped (${row.stop_reason}); start another one`)
        }
        throw SessionErrors.prompt_text_missing(`this session is ${row.state}: there is nothing to resume, send a text`)
      }
      await kernel.needs.daemon.admit('prompt')
      this.#checkOpen()
      const live = await this.sessions.open(id)
      await this.#guarded(live, () => live.resume(kernel.ids.id('trn')))
      this.#continue(id)
      return { status: 200, prompt: { status: 'resumed' } }
    })
  }

  async #begin(live: LiveSession, request: NewPrompt): Promise<PromptAnswer> {
    const { prompts } = this.context
    const prompt: PromptReceipt = {
      status: 'started',
      mode: request.mode,
      queued: false,
      new_turn_id: request.turn_id,
      message_id: request.message_id,
      ...(request.idempotency_key && { idempotency_key: request.idempotency_key }),
    }
    const generation = prompts.generation(live.id)
    const row = { ...request, generation, reply: JSON.stringify(prompt) }
    await this.#start(live, request, (t, status) => prompts.insert(t, { ...row, status }))
    return { status: 200, prompt }
  }

  /**
   * Begins the turn of a prompt. It is written down as starting, with its key, before anybody is told that it was taken,
   * and as running before the agent is given it: a crash leaves no doubt whether the agent can have got it.
   */
  async #start(
    live: LiveSession,
    request: NewPrompt,
    write: (t: Tx, status: 'starting' | 'running') => void,
  ): Promise<void> {
    const { prompts, kernel } = this.context
    const begins = (t: Tx) => write(t, live.binding.running ? 'running' : 'starting')
    const sends = (t: Tx) => prompts.setStatus(t, request.id, 'running')
    const ends: TurnRequest['ends'] = (t, status) => prompts.finish(t, request, status)
    const { turn_id: turnId, text, source } = request
    const { outcome } = await this.#guarded(live, () => live.begin({ turnId, text, source, begins, sends, ends }))
    const written = outcome.catch(error => {
      kernel.log.error('a turn could not be written down', { id: request.session_id, error: messageOf(error) })
      return kernel.db.tx(t => prompts.finish(t, request, 'failed'))
    })
    this.#track(written.then(() => this.#continue(request.session_id)))
  }

  async #enqueue(live: LiveSession, request: NewPrompt, waiting: number): Promise<PromptAnswer> {
    const { prompts, kernel, limits } = this.context
    const interrupts = request.mode === 'interrupt'
    if (!interrupts && waiting >= limits.queueCap) {
      throw SessionErrors.queue_full(
        `${waiting} prompts are waiting, session.busy_input.queue_cap is ${limits.queueCap}`,
      )
    }
    const generation = prompts.generation(live.id) + (interrupts ? 1 : 0)
    const stale = interrupts ? prompts.queued(live.id) : []
    const prompt = await kernel.db.tx(t => {
      const dropped = interrupts ? prompts.dropQueued(t, live.id, 'dropped') : 0
      const receipt: PromptReceipt = {
        status: 'queued',
        mode: request.mode,
        queued: true,
        queue_entry_id: request.id,
        queue_position: waiting - dropped + 1,
        queue_generation: generation,
        new_turn_id: request.turn_id,
        message_id: request.message_id,
        ...(request.idempotency_key && { idempotency_key: request.idempotency_key }),
        ...(live.turn && { previous_turn_id: live.turn.id }),
        ...(interrupts && { interrupted: live.turn !== undefined, canceled_queued_entries: dropped }),
        ...(request.mode === 'steer' && { staged: live.turn !== undefined, fallback_mode_if_no_tool_result: 'queue' }),
      }
      prompts.insert(t, { ...request, status: 'queued', generation, reply: JSON.stringify(receipt) })
      return receipt
    })
    for (const { turn_id } of stale) live.log.append(droppedEvent(turn_id))
    if (interrupts) live.turn?.cancel('user')
    if (!live.turn) this.#continue(live.id)
    return { status: 202, prompt }
  }

  /** Begins the next prompt that waits, if the session is free. */
  #continue(id: string): void {
    if (this.#closed) return
    const next = this.#decisions.run(id, async () => {
      const { prompts, kernel } = this.context
      const first = this.#steering.get(id)
      this.#steering.delete(id)
      const queued = prompts.queued(id)
      for (const request of [...queued.filter(one => one.id === first), ...queued.filter(one => one.id !== first)]) {
        const live = this.sessions.peek(id)
        if (this.#closed || !live || live.turn || live.signal.aborted) return
        try {
          await this.#start(live, request, (t, status) => prompts.setStatus(t, request.id, status))
          return
        } catch (error) {
          const failure = { kind: 'prompt_failure' as const, summary: messageOf(error) }
          const content = { error: failure.summary }
          live.log.append(promptEvent(request))
          live.log.append({ type: 'error', turnId: request.turn_id, content, failure }, { sync: true })
          await live.log.sync()
          await kernel.db.tx(t => prompts.finish(t, request, 'failed'))
        }
      }
    })
    this.#track(next)
  }

  #track(work: Promise<void>): void {
    const tracked = work
      .catch(error => this.context.kernel.log.error('the prompt queue stumbled', { error: messageOf(error) }))
      .finally(() => this.#following.delete(tracked))
    this.#following.add(tracked)
  }

  /** A session that was opened to be started and was not is let go again. */
  async #guarded<T>(live: LiveSession, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      live.discard()
      throw error
    }
  }

  #checkOpen(): void {
    if (this.#closed)
      throw SessionErrors.session_stopped('the daemon is stopping', { next: 'send it when the daemon is back' })
  }
}

/** The text of a prompt from the forms that it may come in; undefined when there is no member for it at all. */
function textOf(body: PromptBody): string | undefined {
  const message = body.messages?.findLast(({ role }) => role === 'user')
  const parts = message?.parts
    ?.filter(({ type }) => type === undefined || type === 'text')
    .map(({ text }) => text ?? '')
  const text = body.text ?? body.message ?? message?.content ?? parts?.join('\n')
  if (text === undefined && body.messages === undefined) return undefined
  if (text === undefined || text.trim() === '') throw SessionErrors.prompt_text_missing()
  return text
}
