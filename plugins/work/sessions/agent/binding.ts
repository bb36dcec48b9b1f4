import { Serial } from '../../../../kernel/kit/serial.js'
import { type Clock, iso, messageOf } from '../../../../kernel/plugin.js'
import type { RuntimeSelection } from '../../../../schemas/sessions.js'
import {
  type AgentFailure,
  chooseRuntime,
  type EventContent,
  isProcessFailure,
  type Permissions,
  type Pulse,
  pulseOf,
  type SessionGuard,
  type Watched,
} from '../../acp/api.js'
import type { SessionFailure } from '../api.js'
import type { SessionsContext } from '../context.js'
import { GOAL } from '../goal/goal.js'
import type { SessionLog } from '../journal/session-log.js'
import { summarize } from '../read/transcript.js'
import { otherProviderOf, providerOf, wishOf } from '../runtime/selection.js'
import type { SessionRow } from '../table.js'
import { type ToolCall, ToolCalls } from '../turn/tool-calls.js'
import type { Turn, TurnContext } from '../turn/turn.js'
import { Updates } from '../turn/updates.js'
import { infoOf } from '../wire.js'
import { plainFailure, writeCrashBundle } from './crash-bundle.js'
import { type Launch, launch, type RunningAgent, renewed } from './launch.js'

/** The session as its agent binding sees it. */
export interface BindingOwner {
  readonly id: string
  readonly log: SessionLog
  readonly row: SessionRow
  readonly turn: Turn | undefined
  /** Aborts when a stop of the session begins. */
  readonly signal: AbortSignal
  /** The journal reached its size limit: agent output is no longer stored. */
  readonly isFull: boolean
  /** A tool call of the running turn has its result. */
  toolEnded(): void
  /** The process exited by itself between turns. */
  agentEnded(failure: AgentFailure, code: number | null): void
}

/** Turn sources with a person on the other side who follows the turn. */
const ATTENDED: ReadonlySet<string> = new Set(['user', 'bridge', GOAL])

/** The agent process of a session, while it has one, and the updates that it sends. */
export class AgentBinding implements Watched {
  readonly updates: Updates
  #running: RunningAgent | undefined
  /** Sent with the next prompt, because the new process does not know the conversation. */
  #preamble: string | undefined
  /** The briefing that the agent has; undefined when that cannot be known. */
  #sentBriefing: string | undefined
  /** Tool calls and ID of the last turn: an agent may still send updates after its turn has ended. */
  #lastCalls = new ToolCalls()
  #lastTurnId = ''
  #isFullReported = false
  #isUnaskedReported = false
  /** The process for which the warning about an unheld guard is already in the transcript. */
  #unheldReportedFor: RunningAgent | undefined
  readonly #checks: ProcessChecks
  #ending: Promise<void> | undefined
  /** The runtime wanted of the running process, and the provider chosen for it. */
  #requestedRuntime: string | undefined
  #chosenProvider: string | undefined

  /** The current guards by owner. They are kept here because a guard may be set before the process runs. */
  readonly #guards = new Map<string, SessionGuard | undefined>()
  readonly #guardChanges = new Serial()

  constructor(
    private readonly context: SessionsContext,
    private readonly owner: BindingOwner,
  ) {
    this.#checks = new ProcessChecks(context.kernel.clock)
    this.updates = new Updates(
      owner,
      context,
      () => this.#running?.agent.session.acpSessionId,
      id => this.#running?.terminals.printed(id),
    )
  }

  get running(): RunningAgent | undefined {
    return this.#running
  }

  /** The turn's view of the session. It reads the current process, which may be replaced during the turn. */
  turnContext(heartbeat: (at: number) => void): TurnContext {
    const { kernel, limits, attachments } = this.context
    const { log } = this.owner
    return {
      clock: kernel.clock,
      limits,
      files: ids => attachments.named(this.owner.id, ids),
      append: (event, sync = false) => log.append(event, { sync }),
      sync: () => log.sync(),
      waitsForPerson: () => this.waitsForPerson,
      pulse: () => this.pulse(),
      expired: turnId => this.#running?.permissions.expiredIn(turnId) ?? 0,
      releaseWaiting: () => this.#releaseWaiting(),
      closing: id => this.updates.endTurn(id),
      failureOf: (failure, id) => this.failureOf(failure, id),
      heartbeat,
      stoodStill: (checks, isLast) => this.#failed(checks, isLast),
    }
  }

  /** State of the process group in the operating system; undefined without a process. */
  pulse(): Pulse | undefined {
    return this.#running && pulseOf(this.#running.agent.handle.pid)
  }

  /**
   * The number of consecutive checks that found the process unresponsive, once it is stale; undefined when it responds or there
   * is none.
   */
  get standstill(): { readonly looks: number } | undefined {
    this.context.watch.look()
    return this.#checks.isStale ? { looks: this.#checks.failed } : undefined
  }

