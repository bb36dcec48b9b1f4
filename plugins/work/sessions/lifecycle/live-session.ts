import { messageOf, turn as nextTurn, type Tx, within } from '../../../../kernel/plugin.js'
import { AgentFailure, isProcessFailure } from '../../acp/api.js'
import { AgentBinding, type BindingOwner } from '../agent/binding.js'
import { type Launch, planLaunch } from '../agent/launch.js'
import { SessionErrors, type SessionFailure, type TurnOutcome } from '../api.js'
import { blocksOf } from '../attachments/blocks.js'
import type { SessionsContext } from '../context.js'
import { assembled } from '../gates.js'
import type { HeldLog } from '../journal/logs.js'
import type { SessionLog } from '../journal/session-log.js'
import { canBegin, stateText, walk } from '../states.js'
import type { SessionChange, SessionRow } from '../table.js'
import { type BegunTurn, type EndedTurn, failureFrom, Turn, type TurnRequest, type WrittenTurn } from '../turn/turn.js'
import { changeAfter, counting, endedBecause } from './after-turn.js'
import { checkResume } from './catalog.js'
import type { LiveListener } from './live-listener.js'
import {
  END_PROCESS,
  recordStop,
  STOP_CANCEL_MS,
  STOP_PROCESS,
  type Stop,
  startedChange,
  stopAfterStart,
  stopTold,
  tellStop,
  writeStop,
} from './stopping.js'

/**
 * The in-memory part of a session: its log, its process, and at most one turn. The object ends with the stop of the session: a
 * restart creates a new one.
 */
export class LiveSession implements BindingOwner {
  readonly binding: AgentBinding
  readonly #abort = new AbortController()
  /** Bytes of the journal that were not written through this log. */
  readonly #bytesBefore: number
  #turn: Turn | undefined
  #stopping: Promise<void> | undefined
  /** Handles a process end during a turn; called when the turn is released. */
  #dealWithEnd: (() => unknown) | undefined

  private constructor(
    readonly id: string,
    private readonly context: SessionsContext,
    private readonly held: HeldLog,
    private readonly listener: LiveListener,
  ) {
    this.#bytesBefore = (context.table.get(id)?.journal_bytes ?? 0) - held.log.bytes
    this.binding = new AgentBinding(context, this)
  }

