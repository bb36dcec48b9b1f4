import { type Clock, messageOf, type Tx } from '../../../../kernel/plugin.js'
import type { RuntimeSelection } from '../../../../schemas/sessions.js'
import { AgentFailure, type Block, type EventContent, type Pulse } from '../../acp/api.js'
import type { SessionFailure, TurnOutcome } from '../api.js'
import type { NewEvent } from '../events.js'
import type { AssembledPrompt } from '../points.js'
import type { SessionLimits } from '../settings.js'
import { closing } from './closing.js'
import { expiryOf } from './expiry.js'
import { promptEvent } from './prompts.js'
import { Supervision } from './supervision.js'
import { ToolCalls } from './tool-calls.js'

/** Activity that counts as an answer: text or work. A thought or a plan alone does not count. */
const SEEN: ReadonlySet<string> = new Set(['agent_message', 'tool_call', 'permission', 'left_out'])
/** Some agents report success for a turn whose model failed. */
const EMPTY = {
  warning: 'empty_turn',
  text: 'the agent ended its turn without output: its model may have failed; check its login and its model',
}

/** Reason for which a turn is to end before its agent ends it. */
export type CancelReason = 'user' | 'stop' | 'frozen' | 'activity_timeout' | 'turn_timeout' | 'max_iterations'

/** The input of a turn, and additional writes in the transactions of its begin and end. */
export interface TurnRequest {
  readonly turnId: string
  readonly text: string
  readonly source: string
  /** Message ID of the prompt, if it has one. */
  readonly messageId?: string | undefined
  /** IDs of the attached files. */
  readonly attachments?: readonly string[] | undefined
  /** Texts for the agent before the prompt, as JSON. */
  readonly contextBlocks?: string | null | undefined
  /** The person on whose behalf a plugin prompts, as JSON. */
  readonly onBehalfOf?: string | null | undefined
  /** ID of the event or request that led to it. */
  readonly cause?: string | null | undefined
  /** Runtime for this turn only. */
  readonly runtime?: RuntimeSelection | null | undefined
  begins?(t: Tx): void
  /**
   * Called after the start of a process, in a write before the agent gets the prompt. Not called for a process that runs already.
   */
  sends?(t: Tx): void
  ends?(t: Tx, status: TurnOutcome['status']): void
}

/** A turn that has begun. */
export interface BegunTurn {
  readonly turnId: string
  readonly outcome: Promise<TurnOutcome>
}

/** A turn that ended, and whether its agent ignored the cancel. */
export interface EndedTurn {
  readonly outcome: TurnOutcome
  /** The agent continued after the grace period of a cancel: its process has to be ended. */
  readonly stuck: boolean
  readonly cancel: CancelReason | undefined
  /** The failure of the process, when that ended the turn. */
  readonly failure: AgentFailure | undefined
}

/** A turn that is over for its session; `written` resolves when its rows are durable. */
export interface WrittenTurn extends Pick<EndedTurn, 'outcome'> {
  readonly written: Promise<void>
}

/** The session as its turn sees it. */
export interface TurnContext {
  readonly clock: Clock
  readonly limits: SessionLimits
  /** The journal form of the files attached to a prompt. */
  files(ids: readonly string[]): readonly EventContent[]
  /** Returns the sequence of the event. */
  append(event: NewEvent, sync?: boolean): number
  sync(): Promise<void>
  /** A person is being asked, so the agent is not responsible for the silence. */
  waitsForPerson(): boolean
  /** State of the agent's processes; undefined when it cannot be known. */
  pulse(): Pulse | undefined
  /** Number of questions of the turn that expired without an answer. */
  expired(turnId: string): number
  /** Answers the pending questions with `cancelled`. */
  releaseWaiting(): void
  /** Writes the remaining events of the turn once the agent is done. */
  closing(turnId: string): void
  /** The failure, with a crash bundle when the process failed. */
  failureOf(failure: AgentFailure, turnId: string): Promise<SessionFailure>
  /** Called periodically while the session is alive, only when there was activity since the last call. */
  heartbeat(at: number): void
  stoodStill(looks: number, isLast: boolean): void
}