  /** Time of the last sign of life of the process, in epoch milliseconds; undefined without a process. */
  get presentAt(): number | undefined {
    this.context.watch.look()
    return this.#running && this.#checks.presentAt
  }

  /** The agent waits for a permission or for an answer to a question. */
  get waitsForPerson(): boolean {
    return [this.#running?.permissions, this.#running?.clarifications].some(
      requests => (requests?.pending.length ?? 0) > 0,
    )
  }

  /** The provider choice changed since the process was started. */
  get isOutdated(): boolean {
    return this.#running !== undefined && otherProviderOf(this.owner.row) !== this.#chosenProvider
  }

  #warn(warning: string, text: string): void {
    this.owner.log.append({ type: 'runtime_warning', turnId: this.owner.turn?.id ?? '', content: { warning, text } })
  }

  #releaseWaiting(): void {
    this.#running?.permissions.endTurn()
    this.#running?.clarifications.endTurn()
  }

  get group(): number {
    return this.#running?.agent.handle.pid ?? 0
  }

  looked(runs: boolean): void {
    const before = this.#checks.isStale
    if (runs) this.#checks.alive()
    else {
      this.#checks.stoodStill(this.context.health.staleAfterMs)
      // During a turn, its supervision checks more often and ends an unresponsive process itself.
      if (!this.owner.turn) this.#failed(this.#checks.failed, false)
    }
    if (this.#checks.isStale !== before) this.context.health.note(this.owner.id)
  }

  #failed(checks: number, isLast: boolean): void {
    void this.context.points.healthCheckFailed.call(infoOf(this.owner.row), checks, isLast)
  }

  /** The texts of a prompt. The preamble precedes the first prompt; a changed briefing precedes the next one. */
  texts(prompt: string): string[] {
    const preamble = this.#preamble
    this.#preamble = undefined
    const { text } = this.context.briefings.of(this.owner.id)
    const renewal = text === this.#sentBriefing ? [] : [renewed(text)]
    this.#sentBriefing = text
    return [...(preamble === undefined ? [] : [preamble]), ...renewal, prompt]
  }

  /** Starts the process; a restart is recorded in the transcript. Throws AgentFailure or a fault. */
  async start(launchPlan: Launch): Promise<RunningAgent> {
    const { owner } = this
    const { row } = owner
    const before = providerOf(row)
    const { provider } = launchPlan.plan
    // Session IDs belong to one provider: another provider cannot load them.
    const load = provider === before ? (row.acp_session_id ?? undefined) : undefined
    this.#chosenProvider = otherProviderOf(row)
    const briefing = this.context.briefings.of(row.id)
    this.#guards.clear()
    const running = await launch(this.context, row, infoOf(row), launchPlan, load, briefing.text, {
      signal: owner.signal,
      turnId: () => owner.turn?.id,
      isAttended: () => ATTENDED.has(owner.turn?.request.source ?? ''),
      known: id => (owner.turn?.calls ?? this.#lastCalls).whole(id),
      record: (turnId, content) => {
        owner.log.append({ type: 'permission', turnId, content }, { sync: true })
        owner.turn?.touch('permission')
      },
      note: (turnId, content) => {
        owner.log.append({ type: 'system', turnId, content }, { sync: true })
        owner.turn?.touch('clarification')
      },
      warn: (turnId, content) => void owner.log.append({ type: 'runtime_warning', turnId, content }),
      update: params => this.#take(params),
      room: () => owner.log.room(),
      activity: () => owner.turn?.touch(),
    })
    this.#running = running
    this.#requestedRuntime = undefined
    this.#isUnaskedReported = running.unheld !== undefined
    if (running.unheld !== undefined) this.#warn('permission_never_asked', running.unheld)
    // Guards that were set while the process started.
    for (const [name, guard] of this.#guards) await this.guard(name, guard)
    if (running.confinement?.kind === 'none') {
      const content = { warning: 'sandbox_unavailable', text: `not in a sandbox: ${running.confinement.reason}` }
      owner.log.append({ type: 'runtime_warning', turnId: owner.turn?.id ?? '', content })
    }
    this.#checks.alive()
    this.context.watch.add(this)
    const { session } = running.agent
    this.#sentBriefing = session.loaded && briefing.changed ? undefined : briefing.text
    const restart = { before, provider, load }
    this.#preamble = session.loaded
      ? undefined
      : await openingText(running, owner.log, owner.turn?.sequence, restart, row)
    const content = restartMarker(restart, running.agent)
    if (content) owner.log.append({ type: 'transcript_marker.created', turnId: owner.turn?.id ?? '', content })
    void running.agent.ended.then(async failure => {
      const { code } = running.agent.handle.alive ? { code: null } : await running.agent.handle.exited
      if (!running.agent.stopping && this.#running === running) owner.agentEnded(failure, code)
    })
    return running
  }

  /** Replaces or removes the guard of an owner, on the running process or on the one being started. */
  guard(owner: string, guard: SessionGuard | undefined): Promise<void> {
    this.#guards.set(owner, guard)
    return this.#guardChanges.run(async () => {
      const running = this.#running
      if (!running || running.guards.of(owner)?.by === guard?.by) return
      // A new guard may not hold where the mode allowed unasked calls, so the next one is reported again.
      if (guard?.isRequired || running.permissions.mode === 'approve-all') this.#isUnaskedReported = false
      await changeGuard(running, owner, guard)
      const { unheld } = running.guards
      if (!guard || guard.isRequired || unheld === undefined || this.#unheldReportedFor === running) return
      this.#unheldReportedFor = running
      this.#warn('permission_never_asked', `${guard.by} does not restrict the agent's own tools: ${unheld}`)
    })
  }

  /** Ends the process and its group. Waits for an end that is already in progress. */
  async end(options: { readonly graceMs: number; readonly termMs: number }): Promise<void> {
    const running = this.#running
    this.#running = undefined
    this.#checks.isStale = false
    this.context.watch.delete(this)
    if (!running) return this.#ending
    running.permissions.endTurn()
    running.clarifications.endTurn()
    const stopped = Promise.all([running.terminals.close(), running.agent.stop(options)])
    this.#ending = stopped.then(() => this.context.slots.give(this.owner))
    return this.#ending
  }

  /**
   * Gives the agent the runtime wanted of it, unless it has it. Refused choices are recorded in the transcript.
   * @param ofTurn for one turn alone
   */
  async takeRuntime(ofTurn?: RuntimeSelection | null): Promise<void> {
    const running = this.#running
    const { kernel, table } = this.context
    const requested = wishOf(this.owner.row, ofTurn)
    const requestedKey = JSON.stringify(requested)
    if (!running || this.isOutdated || this.#requestedRuntime === requestedKey) return
    const effective = await chooseRuntime(running.agent, requested)
    this.#requestedRuntime = requestedKey
    if (effective.unmet.length > 0)
      this.#warn('runtime_not_taken', `settings that could not be applied: ${effective.unmet.join('; ')}`)
    await kernel.db.tx(t =>
      table.update(t, this.owner.id, { effective: JSON.stringify({ ...effective, provider: running.provider }) }),
    )
  }

  /** Ends the turn. Later updates count as part of it until the next turn begins. */
  endTurn(turn: Turn): void {
    this.updates.endTurn(turn.id)
    this.#checks.alive()
    this.#lastCalls = turn.calls
    this.#lastTurnId = turn.id
  }

  /** The failure for people, without a crash bundle. */
  plain(failure: AgentFailure): SessionFailure {
    return plainFailure(failure, this.context.kernel.redact)
  }

  /** The failure for people; when the process failed, with a crash bundle. */
  async failureOf(failure: AgentFailure, turnId: string): Promise<SessionFailure> {
    const { kernel } = this.context
    const { row, signal } = this.owner
    const { kind, summary } = this.plain(failure)
    kernel.log.warn('an agent failed', { session: row.id, agent: row.agent_name, kind, reason: summary })
    if (!isProcessFailure(failure) || signal.aborted) return { kind, summary }
    const program = failure.startedWith ?? this.#running
    try {
      const report = {
        sessionId: row.id,
        agentName: row.agent_name,
        workspaceId: row.workspace_id,
        turnId,
        argv: program?.argv ?? [],
        cwd: program?.cwd ?? row.workspace_path,
        env: program?.env ?? {},
        ...failure.lastWords,
        at: iso(kernel.clock.now()),
      }
      return await writeCrashBundle(`${kernel.home.logs}/crash-bundles`, failure, report, kernel.redact)
    } catch (error) {
      kernel.log.error('a crash bundle could not be written', { id: row.id, error: messageOf(error) })
      return this.plain(failure)
    }
  }

  #take(params: unknown): void {
    const { owner } = this
    const target = this.#target()
    if (!owner.isFull) {
      this.updates.take(params, target)
      return
    }
    this.updates.count(params)
    target.touched('left_out', 'the journal is full')
    if (this.#isFullReported) return
    this.#isFullReported = true
    const text = 'the journal is full; further output of the agent is not stored'
    const content = { warning: 'journal_full', text }
    owner.log.append({ type: 'runtime_warning', turnId: target.turnId, content })
  }

  /**
   * Warns once per process that the permission mode does not hold because the agent's own tools act without asking. Under a
   * required guard the process ends: its next operation would bypass the guard as well.
   */
  #judgeUnasked(call: ToolCall, turnId: string): void {
    const permissions = this.#running?.permissions
    if (this.#isUnaskedReported || call.status !== 'completed' || !permissions?.wasUnasked(call)) return
    this.#isUnaskedReported = true
    const { requiredGuard } = permissions
    if (requiredGuard !== undefined)
      this.#running?.agent.breakOff(
        'permission_failure',
        `the agent did "${call.title}" without asking, although ${requiredGuard} must approve each operation`,
      )
    this.owner.log.append({ type: 'runtime_warning', turnId, content: unaskedWarning(call, permissions) })
  }

  #target() {
    const { turn } = this.owner
    return {
      turnId: turn?.id ?? this.#lastTurnId,
      calls: turn?.calls ?? this.#lastCalls,
      touched: (kind: string, detail: string) => turn?.touch(kind, detail),
      toolEnded: (call: ToolCall) => {
        this.#judgeUnasked(call, turn?.id ?? this.#lastTurnId)
        if (turn) this.owner.toolEnded()
      },
    }
  }
}

