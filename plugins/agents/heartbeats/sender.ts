import { Fault, type Gate, messageOf, type Notify } from '../../../kernel/plugin.js'
import type { Heartbeat, WakeDecision, WakeSource } from '../../../schemas/agents/sidecars.js'
import { durationMs } from '../../../schemas/duration.js'
import type { PolicyDiagnostic, WakeReason } from '../../../schemas/sessions.js'
import type { SessionInfo, TurnOutcome } from '../../work/sessions/api.js'
import { HeartbeatSent, type Wake } from './api.js'
import { LATE_MS, pauseMs, RESULTS, refusalOf } from './decide.js'
import type { K } from './needs.js'
import { wakePrompt } from './prompt.js'
import type { WakeRow, Wakes } from './wakes.js'
import { Schedule, ZoneClocks } from './windows.js'

/** A requested wake-up. */
export interface WakeRequest {
  readonly agent: string
  readonly policy: Heartbeat
  /** Empty: any eligible session. */
  readonly sessionId: string
  /** Undefined: the agent has no such session. */
  readonly session: SessionInfo | undefined
  /** Workspace of the request. */
  readonly workspaceId: string
  readonly source: WakeSource
  /** Whether the limit of the cycle is reached. */
  readonly spent?: boolean
  readonly dryRun?: boolean | undefined
  readonly key?: string | undefined
}

/** Result of sending; `problem` has details. */
interface Sent {
  readonly reason: WakeReason
  readonly turn?: { readonly turnId: string; readonly outcome: Promise<TurnOutcome> }
  readonly problem?: string
  readonly notes?: readonly PolicyDiagnostic[]
}

/** Decides about wake-ups and sends them; all requests pass through it. */
export class WakeSender {
  readonly #clocks = new ZoneClocks()
  /** Sessions whose wake-up is being sent or whose turn runs, with the epoch milliseconds of the start. */
  readonly #underWay = new Map<string, number>()

  constructor(
    private readonly kernel: K,
    private readonly wakes: Wakes,
    private readonly before: Gate<[Wake]>,
    private readonly after: Notify<[Wake, WakeDecision]>,
    /** Called when the result of a wake-up changes the next due time of a session. */
    private readonly replan: (session: SessionInfo) => Promise<void>,
  ) {}

  /** The first whole minute from `from` on in which the policy wakes the session; undefined: never. Epoch milliseconds. */
  dueAt(session: SessionInfo, policy: Heartbeat, from: number): number | undefined {
    if (!policy.active) return undefined
    // A wake-up in progress may not be stored yet.
    const last = this.#underWay.get(session.id) ?? this.wakes.state(session.id)?.last_sent_at ?? session.createdAt
    // A clock that was set back must not silence the session until it catches up.
    const since = Math.min(last, this.kernel.clock.now())
    return this.#schedule(policy).nextOpen(Math.max(since + this.#pauseOf(session, policy) - LATE_MS, from))
  }

  async wake(request: WakeRequest): Promise<WakeDecision> {
    const { agent, session, source } = request
    const sessionId = session?.id ?? request.sessionId
    const reason = this.#refusal(request)
    if (request.dryRun)
      return this.#decision(request, { reason: reason ?? 'wake_sent', problem: 'a dry run: nothing was sent' })
    const wake = { sessionId, agentName: agent, workspaceId: request.workspaceId, source }
    const sent =
      reason !== undefined || session === undefined
        ? { reason: reason ?? 'session_not_found' }
        : await this.#send(wake, session, request.policy)
    const recorded = this.#record(request, sent)
    if (session && sent.turn) void this.#follow(request, session, sent.turn, recorded)
    const row = await recorded
    const decision = this.#decision(request, sent, row)
    await this.after.call(wake, decision)
    return decision
  }

  /** The decision of an earlier request with the same key. */
  replayed(row: WakeRow): WakeDecision {
    return {
      result: row.result,
      reason: row.reason,
      wake_event_id: row.id,
      ...(row.policy_digest !== null && { policy_digest: row.policy_digest }),
      ...(row.snapshot_id !== null && { policy_snapshot_id: row.snapshot_id }),
      ...(row.config_digest !== null && { config_digest: row.config_digest }),
      ...(row.prompt_id !== null && { synthetic_prompt_id: row.prompt_id }),
    }
  }

