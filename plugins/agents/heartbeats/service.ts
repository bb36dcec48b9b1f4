import { command } from '../../../kernel/kit/commands/command-line.js'
import { Fault, iso, messageOf, ok } from '../../../kernel/plugin.js'
import type { Heartbeat, HeartbeatStatus, HeartbeatStatusQuery, WakeBody } from '../../../schemas/agents/sidecars.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import type { PolicyDiagnostic } from '../../../schemas/sessions.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import type { SessionInfo } from '../../work/sessions/api.js'
import { HeartbeatErrors, type HeartbeatsApi, points } from './api.js'
import { isAttachable, isEligible, NEXT_TRY, SESSION_REASONS } from './decide.js'
import type { K } from './needs.js'
import { absentContexts, ownContexts } from './prompt.js'
import { WakeScheduler } from './scheduler.js'
import { WakeSender } from './sender.js'
import { eventToWire, type StateRow, stateToWire, Wakes } from './wakes.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** Minimum milliseconds for which the state of a session's wake-ups is kept after the last one. */
const STATE_KEPT_MS = 30 * 24 * HOUR_MS

/** Wakes sessions by the heartbeat policies of their agents. */
export class HeartbeatsService implements HeartbeatsApi {
  readonly wakeBefore
  readonly wakeAfter
  readonly contexts
  readonly #wakes: Wakes
  readonly #sender: WakeSender
  readonly #scheduler: WakeScheduler
  /** The functions that end following a policy, by session. */
  readonly #followed = new Map<string, () => void>()
  #forgotAt = Number.NEGATIVE_INFINITY

