import type { Tx } from '../../../../kernel/plugin.js'
import type { K } from '../needs.js'
import { type RunRow, runs } from './run-row.js'

/** The runs that wait for a slot, as they are stored. */
export class WaitingRows {
  constructor(private readonly kernel: K) {}

  /** Occurrences that wait for a slot, in the order in which they were due. */
  waiting(limit: number): RunRow[] {
    return runs.query(this.kernel.db, 'WHERE wait_until IS NOT NULL ORDER BY scheduled_at, seq LIMIT +?', [limit])
  }

  /** The waiting occurrences that have waited until now, the first of them first. */
  overdue(now: number, limit: number): RunRow[] {
    const late = 'WHERE wait_until IS NOT NULL AND wait_until <= ? ORDER BY wait_until, seq LIMIT +?'
    return runs.query(this.kernel.db, late, [now, limit])
  }

  /** When the first waiting occurrence has waited too long; undefined when none waits. */
  nextWaitEnd(): number | undefined {
    const [until] = this.kernel.db.row('SELECT min(wait_until) FROM automation_run WHERE wait_until IS NOT NULL') ?? []
    return typeof until === 'number' ? until : undefined
  }

  /** The wait ends at `latest` at the most: a clock that was set back must not extend it. */
  boundWaits(t: Tx, latest: number): void {
    t.run('UPDATE automation_run SET wait_until = ?1 WHERE wait_until IS NOT NULL AND wait_until > ?1', [latest])
  }

  /** A waiting occurrence has a slot. */
  admit(t: Tx, run: RunRow): RunRow {
    const admitted = { started_at: this.kernel.clock.now(), wait_until: null }
    runs.update(t, { seq: run.seq }, admitted)
    return { ...run, ...admitted }
  }
}