  static async open(id: string, context: SessionsContext, listener: LiveListener): Promise<LiveSession> {
    const held = await context.logs.holdForWriting(id)
    const session = new LiveSession(id, context, held, listener)
    await held.log.digested(session.row.usage).catch(error => session.#report('the use is not counted', error))
    return session
  }

  get row(): SessionRow {
    const row = this.context.table.get(this.id)
    if (!row) throw SessionErrors.session_not_found(`no session ${this.id}`)
    return row
  }

  get log(): SessionLog {
    return this.held.log
  }

  get turn(): Turn | undefined {
    return this.#turn
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }
  /** The stop in progress, if any. */
  get stopping(): Promise<void> | undefined {
    return this.#stopping
  }

  /** The journal has reached its size limit: agent output is no longer stored. */
  get isFull(): boolean {
    return this.#bytesBefore + this.log.bytes > this.context.limits.journalBytes
  }

  /**
   * Begins a turn: checks everything, and returns when the prompt is durable in journal and table, before a missing process is
   * started. Throws when the turn cannot begin; nothing has changed then.
   */
  async begin(request: TurnRequest): Promise<BegunTurn> {
    const turn = this.#reserve(request)
    try {
      const planned = await this.#prepare()
      // A refusal is thrown at once. The agent starts while the prompt is being written, but gets the prompt only afterwards. The
      // writes begin with the next turn of the event loop, and nothing else delays them.
      const opening = Promise.all([this.#change({}, request.begins), turn.open()]).then(() => {})
      await Promise.race([opening, nextTurn()])
      const ended = this.#execute(turn, planned, opening).finally(() => this.#release(turn))
      const outcome = ended.then(one => one.written.then(() => one.outcome))
      // A disk failure reaches the caller through `opening`.
      outcome.catch(() => {})
      await opening
      return { turnId: turn.id, outcome }
    } catch (error) {
      this.#release(turn)
      throw error
    }
  }

  /** Starts the process of a restartable session without a prompt. Throws `session_start_failed` (500). */
  async resume(turnId: string): Promise<void> {
    const turn = this.#reserve({ turnId, text: '', source: 'resume' })
    try {
      const planned = await this.#prepare()
      if (planned) await this.#bind(planned)
    } catch (error) {
      if (!(error instanceof AgentFailure)) throw error
      const failure = await this.binding.failureOf(error, '')
      this.#release(turn)
      await this.stop(stopAfterStart(this.row, failure))
      throw SessionErrors.session_start_failed(`${failure.kind}: ${failure.summary}`, { cause: error })
    } finally {
      this.#release(turn)
    }
  }

  /** Idempotent; resolves when the process group is gone and the stop is durable. */
  stop(how: Stop, steps = STOP_PROCESS): Promise<void> {
    this.#stopping ??= this.#stop(how, steps)
    return this.#stopping
  }

  /** Releases a stopped session that was not restarted. */
  discard(): void {
    if (this.#turn || this.#stopping || this.row.state !== 'stopped') return
    this.#abort.abort(new Error('the session is stopped'))
    this.listener.gone()
    this.held.release()
  }

  toolEnded(): void {
    this.listener.toolEnded()
  }

  /** Handles a process that exited by itself. During a turn the turn reports it, unless only its writes were left. */
  agentEnded(failure: AgentFailure, code: number | null): void {
    if (this.#stopping) return
    this.#dealWithEnd = undefined
    if (this.#turn) {
      const { running } = this.binding
      this.#dealWithEnd = () => this.binding.running === running && this.agentEnded(failure, code)
      return
    }
    const deal = async () => {
      if (code !== 0) return this.#crashed(failure, await this.binding.failureOf(failure, ''))
      await this.binding.end(END_PROCESS)
      this.#warn('', 'agent_exited', 'the agent ended by itself; the next prompt starts it again')
    }
    deal().catch(error => this.#report('a session could not be stopped after its agent ended', error))
  }

  #reserve(request: TurnRequest): Turn {
    if (this.signal.aborted) throw SessionErrors.session_stopped('this session is being stopped')
    if (!canBegin(this.row)) throw SessionErrors.session_stopped(stateText(this.row))
    if (this.#turn) throw SessionErrors.session_busy()
    const heartbeat = (at: number) =>
      void this.#change({ last_activity_at: at }).catch(error => this.#report('no heartbeat', error))
    this.#turn = new Turn(request, this.binding.turnContext(heartbeat))
    this.listener.works()
    return this.#turn
  }

  #release(turn: Turn): void {
    if (this.#turn === turn) this.#turn = undefined
    turn.close()
    this.log.wake()
    this.context.health.note(this.id)
    if (!this.#turn) this.#dealWithEnd?.()
    if (!this.#turn) this.listener.rests()
    if (!this.#turn && !this.binding.running) this.context.slots.give(this)
  }

  /** The plan for the start of a process; undefined when one runs. A stopped session is `starting` afterwards. */
  async #prepare(): Promise<Launch | undefined> {
    if (this.binding.isOutdated) await this.binding.end(END_PROCESS)
    if (this.binding.running) return undefined
    await this.context.slots.take(this)
    const planned = await planLaunch(this.context, this.row)
    if (this.row.state === 'stopped') await checkResume(this.context, this.row)
    if (this.signal.aborted) throw SessionErrors.session_stopped('this session is being stopped')
    if (this.row.state === 'stopped') await this.#change({ state: walk('stopped', 'starting') })
    return planned
  }

  async #execute(turn: Turn, planned: Launch | undefined, opening: Promise<void>): Promise<WrittenTurn> {
    try {
      if (planned) await this.#bind(planned, turn.request.sends)
      await this.binding.takeRuntime(turn.request.runtime)
      const agent = this.binding.running?.agent
      if (!agent) throw new AgentFailure('process_exit', 'the agent ended before the prompt reached it')
      const leftOut = (why: string) => this.#warn(turn.id, 'attachment_left_out', why)
      const files = await blocksOf(this.context.attachments, this.id, turn.request, agent.session.prompts, leftOut)
      const prompt = await assembled(this.context, this.row, this.binding.texts(turn.request.text), turn.request)
      return await this.#afterTurn(turn, await turn.run(agent, prompt, opening, files))
    } catch (error) {
      const failure = failureFrom(error)
      const ended = await turn.fail(failure)
      if (this.binding.running) return this.#afterTurn(turn, ended)
      await this.#change({}, t => turn.request.ends?.(t, ended.outcome.status))
      this.#release(turn)
      if (ended.outcome.status === 'failed') await this.stop(stopAfterStart(this.row, ended.outcome.failure))
      return { outcome: withStop(ended.outcome), written: Promise.resolve() }
    }
  }

  async #bind(planned: Launch, also?: (t: Tx) => void): Promise<void> {
    await stopTold(this.context, this.id)
    const running = await this.binding.start(planned)
    await this.#change(startedChange(this.row, planned, running), also)
  }

  /** Completes a turn. A stop begins before the turn is released, so that no other turn can begin in between. */
  async #afterTurn(turn: Turn, { outcome, stuck, cancel, failure }: EndedTurn): Promise<WrittenTurn> {
    this.binding.endTurn(turn)
    const { context, row, log } = this
    const written = this.#change(changeAfter(context, row, turn, log.digest, this.binding.updates.title), t => {
      turn.request.ends?.(t, outcome.status)
      counting(context, row, log.digest)(t)
    })
    // Callers that wait for the end await this write. The next turn does not, because its own writes follow these in order.
    written.catch(() => {})
    const known = outcome.status === 'failed' ? outcome.failure : undefined
    let stopped: Promise<void> | undefined
    if (!this.signal.aborted) {
      if (failure && isProcessFailure(failure)) stopped = this.#crashed(failure, known ?? this.binding.plain(failure))
      else if (failure?.wantsLogin || (stuck && cancel === 'user')) {
        await this.binding.end(END_PROCESS)
        this.#warn(turn.id, ...endedBecause(failure))
      } else if (stuck) {
        // An external stop signal is not the agent's fault, so a prompt may start it again.
        const reason = cancel === 'frozen' ? 'agent_crashed' : 'timeout'
        stopped = this.stop({ reason, detail: cancel, failure: known }, END_PROCESS)
      }
    }
    this.#release(turn)
    await stopped
    return { outcome: stopped ? withStop(outcome) : outcome, written }
  }

  #crashed(failure: AgentFailure, plain: SessionFailure): Promise<void> {
    const reason = failure.kind === 'protocol_failure' ? 'error' : 'agent_crashed'
    return this.stop({ reason, detail: plain.summary, failure: plain }, END_PROCESS)
  }

  async #stop(how: Stop, steps: typeof STOP_PROCESS): Promise<void> {
    const { kernel } = this.context
    const { state } = this.row
    // Aborted first, so that nothing new begins from here on.
    this.#abort.abort(new Error('the session is being stopped'))
    if (state === 'active') await this.#change({ state: walk(state, 'stopping') })
    const turn = this.#turn
    turn?.cancel('stop')
    const turnEnds = async () => turn && within(kernel.clock, STOP_CANCEL_MS, turn.over).catch(() => {})
    await turnEnds()
    await this.binding.end(steps)
    await turnEnds()
    try {
      await writeStop(this.context, this.id, this.log, how)
    } catch (error) {
      this.#report('the end of a session could not be written to its journal', error)
    }
    const bytes = this.#bytesBefore + this.log.bytes
    const info = await recordStop(this.context, this.id, how, { bytes, digest: this.log.digest })
    this.context.slots.give(this)
    this.listener.gone()
    this.log.wake()
    this.held.release()
    if (info) await tellStop(this.context, info)
  }

  /** Updates the row, with the other writes of the same transaction. */
  async #change(change: SessionChange, also?: (t: Tx) => void): Promise<void> {
    const { kernel, table } = this.context
    await kernel.db.tx(t => {
      table.update(t, this.id, { ...change, updated_at: kernel.clock.now() })
      also?.(t)
    })
    this.context.health.note(this.id)
  }

  #warn(turnId: string, warning: string, text: string): void {
    this.log.append({ type: 'runtime_warning', turnId, content: { warning, text } })
  }

  #report(text: string, error: unknown): void {
    this.context.kernel.log.error(text, { id: this.id, error: messageOf(error) })
  }
}

const withStop = (outcome: TurnOutcome): TurnOutcome =>
  outcome.status === 'failed' ? { ...outcome, stopped: true } : outcome
