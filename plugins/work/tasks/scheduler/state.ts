import { iso, type Reads } from '../../../../kernel/plugin.js'
import type { TaskScheduler } from '../../../../schemas/tasks.js'
import { SchedulerPaused, SchedulerResumed } from '../api.js'
import type { TaskCore } from '../core.js'
import { LIMITS } from '../limits.js'
import { optionalMember } from '../rows.js'
import { checked } from '../tasks/write.js'
import { refToWire, type Who } from '../who.js'

interface Row {
  readonly paused_at: number | null
  readonly paused_by: string | null
  readonly paused_reason: string | null
  readonly updated_at: number
}

const ID = 'scheduler'
/** A run that has been claimable for this many milliseconds is starved. */
const STARVED_MS = 2 * 60_000

/** Whether the scheduler is paused. */
export const isPaused = (reads: Reads): boolean =>
  typeof reads.row('SELECT paused_at FROM tasks_scheduler WHERE id = ?', [ID])?.[0] === 'number'

/** Pause state and counts of the scheduler. A pause survives a restart of the daemon. */
export class SchedulerState {
  constructor(private readonly core: TaskCore) {}

  /** Whether the scheduler is paused, for a transaction. */
  pausedIn(reads: Reads): boolean {
    return this.core.caches.paused.read(ID, () => isPaused(reads))
  }

  /** Stops new claims; active runs continue. */
  pause(who: Who, why: string | undefined): Promise<void> {
    const reason = checked('reason', why, LIMITS.reason)
    return this.core.write(who, t => {
      const now = this.core.now()
      t.run(
        `INSERT INTO tasks_scheduler (id, paused_at, paused_by, paused_reason, updated_at) VALUES (?1, ?2, ?3, ?4, ?2)
         ON CONFLICT (id) DO UPDATE SET paused_at = ifnull(paused_at, ?2), paused_by = ?3, paused_reason = ?4, updated_at = ?2`,
        [ID, now, who.by.ref, reason ?? null],
      )
      this.core.caches.paused.changed(t, ID)
      this.core.kernel.needs.events.emit(t, SchedulerPaused, { reason }, { actor: who.actor })
    })
  }

  resume(who: Who, why: string | undefined): Promise<void> {
    const reason = checked('reason', why, LIMITS.reason)
    return this.core.write(who, t => {
      t.run(
        'UPDATE tasks_scheduler SET paused_at = NULL, paused_by = NULL, paused_reason = NULL, updated_at = ? WHERE id = ?',
        [this.core.now(), ID],
      )
      this.core.caches.paused.changed(t, ID)
      this.core.kernel.needs.events.emit(t, SchedulerResumed, { reason }, { actor: who.actor })
      this.core.kernel.db.onDurable(t, () => {
        this.core.tellClaimable()
      })
    })
  }

  /** Number of active runs. */
  activeClaims(): number {
    return this.#count(
      "SELECT count(*) FROM tasks_run WHERE status IN ('claimed', 'starting', 'running') AND ifnull(lease_until, 9e15) > ?",
      this.core.now(),
    )
  }

  toWire(): TaskScheduler {
    const row = this.core.kernel.db.get<Row>('SELECT * FROM tasks_scheduler WHERE id = ?', [ID])
    const runs = (status: string) => this.#count('SELECT count(*) FROM tasks_run WHERE status = ?', status)
    const isPaused = row !== undefined && row.paused_at !== null
    return {
      as_of: iso(this.core.now()),
      paused: isPaused,
      paused_at: row && row.paused_at !== null ? iso(row.paused_at) : null,
      ...optionalMember('paused_by', row?.paused_by && refToWire(row.paused_by)),
      ...optionalMember('paused_reason', row?.paused_reason),
      active_claim_count: this.activeClaims(),
      needs_attention_run_count: runs('needs_attention'),
      queued_run_count: runs('queued'),
      paused_task_count: this.#count(
        'SELECT count(*) FROM tasks_task WHERE pausing_task IS NOT NULL AND pausing_task <> ?',
        '',
      ),
      // A paused scheduler lets no run be claimed, so nothing starves.
      starved_run_count: isPaused
        ? 0
        : this.#count(
            "SELECT count(*) FROM tasks_run WHERE status = 'queued' AND claimable = 1 AND queued_at <= ?",
            this.core.now() - STARVED_MS,
          ),
    }
  }

  #count(sql: string, param: string | number): number {
    return Number(this.core.kernel.db.row(sql, [param])?.[0] ?? 0)
  }
}