/** Results of the periodic checks of a process between turns. */
class ProcessChecks {
  /** Monotonic time of the last sign of life. */
  #respondedAt = 0
  /** Time of the last sign of life in epoch milliseconds, for people. */
  presentAt = 0
  /** Consecutive checks that found the process unresponsive. */
  failed = 0
  isStale = false

  constructor(private readonly clock: Clock) {}

  alive(): void {
    this.#respondedAt = this.clock.monotonic()
    this.presentAt = this.clock.now()
    this.failed = 0
    this.isStale = false
  }

  stoodStill(staleAfterMs: number): void {
    this.failed++
    this.isStale = this.clock.monotonic() - this.#respondedAt > staleAfterMs
  }
}

/**
 * Sets or removes a guard of an owner on a running agent, and switches the agent to its asking mode or back. A process that cannot
 * be made to ask continues; under a required guard it ends at the first edit for which it did not ask.
 */
export async function changeGuard(
  running: RunningAgent,
  owner: string,
  guard: SessionGuard | undefined,
): Promise<void> {
  const { agent, permissions, guards, cannotAsk } = running
  const before = running.asksIn(permissions.mode)
  const wasUnheld = guards.unheld
  guards.set(owner, guard)
  guards.unheld = guards.first === undefined ? undefined : (wasUnheld ?? cannotAsk)
  if (guards.unheld !== undefined) return
  try {
    agent.checkAsks()
    const mode = running.asksIn(permissions.mode)
    if (mode !== before) await agent.changeMode(mode)
  } catch (error) {
    if (guards.first) guards.unheld = messageOf(error)
  }
}