  constructor(private readonly kernel: K) {
    const { wakeBefore, wakeAfter } = kernel.hooks.of(points)
    this.wakeBefore = wakeBefore
    this.wakeAfter = wakeAfter
    this.contexts = ownContexts({ healthOf: id => kernel.needs.sessions.healthOf(id) })
    this.#wakes = new Wakes(kernel.db)
    const replan = (session: SessionInfo) => this.plan(session)
    this.#sender = new WakeSender(kernel, this.#wakes, this.wakeBefore, this.wakeAfter, replan)
    this.#scheduler = new WakeScheduler(kernel, due => this.#cycle(due))
    kernel.scope.defer('followed', () => {
      for (const end of this.#followed.values()) end()
    })
  }

  get waiting(): number {
    return this.#scheduler.size
  }

  get nextDue(): number | undefined {
    return this.#scheduler.nextDue
  }

  /** Plans existing sessions, then sends due wake-ups until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await this.kernel.needs.daemon.released(signal)
    await this.#forget()
    await this.planAll()
    await this.#scheduler.run(signal)
  }

  /** Plans the sessions of an agent, or all, by their current policies. */
  async planAll(agent?: string): Promise<void> {
    const policies = new Map<string, Promise<Heartbeat | undefined>>()
    const plannedIds = new Set<string>()
    for (const session of this.#wakeable(agent)) {
      const key = JSON.stringify([session.workspaceId, session.agentName])
      const policy = policies.get(key) ?? this.#policyOf(session)
      policies.set(key, policy)
      plannedIds.add(session.id)
      this.#plan(session.id, await policy)
    }
    if (agent !== undefined) return
    // Sessions that may no longer be woken, and those created in the meantime.
    for (const id of [...this.#followed.keys()]) if (!plannedIds.has(id)) await this.plan({ id })
  }

  /** Never throws: a removed agent or workspace counts as one without a policy. */
  async plan({ id }: Pick<SessionInfo, 'id'>): Promise<void> {
    const session = this.kernel.needs.sessions.get(id)
    this.#plan(id, session && this.#isWakeable(session) ? await this.#policyOf(session) : undefined)
  }

  async wake(agent: string, request: WakeBody) {
    const { needs } = this.kernel
    await this.#forget()
    const { session_id: sessionId, source, dry_run: dryRun, idempotency_key: key } = request
    const workspace = await this.#workspace(request.workspace_id)
    const isMeant = ({ agentName, workspaceId }: SessionInfo) =>
      agentName === agent && (!workspace || workspaceId === workspace.id)
    const named = needs.sessions.get(sessionId)
    const session = sessionId === '' ? this.#eligible(agent, isMeant) : named && isMeant(named) ? named : undefined
    const targetWorkspace = workspace ?? (session && needs.workspaces.get(session.workspaceId))
    const policy = await needs.sidecars.heartbeat(agent, targetWorkspace)
    const workspaceId = targetWorkspace?.id ?? ''
    const earlier = dryRun ? undefined : this.#wakes.byKey(agent, sessionId, key)
    const decision = earlier
      ? this.#sender.replayed(earlier)
      : await this.#sender.wake({ agent, policy, sessionId, session, workspaceId, source, dryRun, key })
    if (session && !dryRun) await this.plan(session)
    const body = { decision }
    return SESSION_REASONS.has(decision.reason) ? { status: 409 as const, body } : ok(body)
  }

  async status(agent: string, query: HeartbeatStatusQuery): Promise<HeartbeatStatus> {
    const { needs } = this.kernel
    const { session_id: id } = query
    const session = id === undefined ? undefined : needs.sessions.get(id)
    if (id !== undefined && session?.agentName !== agent) {
      throw HeartbeatErrors.wake_session_not_found(`agent ${agent} has no session ${id}`)
    }
    const workspace =
      (await this.#workspace(query.workspace_id)) ?? (session && needs.workspaces.get(session.workspaceId))
    const policy = await needs.sidecars.heartbeat(agent, workspace)
    await this.planAll(agent)
    const state = session ? this.#wakes.state(session.id) : this.#wakes.latestState(agent, workspace?.id)
    const revision = needs.sidecars.heartbeatRevision(policy)
    const { active, config_digest, diagnostics, digest, enabled, preferences, present } = policy
    const { snapshot_id, source_path, summary, valid, validation_status } = policy
    const health = query.include_session_health ? (session?.id ?? state?.session_id) : undefined
    return {
      agent_name: agent,
      active,
      enabled,
      present,
      valid,
      validation_status,
      preferences,
      ...(config_digest && { config_digest }),
      diagnostics: [...(diagnostics ?? []), ...absentContexts(this.kernel, policy), ...this.#backoff(policy, state)],
      ...(digest && { digest }),
      ...(snapshot_id && { snapshot_id }),
      ...(source_path && { source_path }),
      ...(summary && { summary }),
      ...(revision && { revision_cursor: revision }),
      ...(query.include_session_health && {
        session_health: (health === undefined ? undefined : needs.sessions.healthOf(health)) ?? null,
      }),
      ...(query.include_recent_wake_events && {
        wake_events: this.#wakes
          .recent(session ? { session: session.id } : { agent, workspace: workspace?.id })
          .map(eventToWire),
      }),
      wake_state: state ? stateToWire(state) : null,
    }
  }

  /** The wake-ups of a session for its inspection. */
  async inspect(sessionId: string, withEvents: boolean) {
    const session = this.kernel.needs.sessions.get(sessionId)
    const policy = session && (await this.#policyOf(session))
    const state = this.#wakes.state(sessionId)
    return {
      ...(policy?.config_digest && { config_digest: policy.config_digest }),
      ...(policy?.digest && { policy_digest: policy.digest }),
      diagnostics: policy ? [...(policy.diagnostics ?? []), ...this.#backoff(policy, state)] : [],
      wake_state: state ? stateToWire(state) : null,
      ...(withEvents && { wake_events: this.#wakes.recent({ session: sessionId }).map(eventToWire) }),
    }
  }

  /** Sessions whose agents crash repeatedly on wake-ups. */
  checkItems(): DiagnosticItem[] {
    return this.#wakes.failing(2).flatMap(({ session_id: id, agent_name: agent, failures }) => {
      const session = this.kernel.needs.sessions.get(id)
      if (session?.state !== 'stopped' || !this.#isWakeable(session)) return []
      return [
        {
          id: `heartbeats.failing.${id}`,
          code: 'heartbeat_failing',
          category: 'agents',
          severity: 'warning' as const,
          title: 'Wake-ups fail because the agent ends',
          message: `the last ${failures} wake-ups of ${id} by the policy of ${agent} failed because its agent ended; they are backed off`,
          data_freshness: 'live',
          suggested_command: command('session history', id),
          evidence: { session_id: id, agent_name: agent, failures },
        },
      ]
    })
  }

  /** Why an active policy wakes a session less often than configured. */
  #backoff(policy: Heartbeat, state: StateRow | undefined): PolicyDiagnostic[] {
    const { needs, clock } = this.kernel
    const session = state && needs.sessions.get(state.session_id)
    if (!state?.failures || session?.state !== 'stopped') return []
    const due = this.#dueAt(session.id, policy, clock.now())
    const times = state.failures === 1 ? 'the last wake-up' : `the last ${state.failures} wake-ups`
    const then =
      due === undefined
        ? 'it is not restarted'
        : `the next one is tried at ${iso(due)}, with ${command('agent heartbeat wake', session.agentName, session.id)} at once`
    const message = `${times} of ${session.id} ended with its agent: ${then}; ${command('session history', session.id)} says why`
    return [{ code: 'heartbeat_failing', severity: 'warning', message }]
  }

  /** Decides about the due sessions; at most `max_wakes_per_cycle` are sent, the others follow in the next minutes. */
  async #cycle(due: readonly string[]): Promise<void> {
    const { needs, clock, log } = this.kernel
    const { max_wakes_per_cycle: max, min_interval } = needs.sidecars.heartbeatConfig
    await this.#forget()
    const full = await needs.disk.refusal()
    let sent = 0
    let beyond = 0
    for (const id of due) {
      const now = clock.now()
      try {
        const session = needs.sessions.get(id)
        const policy = session && (await this.#policyOf(session))
        if (!session || !policy || !this.#isWakeable(session)) continue
        if (full) {
          this.#scheduler.set(id, now + MINUTE_MS)
          continue
        }
        const spent = sent >= max
        const { agentName: agent, workspaceId } = session
        const about = { agent, policy, sessionId: id, session, workspaceId, source: 'scheduler', spent } as const
        const { reason } = await this.#sender.wake(about)
        if (reason === 'wake_sent') sent++
        const waits = spent && reason === 'heartbeat_rate_limited' ? Math.ceil(++beyond / max) : 1
        const later = { due: waits * MINUTE_MS, soon: min_interval, never: undefined }[NEXT_TRY[reason]]
        this.#scheduler.set(id, later === undefined ? undefined : this.#dueAt(id, policy, now + later))
      } catch (error) {
        log.error(`a wake-up could not be decided: ${messageOf(error)}`, { session: id })
        this.#scheduler.set(id, now + MINUTE_MS)
      }
    }
  }

  #plan(id: string, policy: Heartbeat | undefined): void {
    const { clock, needs } = this.kernel
    const session = policy && needs.sessions.get(id)
    const before = this.#followed.get(id)
    this.#followed.delete(id)
    if (session && this.#isWakeable(session)) {
      const { agentName, workspaceId } = session
      this.#followed.set(id, needs.sidecars.follow(policy, agentName, needs.workspaces.get(workspaceId)))
    }
    before?.()
    this.#scheduler.set(id, policy && this.#dueAt(id, policy, clock.now()))
  }

  /** Reads the current session: if it has stopped meanwhile, its restart plans it again. */
  #dueAt(id: string, policy: Heartbeat, from: number): number | undefined {
    const session = this.kernel.needs.sessions.get(id)
    return session && this.#isWakeable(session) ? this.#sender.dueAt(session, policy, from) : undefined
  }

  /** Whether a schedule can wake it: it is not stopped, or the configuration allows restarting it. */
  #isWakeable(session: SessionInfo): boolean {
    return session.state !== 'stopped' || isAttachable(session, this.kernel.needs.sidecars.heartbeatConfig)
  }

  #wakeable(agent?: string): SessionInfo[] {
    const { sessions, sidecars } = this.kernel.needs
    const unstopped = sessions.unstopped().filter(({ agentName }) => agent === undefined || agentName === agent)
    return sidecars.heartbeatConfig.active_session_only ? unstopped : [...unstopped, ...sessions.resumable(agent)]
  }

  /** The most recently active eligible session; a stopped one only if no other is eligible. */
  #eligible(agent: string, isMeant: (session: SessionInfo) => boolean): SessionInfo | undefined {
    const { sessions, sidecars } = this.kernel.needs
    const rank = ({ state, updatedAt }: SessionInfo) =>
      state === 'stopped' ? updatedAt - Number.MAX_SAFE_INTEGER : updatedAt
    return this.#wakeable(agent)
      .filter(one => isMeant(one) && isEligible(one, sessions.healthOf(one.id), sidecars.heartbeatConfig))
      .sort((a, b) => rank(b) - rank(a))[0]
  }

  /** Runs at most once an hour. */
  async #forget(): Promise<void> {
    const { clock, needs } = this.kernel
    if (clock.monotonic() - this.#forgotAt < HOUR_MS) return
    this.#forgotAt = clock.monotonic()
    await this.#wakes.forget(clock.now(), Math.max(STATE_KEPT_MS, needs.sidecars.heartbeatConfig.wake_event_retention))
  }

  async #policyOf({ agentName, workspaceId }: SessionInfo): Promise<Heartbeat | undefined> {
    const { sidecars, workspaces } = this.kernel.needs
    try {
      return await sidecars.heartbeat(agentName, workspaces.get(workspaceId))
    } catch (error) {
      if (!(error instanceof Fault)) this.kernel.log.warn(`a heartbeat policy cannot be read: ${messageOf(error)}`)
      return undefined
    }
  }

  #workspace(reference: string | undefined): Promise<Workspace | undefined> {
    return reference ? this.kernel.needs.workspaces.find(reference) : Promise.resolve(undefined)
  }
}
