import type { Actor, Reads, Tx } from '../../../../kernel/plugin.js'
import type { TaskRun } from '../../../../schemas/tasks.js'
import { type KeptHolder, type KeptRunsApi, TaskErrors } from '../api.js'
import type { Recovery } from '../claims/recovery.js'
import type { Settle, TaskCore } from '../core.js'
import { LIMITS } from '../limits.js'
import { type RunRow, runTable, runToWire, taskOf } from '../runs/run-row.js'
import { FINAL_TASK, type RunMove } from '../states.js'
import { showHint } from '../tasks/task-row.js'
import { bounded, checked } from '../tasks/write.js'
import { moveRun } from '../transitions.js'
import { type Who, whoOf } from '../who.js'
import { keptTable } from './table.js'

/** The end of a holder's lease. */
interface End {
  readonly move: RunMove
  readonly event: 'task.run_completed' | 'task.run_failed' | 'task.run_released'
  readonly changes?: Partial<RunRow>
  readonly payload?: Readonly<Record<string, unknown>>
}

/**
 * Runs that another plugin gives to workers outside of this daemon. The key of a claim fences them: it is stored with the run, is
 * cleared when the lease expires, and is never used for a second claim.
 */
export class KeptRuns implements KeptRunsApi {
  constructor(
    private readonly core: TaskCore,
    private readonly recovery: Recovery,
    private readonly isPaused: (reads: Reads) => boolean,
    /** Whether the task has a budget. The usage of external workers is not known. */
    private readonly hasBudget: (reads: Reads, task: string) => boolean,
    /** Whether the profile of a task requires a result on completion. */
    private readonly wantsResult: (reads: Reads, task: string) => boolean,
  ) {}

  async keep(actor: Actor, id: string, keeper: string) {
    await this.core.kernel.needs.daemon.admit('task run')
    const who = whoOf(actor)
    return this.core.write(who, (t, settle) => {
      const task = this.core.tasks.find(id, t)
      if (FINAL_TASK.has(task.status))
        throw TaskErrors.task_conflict(
          `task ${id} is ${task.status}; it cannot be offered to other daemons`,
          showHint(id),
        )
      if (this.hasBudget(t, id))
        throw TaskErrors.task_conflict(
          `task ${id} has a budget, but usage on other daemons is not tracked`,
          showHint(id),
        )
      const run = this.#queued(t, who, id)
      t.run('DELETE FROM tasks_kept WHERE task_id = ?', [id])
      keptTable.insert(t, { task_id: id, run_id: run.id, keeper, kept_at: this.core.now() })
      this.core.reservations.spread(t, this.core.tasks.find(id, t))
      settle(id)
      const { title, description } = task
      return { run: runToWire(this.core.runs.find(run.id, t)), title, description: description ?? '' }
    })
  }

  async claim(runId: string, holder: KeptHolder, leaseMs: number): Promise<TaskRun> {
    const who = this.#who(holder)
    await this.core.kernel.needs.daemon.admit('task run claim')
    return this.core.write(who, (t, settle) => {
      const run = this.#current(t, runId, settle)
      if (run.claim_key === holder.key && run.lease_until !== null) return runToWire(run)
      if (!t.row('SELECT 1 FROM tasks_kept WHERE run_id = ?', [runId]))
        throw TaskErrors.task_run_conflict(`run ${runId} is not reserved`)
      if (this.isPaused(t)) throw TaskErrors.task_conflict('the scheduler is paused')
      const task = this.core.tasks.find(run.task_id, t)
      if (run.status === 'queued' && task.claimable === 0)
        throw TaskErrors.task_conflict(
          `run ${runId} cannot be claimed: task ${task.id} is ${task.status}`,
          showHint(task.id),
        )
      const now = this.core.now()
      const claimed = moveRun(this.core, t, run, 'claim', {
        claimed_by_kind: who.by.kind,
        claimed_by_ref: who.by.ref,
        claim_key: holder.key,
        claimed_at: now,
        heartbeat_at: now,
        lease_until: now + leaseMs,
        lease_ms: leaseMs,
      })
      this.core.journal.write(t, who, 'task.run_claimed', { task, run: runId, payload: { by: who.by } })
      const started = moveRun(this.core, t, claimed, 'startByLease')
      this.core.journal.write(t, who, 'task.run_started', { task, run: runId })
      settle(task.id)
      return runToWire(started)
    })
  }

  extend(runId: string, holder: KeptHolder, leaseMs: number): Promise<TaskRun> {
    const who = this.#who(holder)
    return this.core.write(who, t => {
      const run = this.#fence(t, runId, holder)
      const now = this.core.now()
      const longer = { heartbeat_at: now, lease_until: now + leaseMs, lease_ms: leaseMs }
      runTable.update(t, { id: runId }, longer)
      this.core.deadlines.arm('runs', longer.lease_until + LIMITS.lease.late)
      this.core.journal.write(t, who, 'task.run_lease_extended', { task: taskOf(run), run: runId })
      return runToWire({ ...run, ...longer })
    })
  }