const SUMMARY_CHARACTERS = 16_000

/** Reason for which a new process does not know the conversation; undefined for the first process of a session. */
interface Restart {
  /** The provider of the previous process, and the one of this process. */
  readonly before: string
  readonly provider: string
  /** The session ID that the agent was asked to load. */
  readonly load: string | undefined
}

/** The transcript marker for a restart. */
function restartMarker(
  { before, provider, load }: Restart,
  { session }: RunningAgent['agent'],
): EventContent | undefined {
  if (provider !== before) return { marker: 'provider_changed', from: before, to: provider }
  return load === undefined
    ? undefined
    : { marker: 'session_restarted', loaded: session.loaded, reason: session.loadFailure }
}

/** The texts before the first prompt: the start-up instructions, and a summary of the conversation so far. */
async function openingText(
  { preamble }: RunningAgent,
  log: SessionLog,
  upTo: number | undefined,
  { before, provider, load }: Restart,
  { epoch, forked_from }: SessionRow,
): Promise<string> {
  const isOtherProvider = provider !== before
  const hasHistory = isOtherProvider || load !== undefined || epoch > 0 || forked_from !== null
  const summary = hasHistory ? await summarize(log, SUMMARY_CHARACTERS, upTo) : ''
  if (summary === '') return preamble
  const why = isOtherProvider
    ? `Until now, ${before} worked on this. `
    : load === undefined
      ? ''
      : 'This session was interrupted. '
  return `${preamble}\n\n${why}The conversation so far, shortened:\n\n${summary}`
}

/** A warning about a tool call for which its agent should have asked. */
function unaskedWarning(
  call: ToolCall,
  { mode, tools, guardedBy }: Pick<Permissions, 'mode' | 'tools' | 'guardedBy'>,
): EventContent {
  const lacking = tools.lacking(call.kind, call, call.fields)
  const ofMode = mode === 'approve-all' && guardedBy !== undefined ? guardedBy : `permissions=${mode}`
  const rule = lacking === undefined ? ofMode : `that the session has no tool ${lacking}`
  const text = `the agent did "${call.title}" without asking: ${rule} does not restrict its own tools; configure this in the agent, or trust the agent with the workspace`
  return { warning: 'permission_not_asked', text }
}