  /** Synchronous, so that no other wake-up starts between this check and the begin of one. */
  #refusal({ policy, session, sessionId, source, spent = false }: WakeRequest): WakeReason | undefined {
    const { clock, needs } = this.kernel
    const now = clock.now()
    return refusalOf({
      now,
      source,
      policy,
      session,
      named: sessionId !== '',
      spent,
      config: needs.sidecars.heartbeatConfig,
      intervalMs: intervalOf(policy),
      pauseMs: session ? this.#pauseOf(session, policy) : 0,
      open: this.#schedule(policy).isOpen(now),
      health: session && needs.sessions.healthOf(session.id),
      underWay: session !== undefined && this.#underWay.has(session.id),
      lastSentAt: (session && this.wakes.state(session.id)?.last_sent_at) ?? undefined,
    })
  }

  async #send(wake: Wake, session: SessionInfo, policy: Heartbeat): Promise<Sent> {
    const { needs } = this.kernel
    const done = () => this.#underWay.delete(session.id)
    this.#underWay.set(session.id, this.kernel.clock.now())
    try {
      const refused = await this.before.ask(wake)
      if (refused) {
        done()
        return { reason: 'heartbeat_disabled', problem: refused.message }
      }
      await needs.daemon.admit('prompt')
      const { text, notes } = await wakePrompt(this.kernel, policy, session)
      const turn = await needs.sessions.begin(session.id, { text, source: 'heartbeat' })
      return { reason: 'wake_sent', turn, notes }
    } catch (error) {
      done()
      return { reason: reasonOfFault(error), problem: messageOf(error) }
    }
  }

  /** Waits for the end of a turn. The session reports its result; only a crash of the agent counts here. */
  async #follow(
    request: WakeRequest,
    session: SessionInfo,
    { turnId, outcome }: NonNullable<Sent['turn']>,
    recorded: Promise<WakeRow>,
  ): Promise<void> {
    const { db, log } = this.kernel
    try {
      const ended = await outcome
      await recorded
      const before = this.wakes.state(session.id)?.failures ?? 0
      if (ended.status === 'failed' && ended.stopped) await this.#recordDeath(request, session, turnId, before + 1)
      else if (ended.status === 'completed' && before > 0) await db.tx(t => this.wakes.setFailures(t, session.id, 0))
      else return
      await this.replan(session)
    } catch (error) {
      log.error(`the outcome of a wake-up is unknown: ${messageOf(error)}`, { session: session.id })
    } finally {
      this.#underWay.delete(session.id)
    }
  }

  async #recordDeath(request: WakeRequest, session: SessionInfo, turnId: string, failures: number): Promise<void> {
    const { policy } = request
    // The key belongs to the wake-up itself, not to this follow-up record.
    const row = this.#row({ ...request, key: undefined }, 'synthetic_prompt_failed', turnId)
    const sentAt = this.wakes.state(session.id)?.last_sent_at ?? row.created_at
    const next = this.#schedule(policy).nextOpen(sentAt + pauseMs(intervalOf(policy), failures) - LATE_MS)
    await this.kernel.db.tx(t => {
      this.wakes.record(t, row, next, true)
      this.wakes.setFailures(t, session.id, failures)
    })
  }

  async #record(request: WakeRequest, { reason, turn }: Sent): Promise<WakeRow> {
    const {
      db,
      needs: { events },
    } = this.kernel
    const { agent, policy, session } = request
    const row = this.#row(request, reason, turn?.turnId)
    const next = turn && this.#schedule(policy).nextOpen(row.created_at + intervalOf(policy) - LATE_MS)
    await db.tx(t => {
      this.wakes.record(t, row, next, session !== undefined)
      if (!turn) return
      const payload = { session_id: row.session_id, agent_name: agent, wake_event_id: row.id, turn_id: turn.turnId }
      events.emit(t, HeartbeatSent, payload, { scope: row.workspace_id, subject: row.session_id })
    })
    return row
  }

  #row(request: WakeRequest, reason: WakeReason, turnId: string | undefined): WakeRow {
    const { clock, ids, needs } = this.kernel
    const { agent, policy, session, source, key } = request
    const now = clock.now()
    return {
      id: ids.id('wak'),
      agent_name: agent,
      session_id: session?.id ?? request.sessionId,
      workspace_id: request.workspaceId,
      source,
      result: RESULTS[reason],
      reason,
      snapshot_id: policy.snapshot_id ?? null,
      policy_digest: policy.digest ?? null,
      config_digest: policy.config_digest ?? null,
      prompt_id: turnId ?? null,
      idempotency_key: key ?? null,
      created_at: now,
      expires_at: now + needs.sidecars.heartbeatConfig.wake_event_retention,
    }
  }

  #decision({ policy }: WakeRequest, { reason, turn, problem, notes = [] }: Sent, row?: WakeRow): WakeDecision {
    const said: PolicyDiagnostic[] =
      problem === undefined ? [] : [{ code: reason, message: problem, severity: row && !turn ? 'warning' : 'info' }]
    const diagnostics = [...(policy.diagnostics ?? []), ...notes, ...said]
    return {
      result: RESULTS[reason],
      reason,
      ...(policy.config_digest && { config_digest: policy.config_digest }),
      ...(policy.digest && { policy_digest: policy.digest }),
      ...(policy.snapshot_id && { policy_snapshot_id: policy.snapshot_id }),
      ...(turn && { synthetic_prompt_id: turn.turnId }),
      ...(row && { wake_event_id: row.id }),
      ...(diagnostics.length > 0 && { diagnostics }),
    }
  }

  /** Back-off applies only to a stopped session: a running one has recovered. */
  #pauseOf(session: SessionInfo, policy: Heartbeat): number {
    const failures = session.state === 'stopped' ? (this.wakes.state(session.id)?.failures ?? 0) : 0
    return pauseMs(intervalOf(policy), failures)
  }

  #schedule(policy: Heartbeat): Schedule {
    return new Schedule(policy.valid ? policy.preferences : {}, this.#clocks)
  }
}

const intervalOf = ({ preferences }: Heartbeat): number => durationMs(preferences.min_interval) ?? 0

/** The session may have changed between its check and the prompt. */
function reasonOfFault(error: unknown): WakeReason {
  const code = error instanceof Fault ? error.code : ''
  if (code === 'session_busy') return 'session_prompt_active_race'
  return code === 'session_stopped' ? 'session_not_attachable' : 'synthetic_prompt_failed'
}
