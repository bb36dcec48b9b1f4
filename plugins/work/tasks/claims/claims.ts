import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import { KernelErrors, type Tx } from '../../../../kernel/plugin.js'
import type { ClaimNextBody, TaskClaim } from '../../../../schemas/tasks.js'
import type { SessionInfo } from '../../sessions/api.js'
import { type ClaimWish, TaskErrors } from '../api.js'
import type { Budgets } from '../budgets/budgets.js'
import { BudgetErrors } from '../budgets/errors.js'
import type { Settle, TaskCore } from '../core.js'
import { LIMITS } from '../limits.js'
import { channelOfRun } from '../runs/participation.js'
import { leaseToWire, type RunRow, runToWire } from '../runs/run-row.js'
import type { SchedulerState } from '../scheduler/state.js'
import { escalate } from '../tasks/attention.js'
import { expireBlocks } from '../tasks/blocks.js'
import { summaryToWire, type TaskRow } from '../tasks/task-row.js'
import { checked, checkedKey, invalid } from '../tasks/write.js'
import { moveRun } from '../transitions.js'
import { foreignWorkspace, type Who } from '../who.js'
import { offeredTo } from '../workers/worker-row.js'
import type { Recovery } from './recovery.js'
import { type Claimant, selectRun } from './select.js'
import type { ClaimTokens } from './tokens.js'

/** Interval in milliseconds in which a waiting claim asks whether the daemon still admits it. */
const ADMIT_MS = 5000

/** A caller that may wait; the signal aborts when it hangs up. */
export interface Waiting {
  readonly signal: AbortSignal
}

/** Gives runs to sessions, each under a lease. */
export class Claims {
  constructor(
    private readonly core: TaskCore,
    private readonly tokens: ClaimTokens,
    private readonly recovery: Recovery,
    private readonly scheduler: SchedulerState,
    private readonly budgets: Budgets,
    /** Runs the `task.run.pre_claim` hooks. */
    private readonly preClaim: (wish: ClaimWish, session: SessionInfo) => Promise<ClaimWish>,
    /** Maximum number of active runs per workspace; 0: no limit. */
    private readonly maxHeld: () => number,
  ) {}

  /**
   * Claims a run; undefined when the session can claim none.
   * @param caller its signal is read by a claim that waits only, because making it costs every request
   */
  async next(session: SessionInfo, who: Who, body: ClaimNextBody, caller: Waiting): Promise<TaskClaim | undefined> {
    const tells = this.budgets.tells(session)
    const claimant = await this.#applyHooks({ ...this.#claimant(session, body), tells })
    const leaseMs = leaseOf(body.lease_seconds) ?? LIMITS.lease.byDefault
    do {
      await this.core.kernel.needs.daemon.admit('task run claim')
      await this.budgets.learn(session.id)
      const { wakings } = this.core
      const claim = await this.#claim(claimant, who, leaseMs, body)
      if (claim || !body.wait) return claim
      await this.core.untilClaimable(caller.signal, wakings, ADMIT_MS)
    } while (!caller.signal.aborted)
    throw KernelErrors.invalid_request('the caller disconnected')
  }

