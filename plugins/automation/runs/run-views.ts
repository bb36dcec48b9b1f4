import { shown } from '../../../kernel/kit/text.js'
import type { ListRunsQuery, Run } from '../../../schemas/automation.js'
import { AutomationErrors } from '../api.js'
import type { Jobs } from '../jobs/jobs.js'
import type { Triggers } from '../triggers/triggers.js'
import { runToWire } from './run-row.js'
import type { RunStore } from './runs.js'

const DEFAULT_RUNS = 100
const MAX_RUNS = 1000

type HistoryQuery = Omit<ListRunsQuery, 'job_id' | 'trigger_id'>

/** Runs as the contract has them. */
export class RunViews {
  constructor(
    private readonly store: RunStore,
    private readonly jobs: Jobs,
    private readonly triggers: Triggers,
  ) {}

  /** Throws `run_not_found`. */
  get(id: string): Run {
    const row = this.store.get(id)
    if (!row) throw AutomationErrors.run_not_found(`there is no run ${shown(id)}`)
    return runToWire(row)
  }

  /** Newest first. */
  list({ job_id: jobId, trigger_id: triggerId, status, since, until, limit }: ListRunsQuery): Run[] {
    const time = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text))
    const filter = { jobId, triggerId, status, since: time(since), until: time(until) }
    return this.store.list({ ...filter, limit: Math.min(limit || DEFAULT_RUNS, MAX_RUNS) }).map(runToWire)
  }

  /** Runs of a job that is there, or that was. Throws `job_not_found`. */
  ofJob(id: string, query: HistoryQuery): Run[] {
    const runs = this.list({ ...query, job_id: id })
    if (runs.length === 0) this.jobs.stored(id)
    return runs
  }

  /** The same of a trigger. Throws `trigger_not_found`. */
  ofTrigger(id: string, query: HistoryQuery): Run[] {
    const runs = this.list({ ...query, trigger_id: id })
    if (runs.length === 0) this.triggers.stored(id)
    return runs
  }
}
