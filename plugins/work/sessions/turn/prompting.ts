import { SerialBy } from '../../../../kernel/kit/serial.js'
import { type Actor, messageOf, type Tx, within } from '../../../../kernel/plugin.js'
import type { PromptBody, PromptReceipt } from '../../../../schemas/sessions.js'
import {
  type PromptedFor,
  type QueuedTurn,
  SessionErrors,
  type SessionPrompt,
  SessionPromptedFor,
  type TurnOutcome,
} from '../api.js'
import type { SessionsContext } from '../context.js'
import { submitted } from '../gates.js'
import { GOAL, goalCommand } from '../goal/goal.js'
import { Goals } from '../goal/goals.js'
import type { LiveSession } from '../lifecycle/live-session.js'
import { checkSelection } from '../runtime/selection.js'
import { canBegin, mayRetry, stateText } from '../states.js'
import { type NewPrompt, newPrompt, unarchived } from './new-prompt.js'
import { textOf } from './prompt-text.js'
import { digestOf, droppedEvent } from './prompts.js'
import { enqueuedReceipt, startedReceipt } from './receipts.js'
import type { TurnRequest } from './turn.js'
import { writeUnbegun } from './unbegun.js'

/** The sessions in memory. */
export interface LiveSessions {
  /** Opens the session unless it is in memory already. */
  open(id: string): Promise<LiveSession>
  peek(id: string): LiveSession | undefined
}

/** The reply to a prompt, with its status: 200 begun, 202 queued or repeated. */
export interface PromptAnswer {
  readonly status: 200 | 202
  readonly prompt: PromptReceipt
}

type Mode = 'queue' | 'interrupt' | 'steer'

/** Milliseconds that a prompt waits until the end of the previous turn is stored; then it queues. */
const END_WRITTEN_MS = 2000

/** Prompts of all sessions: one runs per session; the others wait in a durable queue. */
export class Prompting {
  /** Serializes the decisions about each session. */
  readonly #decisions = new SerialBy()
  readonly #following = new Set<Promise<void>>()
  /** The steering prompt that takes over the running turn, by session. */
  readonly #steering = new Map<string, string>()
  readonly #goals: Goals
  #closed = false

  constructor(
    private readonly context: SessionsContext,
    private readonly sessions: LiveSessions,
  ) {
    this.#goals = new Goals(context)
  }

