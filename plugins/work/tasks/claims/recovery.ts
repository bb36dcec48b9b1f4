import type { Tx } from '../../../../kernel/plugin.js'
import type { SessionInfo } from '../../sessions/api.js'
import type { Settle, TaskCore } from '../core.js'
import { LIMITS } from '../limits.js'
import type { RunRow } from '../runs/run-row.js'
import { escalate } from '../tasks/attention.js'
import { expireBlocks, firstExpiry } from '../tasks/blocks.js'
import { moveRun } from '../transitions.js'
import { type Who, whoOf } from '../who.js'
import type { ClaimTokens } from './tokens.js'

/** Counts of runs recovered at the start of the daemon. */
export interface Recovered {
  failed: number
  marked_running: number
  requeued: number
}

/** Recovers runs whose leases have expired or whose sessions are gone. */
export class Recovery {
  readonly since: Recovered = { failed: 0, marked_running: 0, requeued: 0 }

  constructor(
    private readonly core: TaskCore,
    private readonly tokens: ClaimTokens,
  ) {}

  /** Recovers the runs of the previous daemon: first expired leases, then the others. */
  async boot(): Promise<void> {
    while ((await this.expireDue()) === LIMITS.batch);
    const runs = this.core.kernel.db.all<RunRow>(
      `SELECT * FROM tasks_run WHERE status IN ('claimed', 'starting', 'running') AND session_id IS NOT NULL`,
    )
    for (const { id } of runs) await this.core.write(this.#who, (t, settle) => this.#adopt(t, id, settle))
  }

  /** When the first lease is recovered or the first transient block ends, in epoch milliseconds. */
  nextDeadline(): number | undefined {
    const { db } = this.core.kernel
    const lease = db.row('SELECT min(lease_until) + ? FROM tasks_run WHERE lease_until IS NOT NULL', [
      LIMITS.lease.late,
    ])
    const ends = [lease?.[0], firstExpiry(this.core, db)].filter(at => typeof at === 'number')
    return ends.length === 0 ? undefined : Math.min(...ends)
  }

  /** Recovers expired leases, oldest first, and clears transient blocks that are over. Returns the number of leases. */
  expireDue(): Promise<number> {
    return this.core.write(this.#who, (t, settle) => {
      expireBlocks(this.core, t, settle)
      // A clock that was set back must not extend a lease beyond its duration.
      const { changes } = t.run(
        'UPDATE tasks_run SET lease_until = ?1 + lease_ms WHERE lease_until IS NOT NULL AND lease_until > ?1 + lease_ms',
        [this.core.now()],
      )
      if (changes > 0) this.core.runs.leasesChanged(t)
      const expired = t.all<RunRow>(
        'SELECT * FROM tasks_run WHERE lease_until IS NOT NULL AND lease_until <= ? ORDER BY lease_until, id LIMIT +?',
        [this.core.now(), LIMITS.batch],
      )
      for (const run of expired) this.expire(t, run, settle)
      return expired.length
    })
  }

  /** Requeues a run with an expired lease, or escalates it when its attempts are exhausted. */
  expire(t: Tx, run: RunRow, settle: Settle): void {
    const task = this.core.tasks.find(run.task_id, t)
    const left = run.attempt + run.recovery_count < task.max_attempts
    const payload = { session_id: run.session_id, recovery_count: run.recovery_count }
    this.core.journal.write(t, this.#who, 'task.run_lease_expired', { task, run: run.id, payload })
    if (run.session_id !== null) this.tokens.forget(run.session_id, run.id)
    if (!left) {
      escalate(this.core, t, this.#who, run, 'lease_recovery_exhausted', settle)
      return
    }
    moveRun(this.core, t, run, 'requeue', { recovery_count: run.recovery_count + 1, claimable: task.claimable })
    this.core.journal.write(t, this.#who, 'task.run_recovered', { task, run: run.id })
    settle(task.id)
  }

  /** Requeues the runs of a stopped session. They need attention when its process exited unexpectedly. */
  sessionStopped(session: SessionInfo): Promise<void> {
    const crashed = session.stopReason === 'agent_crashed' || session.failure?.kind === 'process_exit'
    return this.core.write(this.#who, (t, settle) => {
      for (const run of this.core.runs.ofSession(session.id, t)) {
        this.tokens.forget(session.id, run.id)
        if (crashed)
          escalate(
            this.core,
            t,
            this.#who,
            run,
            `the agent process of session ${session.id} exited unexpectedly`,
            settle,
          )
        else this.#requeue(t, run, session.stopDetail || session.stopReason || 'session_stopped', settle)
      }
    })
  }

  /** Escalates the runs of an unresponsive session. */
  sessionUnhealthy(session: string, reason: string): Promise<void> {
    return this.core.write(this.#who, (t, settle) => {
      for (const run of this.core.runs.ofSession(session, t)) {
        this.tokens.forget(session, run.id)
        escalate(this.core, t, this.#who, run, reason, settle)
      }
    })
  }

  #requeue(t: Tx, run: RunRow, reason: string, settle: Settle): void {
    const task = this.core.tasks.find(run.task_id, t)
    moveRun(this.core, t, run, 'requeue', { claimable: task.claimable })
    this.core.journal.write(t, this.#who, 'task.run_released', { task, run: run.id, payload: { reason } })
    settle(task.id)
  }

  #adopt(t: Tx, id: string, settle: Settle): void {
    const run = this.core.runs.find(id, t)
    const task = this.core.tasks.find(run.task_id, t)
    const session = run.session_id ?? ''
    const state = this.core.kernel.needs.sessions.get(session)?.state
    const isLive = state === 'active' || state === 'starting'
    // An operator attached the session without a lease, and ends the run.
    if (isLive && run.lease_until === null) return
    if (isLive) {
      // The previous daemon kept the claim token in memory only.
      const hash = this.tokens.make()
      moveRun(this.core, t, run, 'adopt', { token_hash: hash })
      this.tokens.keep(session, id, hash)
      this.since.marked_running++
    } else if (run.status === 'claimed') {
      this.#requeue(t, run, 'daemon_restarted', settle)
      this.since.requeued++
    } else {
      const error = 'the daemon restarted during this run and its session ended'
      moveRun(this.core, t, run, 'abandon', { error, failure_kind: 'daemon_restarted' })
      this.core.journal.write(t, this.#who, 'task.run_failed', { task, run: id, payload: { error } })
      this.since.failed++
    }
    settle(task.id)
  }

  get #who(): Who {
    return whoOf(this.core.kernel.actor)
  }
}
