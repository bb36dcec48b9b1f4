import { Fault, type Gate, messageOf, type Notify, type PluginKernel } from '../../kernel/plugin.js'
import { durationMs } from '../../schemas/duration.js'
import type { PolicyDiagnostic, WakeReason } from '../../schemas/sessions.js'
import type { Heartbeat, WakeDecision, WakeSource } from '../../schemas/sidecars.js'
import type { Daemon } from '../daemon/api.js'
import type { SessionInfo, Sessions } from '../sessions/api.js'
import type { Sidecars } from '../sidecars/api.js'
import type { Workspaces } from '../workspaces/api.js'
import { HeartbeatSent, type Wake } from './api.js'
import { LATE_MS, RESULTS, refusalOf } from './decide.js'
import { wakePrompt } from './prompt.js'
import type { WakeRow, Wakes } from './wakes.js'
import { Schedule, ZoneClocks } from './windows.js'

export type HeartbeatsKernel = PluginKernel<{
  daemon: typeof Daemon
  workspaces: typeof Workspaces
  sessions: typeof Sessions
  sidecars: typeof Sidecars
}>

/** A wake-up that somebody asks for. */
export interface WakeRequest {
  readonly agent: string
  readonly policy: Heartbeat
  /** Empty: any that can be woken. */
  readonly sessionId: string
  /** Undefined: there is none of this agent. */
  readonly session: SessionInfo | undefined
  /** Within which it was asked for. */
  readonly workspaceId: string
  readonly source: WakeSource
  /** The cycle has sent as many as it may. */
  readonly spent?: boolean
  readonly dryRun?: boolean | undefined
  readonly key?: string | undefined
}

/** What sending came to; a problem says more than its reason. */
interface Sent {
  readonly reason: WakeReason
  readonly turnId?: string
  readonly problem?: string
  readonly notes?: readonly PolicyDiagnostic[]
}

/** Decides about wake-ups and sends them: the one way, whoever asks. */
export class WakeSender {
  readonly #clocks = new ZoneClocks()
  /** Sessions whose wake-up is being sent or whose turn of one runs. */
  readonly #underWay = new Set<string>()

  constructor(
    private readonly kernel: HeartbeatsKernel,
    private readonly wakes: Wakes,
    private readonly before: Gate<[Wake]>,
    private readonly after: Notify<[Wake, WakeDecision]>,
  ) {}

  /** The first whole minute, not before `from`, in which a session is to be woken; undefined: never. Epoch milliseconds. */
  dueAt(session: SessionInfo, policy: Heartbeat, from: number): number | undefined {
    if (!policy.active) return undefined
    const last = this.wakes.state(session.id)?.last_sent_at ?? session.createdAt
    // A clock that was set back must not silence a session until it has caught up.
    const since = Math.min(last, this.kernel.clock.now())
    return this.#schedule(policy).nextOpen(Math.max(since + intervalOf(policy) - LATE_MS, from))
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
    const row = await this.#record(request, sent)
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

  /** Asks nobody and waits for nothing: between this and the begin of a wake-up no other one slips in. */
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
      open: this.#schedule(policy).isOpen(now),
      health: session && needs.sessions.healthOf(session.id),
      underWay: session !== undefined && this.#underWay.has(session.id),
      lastSentAt: (session && this.wakes.state(session.id)?.last_sent_at) ?? undefined,
    })
  }

  async #send(wake: Wake, session: SessionInfo, policy: Heartbeat): Promise<Sent> {
    const { needs } = this.kernel
    const done = () => this.#underWay.delete(session.id)
    this.#underWay.add(session.id)
    try {
      const refused = await this.before.ask(wake)
      if (refused) {
        done()
        return { reason: 'heartbeat_disabled', problem: refused.message }
      }
      await needs.daemon.admit('prompt')
      const { text, notes } = await wakePrompt(this.kernel, policy, session)
      const { turnId, outcome } = await needs.sessions.begin(session.id, { text, source: 'heartbeat' })
      // How the turn goes is the session's to tell.
      outcome.then(done, done)
      return { reason: 'wake_sent', turnId, notes }
    } catch (error) {
      done()
      return { reason: reasonOfFault(error), problem: messageOf(error) }
    }
  }

  async #record(request: WakeRequest, { reason, turnId }: Sent): Promise<WakeRow> {
    const { clock, ids, db, events, needs } = this.kernel
    const { agent, policy, session, source, key } = request
    const sessionId = session?.id ?? request.sessionId
    const now = clock.now()
    const row: WakeRow = {
      id: ids.id('wak'),
      agent_name: agent,
      session_id: sessionId,
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
    const next = turnId === undefined ? undefined : this.#schedule(policy).nextOpen(now + intervalOf(policy) - LATE_MS)
    await db.tx(t => {
      this.wakes.record(t, row, next, session !== undefined)
      if (turnId === undefined) return
      const payload = { session_id: sessionId, agent_name: agent, wake_event_id: row.id, turn_id: turnId }
      events.emit(t, HeartbeatSent, payload, { scope: row.workspace_id, subject: sessionId })
    })
    return row
  }

  #decision({ policy }: WakeRequest, { reason, turnId, problem, notes = [] }: Sent, row?: WakeRow): WakeDecision {
    const said: PolicyDiagnostic[] =
      problem === undefined ? [] : [{ code: reason, message: problem, severity: row && !turnId ? 'warning' : 'info' }]
    const diagnostics = [...(policy.diagnostics ?? []), ...notes, ...said]
    return {
      result: RESULTS[reason],
      reason,
      ...(policy.config_digest && { config_digest: policy.config_digest }),
      ...(policy.digest && { policy_digest: policy.digest }),
      ...(policy.snapshot_id && { policy_snapshot_id: policy.snapshot_id }),
      ...(turnId && { synthetic_prompt_id: turnId }),
      ...(row && { wake_event_id: row.id }),
      ...(diagnostics.length > 0 && { diagnostics }),
    }
  }

  #schedule(policy: Heartbeat): Schedule {
    return new Schedule(policy.valid ? policy.preferences : {}, this.#clocks)
  }
}

const intervalOf = ({ preferences }: Heartbeat): number => durationMs(preferences.min_interval) ?? 0

/** Between the look at a session and its prompt others may have been quicker. */
function reasonOfFault(error: unknown): WakeReason {
  const code = error instanceof Fault ? error.code : ''
  if (code === 'session_busy') return 'session_prompt_active_race'
  return code === 'session_stopped' ? 'session_not_attachable' : 'synthetic_prompt_failed'
}