/** The agent as its turn sees it. */
export interface TurnAgent {
  prompt(texts: readonly string[], files?: readonly Block[], meta?: AssembledPrompt['meta']): Promise<string>
  cancel(): Promise<void>
}

/** One prompt and everything that follows from it until the agent is done. */
export class Turn {
  readonly calls = new ToolCalls()
  readonly startedAt: number
  /** Epoch milliseconds. */
  lastActivityAt: number
  lastActivity = { kind: 'prompt', detail: '' }
  /** Sequence of its `user_message`; undefined for a turn without a prompt. */
  sequence: number | undefined
  /** Resolves when the turn is closed: it ended, or could not begin. */
  readonly over: Promise<void>
  #settleOver: () => void = () => {}
  readonly #supervision: Supervision
  #cancel: CancelReason | undefined
  /** The turn has produced output that a person can see. */
  #showed = false
  #agent: TurnAgent | undefined
  #overdue: () => void = () => {}
  #grace: { cancel(): void } | undefined
  #isEnding = false

  constructor(
    readonly request: TurnRequest,
    private readonly context: TurnContext,
  ) {
    this.startedAt = context.clock.now()
    this.lastActivityAt = this.startedAt
    this.#supervision = new Supervision({
      clock: context.clock,
      limits: context.limits,
      waitsForPerson: () => context.waitsForPerson(),
      toolRuns: () => this.calls.current !== undefined,
      pulse: () => context.pulse(),
      heartbeat: () => context.heartbeat(this.lastActivityAt),
      say: (type, content) =>
        context.append({ type, turnId: this.id, content: { ...content, last_activity: this.lastActivity.kind } }),
      expired: limit => this.cancel(limit),
      stoodStill: (looks, isLast) => context.stoodStill(looks, isLast),
      frozen: () => this.#freeze(),
    })
    this.over = new Promise(resolve => {
      this.#settleOver = resolve
    })
  }

  get id(): string {
    return this.request.turnId
  }

  /** The agent is done; the turn is over once its end is stored. */
  get isEnding(): boolean {
    return this.#isEnding
  }

  /** Deadline in epoch milliseconds and maximum number of tool calls; absent without such a limit. */
  get limits(): { readonly deadline?: number; readonly iterations?: number } {
    const { turnTimeout, maxIterations } = this.context.limits
    return {
      ...(turnTimeout > 0 && { deadline: this.startedAt + turnTimeout }),
      ...(maxIterations > 0 && { iterations: maxIterations }),
    }
  }

  get cancelReason(): CancelReason | undefined {
    return this.#cancel
  }

  /** No more output is expected. */
  get stalled(): boolean {
    return this.#supervision.stalled
  }

  /** Records output of the agent. */
  touch(kind?: string, detail = ''): void {
    this.lastActivityAt = this.context.clock.now()
    this.#supervision.touch()
    const { maxIterations: most } = this.context.limits
    if (most > 0 && this.calls.startedCount > most) this.cancel('max_iterations')
    if (kind === undefined) return
    this.lastActivity = { kind, detail }
    if (SEEN.has(kind)) this.#showed = true
  }

  /** Requests the end of the turn; the agent has a grace period to answer. */
  cancel(reason: CancelReason): void {
    if (this.#cancel !== undefined) {
      // A stop overrides an earlier cancel.
      if (reason === 'stop') this.#cancel = reason
      return
    }
    this.#cancel = reason
    this.context.releaseWaiting()
    void this.#agent?.cancel()
    this.#grace = this.context.clock.timeout(this.context.limits.cancelGrace, () => this.#overdue(), { unref: true })
  }

  /** Stopped processes cannot receive a cancel, so there is no grace period. */
  #freeze(): void {
    if (this.#cancel !== 'stop') this.#cancel = 'frozen'
    this.#overdue()
  }

  /** Writes the prompt to the journal; resolves when it is durable. The sender gets no reply before that. */
  async open(): Promise<void> {
    const { messageId, contextBlocks = null, onBehalfOf = null, attachments = [], cause } = this.request
    const event = promptEvent({
      ...this.request,
      turn_id: this.id,
      message_id: messageId,
      context_blocks: contextBlocks,
      on_behalf_of: onBehalfOf,
      files: this.context.files(attachments),
    })
    this.sequence = this.context.append({ ...event, cause }, true)
    await this.context.sync()
  }

  /**
   * Runs the turn to its end, after `opening` says that the prompt is durable. `texts` may contain instructions before the prompt
   * that only the agent sees. Never throws for errors of the agent.
   */
  async run(
    agent: TurnAgent,
    { texts, meta }: Pick<AssembledPrompt, 'texts' | 'meta'>,
    opening: Promise<void>,
    files: readonly Block[] = [],
  ): Promise<EndedTurn> {
    await opening
    this.#agent = agent
    this.touch('prompt')
    const overdue = new Promise<'overdue'>(resolve => {
      this.#overdue = () => resolve('overdue')
    })
    // A cancel during the start of the process ends the turn before the agent gets the prompt.
    const answer = this.#cancel
      ? Promise.resolve('cancelled')
      : agent.prompt(texts, files, meta).catch((error: unknown) => failureFrom(error))
    this.#supervision.watch()
    const result = await Promise.race([answer, overdue])
    return this.#conclude(result === 'overdue' ? undefined : result, result === 'overdue')
  }

  /** Records a turn that could not begin. */
  async fail(failure: AgentFailure): Promise<EndedTurn> {
    return this.#conclude(failure, false)
  }

  async #conclude(result: string | AgentFailure | undefined, stuck: boolean): Promise<EndedTurn> {
    this.#isEnding = true
    this.#clearTimers()
    this.context.releaseWaiting()
    const cancel = this.#cancel
    const failure = result instanceof AgentFailure ? result : undefined
    const outcome = await this.#outcome(result, stuck)
    if (outcome.status !== 'completed') {
      const why = outcome.status === 'failed' ? outcome.error : 'the turn was canceled'
      for (const event of this.calls.abandon(this.id, why)) this.context.append(event)
    }
    this.context.closing(this.id)
    if (outcome.status === 'completed' && !this.#showed)
      this.context.append({ type: 'runtime_warning', turnId: this.id, content: EMPTY })
    this.context.append(closing(outcome, this.#supervision.elapsedMs), true)
    await this.context.sync()
    return { outcome, stuck, cancel, failure }
  }

  /** Clears the timers and resolves {@link over}. */
  close(): void {
    this.#clearTimers()
    this.#settleOver()
  }

  #clearTimers(): void {
    this.#supervision.close()
    this.#grace?.cancel()
  }

  async #outcome(result: string | AgentFailure | undefined, stuck: boolean): Promise<TurnOutcome> {
    const turnId = this.id
    const expiry = expiryOf(this.#cancel, this.context.limits)
    if (expiry && (stuck || typeof result === 'string' || result?.kind === 'prompt_failure')) {
      const { kind, error, summary } = expiry
      return { status: 'failed', turnId, error, failure: { kind, summary } }
    }
    const isRequested = this.#cancel === 'user' || this.#cancel === 'stop'
    // Some agents answer a cancel with an error or with success, and an agent that is being stopped exits instead.
    if (result === 'cancelled' || isRequested) return { status: 'canceled', turnId }
    if (result instanceof AgentFailure) {
      const failure = await this.context.failureOf(result, turnId)
      return { status: 'failed', turnId, error: `${failure.kind}: ${failure.summary}`, failure }
    }
    const expired = this.context.expired(turnId)
    return { status: 'completed', turnId, stopReason: result ?? 'end_turn', ...(expired > 0 && { expired }) }
  }
}

/** Turns any error into a failure of the agent. */
export function failureFrom(error: unknown): AgentFailure {
  return error instanceof AgentFailure ? error : new AgentFailure('unknown_failure', messageOf(error), error)
}