  /** Applies the hooks: they may deny the claim, add capabilities and raise the minimum priority. */
  async #applyHooks(claimant: Claimant): Promise<Claimant> {
    const { session, runId, capabilities, priorityMin } = claimant
    const wish = await this.preClaim({ capabilities, priorityMin, runId }, session)
    if (wish.deny !== undefined) throw TaskErrors.task_claim_denied(wish.deny)
    const able = [...new Set([...capabilities, ...wish.capabilities])].slice(0, LIMITS.capabilities)
    return { ...claimant, capabilities: able, priorityMin: Math.max(priorityMin, wish.priorityMin) }
  }

  /** A session that was started for a run can claim only that run. */
  #claimant(session: SessionInfo, body: ClaimNextBody): Omit<Claimant, 'tells'> {
    const claimant = claimantOf(session, body)
    const offered = offeredTo(this.core, session.id)
    if (offered === undefined || (body.run_id !== undefined && body.run_id !== offered)) return claimant
    return { ...claimant, places: ['', session.workspaceId], runId: offered, isStartedForIt: true }
  }

  async #claim(claimant: Claimant, who: Who, leaseMs: number, body: ClaimNextBody): Promise<TaskClaim | undefined> {
    const { session } = claimant
    const hash = this.tokens.make()
    const claimed = await this.core.write(who, (t, settle) => {
      // The session may have stopped while its claim waited.
      this.core.activeSession(session.id)
      expireBlocks(this.core, t, settle)
      const held = this.#held(t, settle, session.id, checkedKey(body.idempotency_key))
      if (held) return { run: held, task: this.core.tasks.find(held.task_id, t), isNew: false }
      if (this.scheduler.pausedIn(t) || this.#isFull(t, claimant, body.wait === true)) return undefined
      const free = this.#select(t, who, settle, claimant)
      if (!free) return undefined
      const now = this.core.now()
      const run = moveRun(this.core, t, free, 'claim', {
        session_id: session.id,
        claimed_by_kind: who.by.kind,
        claimed_by_ref: who.by.ref,
        token_hash: hash,
        claim_key: checkedKey(body.idempotency_key) ?? null,
        claimed_at: now,
        heartbeat_at: now,
        lease_until: now + leaseMs,
        lease_ms: leaseMs,
      })
      if (claimant.isStartedForIt) {
        t.run('UPDATE tasks_worker SET claimed_at = ? WHERE session_id = ?', [now, session.id])
        this.core.caches.workers.changed(t, session.id)
      }
      this.core.participation.claimed(t, run, session)
      const task = this.core.tasks.find(run.task_id, t)
      const payload = { session_id: session.id }
      const event = { task, run: run.id, payload }
      if (!body.start) {
        const seq = this.core.journal.write(t, who, 'task.run_claimed', event)
        return { run, task: { ...task, latest_event_seq: seq }, isNew: true }
      }
      this.core.journal.defer(who, 'task.run_claimed', event)
      const started = moveRun(this.core, t, run, 'startByLease')
      this.core.journal.defer(who, 'task.run_started', { task, run: run.id })
      settle(task.id)
      this.core.journal.flush(t)
      return { run: started, task: this.core.tasks.find(task.id, t), isNew: true }
    })
    if (!claimed) return undefined
    const { run, task } = claimed
    if (claimed.isNew) this.tokens.keep(session.id, run.id, hash)
    return claimToWire(run, task)
  }

  /** Validates a claim before anything else. @throws Fault `task_invalid` and those of leases */
  check(session: SessionInfo, body: ClaimNextBody): void {
    claimantOf(session, body)
    leaseOf(body.lease_seconds)
  }

  /** The run that the same request claimed before. Throws `AUTONOMY_LEASE_ALREADY_HELD` when another request did. */
  #held(t: Tx, settle: Settle, session: string, key: string | undefined): RunRow | undefined {
    const run = this.core.runs.leasedTo(session, t)
    if (!run) return undefined
    if ((run.lease_until ?? 0) <= this.core.now()) {
      this.recovery.expire(t, run, settle)
      return undefined
    }
    if (key !== undefined && run.claim_key === key) return run
    throw TaskErrors.AUTONOMY_LEASE_ALREADY_HELD(
      `session ${session} already holds run ${run.id}; complete, fail or release it first`,
      {
        next: command('task release', run.id),
      },
    )
  }

  /** Selects a claimable run within the budgets. A run whose budget is exhausted needs attention. */
  #select(t: Tx, who: Who, settle: Settle, claimant: Claimant): RunRow | undefined {
    const { session, runId } = claimant
    this.budgets.judgeAgent(t, session)
    const named = runId === undefined ? undefined : this.core.runs.get(runId, t)
    if (named) this.budgets.judgeTask(t, session, named.task_id)
    for (let free = selectRun(t, claimant); free; free = selectRun(t, claimant)) {
      const refusal = this.budgets.reserve(t, session, free)
      if (refusal === undefined) return free
      if (named && !claimant.isStartedForIt) throw BudgetErrors.AUTONOMY_BUDGET_EXHAUSTED(refusal)
      escalate(this.core, t, who, free, `budget_exhausted: ${refusal}`, settle)
    }
    return undefined
  }

  #isFull(t: Tx, { places }: Claimant, waits: boolean): boolean {
    const most = this.maxHeld()
    const workspaceId = places.find(name => name !== '')
    if (most === 0 || workspaceId === undefined) return false
    const held = t.row(
      `SELECT count(*) FROM tasks_run WHERE place = ? AND status IN ('claimed', 'starting', 'running')
         AND ifnull(lease_until, 9e15) > ?`,
      [workspaceId, this.core.now()],
    )
    if (Number(held?.[0] ?? 0) < most) return false
    if (waits) {
      this.core.waitForPlace()
      return true
    }
    throw TaskErrors.AUTONOMY_WORKSPACE_FULL(`workspace ${workspaceId} has reached its limit of ${most} active runs`)
  }
}

/** The reply to the session that claimed a run. */
export function claimToWire(run: RunRow, task: TaskRow): TaskClaim {
  const channel = channelOfRun(run)
  return {
    ...{ lease: leaseToWire(run), run: runToWire(run), task: summaryToWire(task) },
    ...(channel && { coordination_channel: channel }),
  }
}

/** Milliseconds of a lease; undefined for the default. Throws `AUTONOMY_LEASE_INVALID` (422). */
export function leaseOf(seconds: number | undefined): number | undefined {
  if (seconds === undefined || seconds === 0) return undefined
  const ms = seconds * 1000
  if (seconds > 0 && ms <= LIMITS.lease.most) return ms
  throw TaskErrors.AUTONOMY_LEASE_INVALID(`lease_seconds: must be between 0 (default) and 86400, not ${seconds}`)
}

function claimantOf(session: SessionInfo, body: ClaimNextBody): Omit<Claimant, 'tells'> {
  const { workspace_id: workspace, run_id: runId, required_capabilities: names = [] } = body
  if (workspace && workspace !== session.workspaceId)
    throw foreignWorkspace(`session ${session.id} belongs to workspace ${session.workspaceId}, not ${shown(workspace)}`)
  if (names.length > LIMITS.capabilities)
    throw invalid(`required_capabilities: at most ${LIMITS.capabilities} entries of at most ${LIMITS.key} characters`)
  const capabilities = names.flatMap((name, at) => checked(`required_capabilities.${at}`, name, LIMITS.key) ?? [])
  checkedKey(body.idempotency_key)
  if (body.scope === 'global' && workspace) throw invalid('workspace_id: not allowed with scope global')
  const workspaceId = workspace || body.scope === 'workspace' ? session.workspaceId : ''
  // With both a run id and a workspace, the run may also belong to a global task.
  const places = workspaceId !== '' && runId !== undefined ? ['', workspaceId] : [workspaceId]
  return { session, runId, places, capabilities, priorityMin: body.priority_min ?? 0 }
}
