import { shown } from '../../../../kernel/kit/text.js'
import type { Actor } from '../../../../kernel/plugin.js'
import type { ListRunsQuery, Run } from '../../../../schemas/automation.js'
import { isElsewhere } from '../../../desk/workspaces/api.js'
import { AutomationErrors } from '../api.js'
import type { RunArchive } from '../archive/run-archive.js'
import type { Jobs } from '../jobs/jobs.js'
import type { Triggers } from '../triggers/triggers.js'
import { runToWire } from './run-wire.js'
import type { RunStore } from './runs.js'

const DEFAULT_RUNS = 100
const MAX_RUNS = 1000

type HistoryQuery = Omit<ListRunsQuery, 'job_id' | 'trigger_id'>

/** Wire form of runs. */
export class RunViews {
  constructor(
    private readonly store: RunStore,
    private readonly archive: Pick<RunArchive, 'get' | 'list'>,
    private readonly jobs: Jobs,
    private readonly triggers: Triggers,
  ) {}

  /** Throws `run_not_found`, and as {@link RunArchive.get} does. */
  async get(by: Actor, id: string): Promise<Run> {
    const row = this.store.get(id) ?? (await this.archive.get(id))
    if (!row || isElsewhere(by, { kind: row.scope === null ? 'global' : 'workspace', id: row.scope ?? undefined }))
      throw AutomationErrors.run_not_found(`run not found: ${shown(id)}`)
    return runToWire(row)
  }

  /** Newest first; limited to the workspace the caller is restricted to. */
  async list(by: Actor, query: ListRunsQuery): Promise<Run[]> {
    const { job_id: jobId, trigger_id: triggerId, status, since, until, limit } = query
    const time = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text))
    const workspace = by.maxScope?.kind === 'workspace' ? by.maxScope.id : undefined
    const times = { since: time(since), until: time(until) }
    const filter = { jobId, triggerId, status, ...times, workspace, limit: Math.min(limit || DEFAULT_RUNS, MAX_RUNS) }
    return (await this.archive.list(filter, this.store.list(filter))).map(runToWire)
  }

  /** Runs of an existing or deleted job. Throws `job_not_found`. */
  async ofJob(by: Actor, id: string, query: HistoryQuery): Promise<Run[]> {
    const runs = await this.list(by, { ...query, job_id: id })
    if (runs.length === 0) this.jobs.stored(id, by)
    return runs
  }

  /** Runs of an existing or deleted trigger. Throws `trigger_not_found`. */
  async ofTrigger(by: Actor, id: string, query: HistoryQuery): Promise<Run[]> {
    const runs = await this.list(by, { ...query, trigger_id: id })
    if (runs.length === 0) this.triggers.stored(id, by)
    return runs
  }
}