  complete(runId: string, holder: KeptHolder, value: unknown): Promise<TaskRun> {
    const changes = { result: bounded('result', value, LIMITS.result) }
    return this.#end(runId, holder, { move: 'completeByLease', event: 'task.run_completed', changes })
  }

  fail(runId: string, holder: KeptHolder, text: string): Promise<TaskRun> {
    const error = checked('error', text, LIMITS.text) ?? 'no reason was given'
    const changes = { error, failure_kind: 'agent_reported' }
    return this.#end(runId, holder, { move: 'failByLease', event: 'task.run_failed', changes, payload: { error } })
  }

  free(actor: Actor, id: string, reason: string): Promise<void> {
    const who = whoOf(actor)
    return this.core.write(who, (t, settle) => {
      const kept = t.row('SELECT run_id FROM tasks_kept WHERE task_id = ?', [id])
      if (!kept) return
      t.run('DELETE FROM tasks_kept WHERE task_id = ?', [id])
      if (!this.core.tasks.get(id, t)) return
      const run = this.core.runs.get(`${kept[0]}`, t)
      if (run && run.lease_until !== null && run.session_id === null) {
        const { claimable } = this.core.tasks.find(id, t)
        moveRun(this.core, t, run, 'releaseByLease', { claimable })
        const payload = { reason }
        this.core.journal.write(t, who, 'task.run_released', { task: taskOf(run), run: run.id, payload })
      }
      this.core.reservations.spread(t, this.core.tasks.find(id, t))
      settle(id)
      this.core.kernel.db.onDurable(t, () => this.core.tellClaimable())
    })
  }

  look(runId: string): Promise<TaskRun | undefined> {
    return this.core.write(whoOf(this.core.kernel.actor), (t, settle) => {
      const run = this.core.runs.get(runId, t)
      return run && runToWire(this.#current(t, runId, settle))
    })
  }

  /** The queued run of a task: an existing one, or a new one. */
  #queued(t: Tx, who: Who, id: string): RunRow {
    const [open, more] = this.core.runs.open(id, t)
    // The holder of a coordinator run without parts does the whole task.
    const isWhole = open?.designation_group_id === null || open?.kind === 'coordinator'
    if (open?.status === 'queued' && !more && isWhole) return open
    const attempt = this.core.runs.nextAttempt(id, { group: null, index: null }, t)
    const task = this.core.tasks.find(id, t)
    return this.core.reservations.reserve(t, who, task, { key: `task.keep.${id}.${attempt}` }).run
  }

  #end(runId: string, holder: KeptHolder, { move, event, changes, payload }: End): Promise<TaskRun> {
    const who = this.#who(holder)
    return this.core.write(who, (t, settle) => {
      const before = this.core.runs.find(runId, t)
      // The daemon was killed after the end was stored.
      if (before.claim_key === holder.key && before.ended_at !== null) return runToWire(before)
      const run = this.#fence(t, runId, holder)
      const isEmpty = !changes?.result || changes.result === 'null'
      if (move === 'completeByLease' && isEmpty && this.wantsResult(t, run.task_id))
        throw TaskErrors.task_result_required(
          `the execution profile of task ${run.task_id} requires a result, and none was given`,
        )
      const ended = moveRun(this.core, t, run, move, changes)
      t.run('DELETE FROM tasks_kept WHERE task_id = ?', [run.task_id])
      const task = taskOf(run)
      this.core.journal.write(t, who, event, { task, run: runId, ...(payload && { payload }) })
      settle(run.task_id)
      return runToWire(ended)
    })
  }

  /** Returns the run, after revoking its lease if that has expired. */
  #current(t: Tx, id: string, settle: Settle): RunRow {
    const run = this.core.runs.find(id, t)
    if (run.lease_until === null || run.session_id !== null || run.lease_until > this.core.now()) return run
    this.recovery.expire(t, run, settle)
    return this.core.runs.find(id, t)
  }

  #fence(t: Tx, id: string, { key }: KeptHolder): RunRow {
    const run = this.core.runs.find(id, t)
    if (run.claim_key === key && run.lease_until !== null && run.lease_until > this.core.now()) return run
    throw TaskErrors.AUTONOMY_LEASE_EXPIRED(`the lease of run ${id} has expired; updates of its holder are rejected`)
  }

  #who({ name }: KeptHolder): Who {
    const { actor, origin } = whoOf(this.core.kernel.actor)
    return { actor, by: { kind: 'network_peer', ref: name }, origin }
  }
}