  /** A prompt over the API. Without text it only restarts an interrupted session. */
  async submit(
    id: string,
    body: PromptBody,
    actor: Actor,
    { source = 'user', onBehalfOf }: Partial<Pick<SessionPrompt, 'source' | 'onBehalfOf'>> = {},
  ): Promise<PromptAnswer> {
    const text = textOf(body)
    if (text === undefined) return this.#resume(id)
    const { prompts, promptFiles, kernel } = this.context
    const mode: Mode = body.mode ?? 'queue'
    const digest = digestOf(text, mode, body.runtime, body.attachments)
    // Only the operator sets goals; the text of a plugin must not.
    const goal = source === 'user' ? goalCommand(text) : undefined
    const messageId = body.message_id ?? body.messageId
    const isRepeatable = body.idempotency_key !== undefined || messageId !== undefined
    return this.#decisions.run(id, async () => {
      const before = this.sessions.peek(id)?.turn
      // The previous turn is over but not stored yet. Without this wait the prompt would queue, which writes it twice.
      if (before?.isEnding) await within(kernel.clock, END_WRITTEN_MS, before.over).catch(() => {})
      // Checked after that wait, because a failed turn ends with the stop of its session.
      await this.#stopped(id)
      await promptFiles.recall(id).catch(error => {
        if (isRepeatable) throw error
      })
      const replay = prompts.replay(id, body.idempotency_key, messageId, digest)
      if (replay) return { status: 202, prompt: replay }
      await kernel.needs.daemon.admit('prompt')
      this.#checkOpen()
      const row = unarchived(this.context, id)
      if (row && body.runtime) checkSelection(this.context, row, body.runtime, this.sessions.peek(id), true)
      for (const file of body.attachments ?? []) this.context.attachments.get(id, file)
      const request = newPrompt(kernel, id, text, {
        ...(await submitted(this.context, row, { message: text, source })),
        ...(messageId !== undefined && { message_id: messageId }),
        idempotency_key: body.idempotency_key ?? null,
        ...{ digest, mode, source },
        cause: actor.cause ?? null,
        attachments: body.attachments?.length ? JSON.stringify(body.attachments) : null,
        runtime: body.runtime ? JSON.stringify(body.runtime) : null,
        on_behalf_of: onBehalfOf ? JSON.stringify(onBehalfOf) : null,
      })
      if (goal) {
        const { prompt, isDue } = await this.#goals.take(request, goal)
        // Before the reply: a sender that finds the session stopped knows that the stop came later.
        if (isDue && (await this.sessions.open(id))) await this.#next(id)
        return { status: 200, prompt }
      }
      const live = await this.sessions.open(id)
      const waiting = prompts.queued(id).length
      const answer = await (live.turn || waiting > 0
        ? this.#enqueue(live, request, waiting)
        : this.#begin(live, request))
      if (onBehalfOf) await this.#tellOf(live, request, onBehalfOf, actor)
      return answer
    })
  }

  /** Records in the event log on whose behalf a prompt was sent. */
  async #tellOf(live: LiveSession, { turn_id }: NewPrompt, on_behalf_of: PromptedFor, actor: Actor): Promise<void> {
    const { kernel, table } = this.context
    const row = table.get(live.id)
    if (!row) return
    const payload = { id: row.id, workspace_id: row.workspace_id, agent_name: row.agent_name, turn_id, on_behalf_of }
    await kernel.db.tx(t => kernel.needs.events.emit(t, SessionPromptedFor, payload, { actor, subject: row.id }))
  }

  /**
   * Queues a prompt of another plugin, once per key. A queue that a restart left waiting continues here, because a plugin repeats
   * prompts whose end it does not know.
   */
  async queue(
    id: string,
    { text, key, attachments, ...prompt }: SessionPrompt & { readonly key: string },
    actor: Actor,
  ): Promise<QueuedTurn> {
    const { prompts, promptFiles, logs } = this.context
    await promptFiles.recall(id)
    const last = await logs.use(id, async log => log.last)
    if (!prompts.ofKey(id, key)) {
      const files = attachments?.length ? { attachments: [...attachments] } : {}
      const { prompt: receipt } = await this.submit(id, { text, idempotency_key: key, ...files }, actor, prompt)
      if (!receipt.replayed) return { turnId: receipt.new_turn_id ?? '', from: last + 1 }
    }
    await this.continueQueue(id)
    const { turn_id: turnId = '', status } = prompts.ofKey(id, key) ?? {}
    const { usage = null } = this.context.table.get(id) ?? {}
    // A prompt removed from the queue has only its removal event.
    const find = (type?: string) => logs.use(id, log => log.query({ type, turnId, limit: 1 }, usage))
    const [event] = status === 'queued' ? [] : [...(await find('user_message')), ...(await find())]
    return { turnId, from: event?.sequence ?? last + 1 }
  }

  /** Begins the next waiting prompt, also in a session that a restart stopped. */
  async continueQueue(id: string): Promise<void> {
    if (this.context.prompts.queued(id).length > 0 && (await this.sessions.open(id))) this.#continue(id)
  }

  /** Sends guidance to the running turn, taken at its next tool result. Throws `no_active_prompt` (409) without a turn. */
  async steer(id: string, text: string, actor: Actor): Promise<PromptReceipt> {
    if (!this.sessions.peek(id)?.turn) throw SessionErrors.no_active_prompt()
    return (await this.submit(id, { text, mode: 'steer' }, actor)).prompt
  }

  /** Called at a tool result of the running turn: a steering prompt takes over here. */
  atToolResult(id: string): void {
    const staged = this.context.prompts.queued(id).find(({ mode }) => mode === 'steer')
    const turn = this.sessions.peek(id)?.turn
    if (!staged || !turn) return
    this.#steering.set(id, staged.id)
    turn.cancel('user')
  }

  /** Begins a turn for a prompt of another plugin, which never queues. Resolves when its turn has begun. */
  async begin(id: string, prompt: SessionPrompt): Promise<{ turnId: string; outcome: Promise<TurnOutcome> }> {
    const { kernel, prompts } = this.context
    const turn = await this.#decisions.run(id, async () => {
      await this.#stopped(id)
      this.#checkOpen()
      unarchived(this.context, id)
      if (prompts.queued(id).length > 0) throw SessionErrors.session_busy('prompts are waiting in this session')
      const live = await this.sessions.open(id)
      const onBehalfOf = prompt.onBehalfOf && JSON.stringify(prompt.onBehalfOf)
      return this.#guarded(live, () => live.begin({ ...prompt, onBehalfOf, turnId: kernel.ids.id('trn') }))
    })
    return { ...turn, outcome: turn.outcome.finally(() => this.#continue(id)) }
  }

  /** Runs `work` while no turn runs or begins; undefined when one does, or the session stops or is not in memory. */
  atRest<T>(id: string, work: (live: LiveSession) => Promise<T>): Promise<T | undefined> {
    return this.#decisions.run(id, async () => {
      const live = this.sessions.peek(id)
      return live && !live.turn && !live.stopping ? work(live) : undefined
    })
  }

  /** Runs `work` while no turn of a session runs. Throws 404, 409 `session_busy`, `session_stopped`. */
  whileIdle<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#decisions.run(id, async () => {
      const turn = this.sessions.peek(id)?.turn
      if (turn?.isEnding) await turn.over
      await this.#stopped(id)
      const row = unarchived(this.context, id)
      if (!row) throw SessionErrors.session_not_found(`no session ${id}`)
      if (!canBegin(row)) throw SessionErrors.session_stopped(stateText(row))
      if (this.sessions.peek(id)?.turn) throw SessionErrors.session_busy()
      return work()
    })
  }

  /** Stops beginning new turns; resolves when the ends of all turns are stored. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled([...this.#following, this.#decisions.idle()])
  }

  async #resume(id: string): Promise<PromptAnswer> {
    const { kernel } = this.context
    return this.#decisions.run(id, async () => {
      await this.#stopped(id)
      const row = unarchived(this.context, id)
      if (row && !mayRetry(row)) {
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
    const prompt = startedReceipt(request)
    const generation = prompts.generation(live.id)
    const row = { ...request, generation, reply: JSON.stringify(prompt) }
    await this.#start(live, request, (t, status) => prompts.insert(t, { ...row, status }))
    return { status: 200, prompt }
  }

  /**
   * Begins the turn of a prompt. The prompt is stored as starting, with its key, before its sender gets a reply, and as running
   * before the agent gets it: after a crash it is certain whether the agent can have received it.
   */
  async #start(
    live: LiveSession,
    request: NewPrompt,
    write: (t: Tx, status: 'starting' | 'running') => void,
  ): Promise<void> {
    const { prompts, kernel } = this.context
    const begins = (t: Tx) => write(t, live.binding.running ? 'running' : 'starting')
    const sends = (t: Tx) => prompts.setStatus(t, request, 'running')
    const ends: TurnRequest['ends'] = (t, status) => prompts.finish(t, request, status)
    const { turn_id: turnId, message_id: messageId, text, source, context_blocks: contextBlocks } = request
    const { on_behalf_of: onBehalfOf, cause } = request
    const runtime = request.runtime === null ? null : JSON.parse(request.runtime)
    const attachments = request.attachments === null ? [] : JSON.parse(request.attachments)
    const { outcome } = await this.#guarded(live, () =>
      live.begin({
        ...{ turnId, messageId, text, source, contextBlocks, onBehalfOf, cause, runtime, attachments },
        ...{ begins, sends, ends },
      }),
    )
    const written = outcome.catch(error => {
      kernel.log.error('a turn could not be written down', { id: request.session_id, error: messageOf(error) })
      return kernel.db.tx(t => prompts.finish(t, request, 'failed'))
    })
    const { session_id: id } = request
    const judged = written.then(ended => this.#goals.over(id, ended || undefined, source === GOAL))
    this.#track(judged.finally(() => this.#continue(id)))
  }

  /** Begins the next turn towards a goal, if one is due. */
  async #goOn(live: LiveSession): Promise<void> {
    const request = this.#goals.next(live.id)
    if (!request) return
    try {
      await this.context.kernel.needs.daemon.admit('prompt')
      await this.#start(live, request, (t, status) => this.#goals.begin(t, request, status))
    } catch (error) {
      await this.#goals.failed(live.id, messageOf(error))
    }
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
      const receipt = enqueuedReceipt(request, live.turn?.id, {
        generation,
        position: waiting - dropped + 1,
        dropped: interrupts ? dropped : undefined,
      })
      prompts.insert(t, { ...request, status: 'queued', generation, reply: JSON.stringify(receipt) })
      return receipt
    })
    for (const { turn_id } of stale) live.log.append(droppedEvent(turn_id))
    if (interrupts) live.turn?.cancel('user')
    // Before the reply: a sender that finds the session stopped knows that the stop came later.
    if (!live.turn) await this.#next(live.id)
    return { status: 202, prompt }
  }

  /** Begins the next waiting prompt, if the session is free. */
  #continue(id: string): void {
    if (!this.#closed) this.#track(this.#decisions.run(id, () => this.#next(id)))
  }

  async #next(id: string): Promise<void> {
    const { prompts, kernel } = this.context
    const first = this.#steering.get(id)
    this.#steering.delete(id)
    const queued = prompts.queued(id)
    for (const request of [...queued.filter(one => one.id === first), ...queued.filter(one => one.id !== first)]) {
      const live = this.sessions.peek(id)
      if (this.#closed || !live || live.turn || live.signal.aborted) return
      try {
        await this.#start(live, request, (t, status) => prompts.setStatus(t, request, status))
        return
      } catch (error) {
        await writeUnbegun(live.log, request, messageOf(error))
        await kernel.db.tx(t => prompts.finish(t, request, 'failed'))
      }
    }
    const live = this.sessions.peek(id)
    if (!this.#closed && live && !live.turn && !live.signal.aborted) await this.#goOn(live)
  }

  #track(work: Promise<void>): void {
    const tracked = work
      .catch(error => this.context.kernel.log.error('the prompt queue failed', { error: messageOf(error) }))
      .finally(() => this.#following.delete(tracked))
    this.#following.add(tracked)
  }

  /** Releases a session that was opened for a start that failed. */
  async #guarded<T>(live: LiveSession, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      live.discard()
      throw error
    }
  }

  /** Waits for the end of a stop, because only then is it known whether the session can restart. A stop has its own time limits. */
  async #stopped(id: string): Promise<void> {
    await this.sessions.peek(id)?.stopping?.catch(() => {})
  }

  #checkOpen(): void {
    if (this.#closed)
      throw SessionErrors.session_stopped('the daemon is stopping', { next: 'send it when the daemon is back' })
  }
}
