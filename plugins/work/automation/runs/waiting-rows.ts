import type { PluginKernel, Tx } from '../../../../kernel/plugin.js'
import type { RunRow } from './run-row.js'

/** The runs that wait for a slot, as they are stored. */
export class WaitingRows {
  constructor(private readonly kernel: Pick<PluginKernel, 'db' | 'clock'>) {}

  /** Occurrences that wait for a slot, in the order in which they were due. */
  waiting(limit: number): RunRow[] {
    return this.kernel.db.all<RunRow>(
      'SELECT * FROM automation_run WHERE wait_until IS NOT NULL ORDER BY scheduled_at, seq LIMIT +?',
      [limit],
    )
  }

  /** The waiting occurrences that have waited until now, the first of them first. */
  overdue(now: number, limit: number): RunRow[] {
    return this.kernel.db.all<RunRow>(
      'SELECT * FROM automation_run WHERE wait_until IS NOT NULL AND wait_until <= ? ORDER BY wait_until, seq LIMIT +?',
      [now, limit],
    )
  }

  /** When the first waiting occurrence has waited too long; undefined when none waits. */
  nextWaitEnd(): number | undefined {
    const [until] = this.kernel.db.row('SELECT min(wait_until) FROM automation_run WHERE wait_until IS NOT NULL') ?? []
    return typeof until === 'number' ? until : undefined
  }

  /** Nobody waits longer than `latest`: a clock that was set back must not extend the wait. */
  boundWaits(t: Tx, latest: number): void {
    t.run('UPDATE automation_run SET wait_until = ?1 WHERE wait_until IS NOT NULL AND wait_until > ?1', [latest])
  }

  /** A waiting occurrence has a slot. */
  admit(t: Tx, run: RunRow): RunRow {
    const admitted = { started_at: this.kernel.clock.now(), wait_until: null }
    t.run('UPDATE automation_run SET started_at = ?, wait_until = NULL WHERE seq = ?', [admitted.started_at, run.seq])
    return { ...run, ...admitted }
  }
}
