import { shown } from '../../kernel/kit/text.js'
import { type Actor, type Batch, type Clock, type Gate, iso, type PluginKernel } from '../../kernel/plugin.js'
import type { ListJobsQuery, ListJobsReply, ListRunsQuery, Run } from '../../schemas/automation.js'
import type { StatusAutomation } from '../../schemas/daemon.js'
import type { DiagnosticItem } from '../../schemas/kernel/diagnostic.js'
import { type Daemon, finding } from '../daemon/api.js'
import type { Events } from '../events/api.js'
import type { Reconcile } from '../reconcile/api.js'
import type { Sessions } from '../sessions/api.js'
import type { Workspaces } from '../workspaces/api.js'
import { type AutomationApi, AutomationErrors, type Fire } from './api.js'
import { Claims } from './claim.js'
import { CursorStore, cursorToWire } from './cursors.js'
import { Dispatcher } from './dispatch.js'
import { decodeJob, JobKind, type JobSpec } from './job-kind.js'
import { pageJobs } from './job-list.js'
import { Jobs } from './jobs.js'
import { Pace } from './pace.js'
import { repairRuns } from './repair.js'
import { type RunRow, RunStore, runToWire } from './runs.js'
import { Scheduler } from './scheduler.js'
import { AutomationSettings } from './settings.js'
import { TriggerKind } from './trigger-kind.js'

const DEFAULT_RUNS = 100
const MAX_RUNS = 1000
/** Jobs that are planned anew in one transaction. */
const REPLANNED_AT_ONCE = 200
/** Steps of runs in one turn of the event loop: each is a transaction of some tenths of a millisecond. */
const STEPS_A_TURN = 16
/** Jobs that the status names, the next ones to be due. */
const SHOWN_JOBS = 50

type Needs = {
  daemon: typeof Daemon
  events: typeof Events
  reconcile: typeof Reconcile
  sessions: typeof Sessions
  workspaces: typeof Workspaces
}

/** Jobs, their schedules and their runs. */
export class AutomationService implements AutomationApi {
  readonly preFire: Gate<[Fire]>
  readonly jobs: Jobs
  readonly #runs: RunStore
  readonly #cursors: CursorStore
  readonly #claims: Claims
  readonly #scheduler: Scheduler
  readonly #dispatcher: Dispatcher
  readonly #enabled: boolean
  readonly #stopping = new AbortController()

  constructor(private readonly kernel: PluginKernel<Needs>) {
    const timezone = kernel.config.get(AutomationSettings.timezone)
    const fireLimit = kernel.config.get(AutomationSettings.fireLimit)
    this.#enabled = kernel.config.get(AutomationSettings.enabled)
    this.preFire = kernel.hooks.gate('preFire')
    this.#runs = new RunStore(kernel)
    this.#cursors = new CursorStore(kernel, timezone)
    this.#claims = new Claims(kernel, this.#runs, this.#cursors, {
      timezone,
      fireLimit,
      maxConcurrent: kernel.config.get(AutomationSettings.maxConcurrentJobs),
      startedAt: startOf(kernel.clock),
    })
    const pace = new Pace(STEPS_A_TURN)
    this.#dispatcher = new Dispatcher(kernel, this.#runs, this.#claims, this.preFire, pace, job =>
      this.#scheduler.refresh(job),
    )
    this.#scheduler = new Scheduler(kernel, {
      claim: async job => {
        const full = await kernel.disk.refusal()
        if (full) throw full
        await pace.pass()
        return this.#claims.due(job)
      },
      setBack: () => this.#replan(),
      dueAt: job => this.#cursors.get(job)?.next_run_at ?? undefined,
      dispatch: ({ run, job }) => this.#dispatcher.start(run, job),
    })
    this.jobs = new Jobs(kernel, this.#cursors, this.#runs, fireLimit)
  }

  async start(): Promise<void> {
    await this.kernel.db.tx(t => this.#cursors.removeOrphans(t))
    await this.#replan()
    for (const [job, at] of this.#cursors.registered()) this.#scheduler.set(job, at)
    const left = await repairRuns(this.kernel, this.#runs, this.#cursors)
    if (left > 0) this.kernel.log.warn(`${left} runs that an earlier daemon left were ended`)
  }

  /** Plans anew what was planned by a clock that was ahead of the present one. */
  async #replan(): Promise<readonly string[]> {
    const ahead = this.#cursors.ahead()
    for (let from = 0; from < ahead.length; from += REPLANNED_AT_ONCE) {
      await this.kernel.db.tx(t => {
        for (const id of ahead.slice(from, from + REPLANNED_AT_ONCE)) {
          const job = decodeJob(this.kernel.records.get(JobKind.name, id))
          if (job) this.#cursors.replan(t, job)
        }
      })
    }
    return ahead
  }

  get running(): boolean {
    return this.#scheduler.running
  }

  /** The scheduler's loop. */
  async schedule(signal: AbortSignal): Promise<void> {
    if (this.#enabled) await this.#scheduler.run(AbortSignal.any([signal, this.#stopping.signal]))
    // A loop that returns would be taken for one that failed.
    if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
  }

  async quiesce(): Promise<void> {
    this.#stopping.abort()
    await this.#dispatcher.close()
  }

  /** What the cursors hold: a start looks only at jobs that changed since. */
  projected(): ReadonlyMap<string, number> {
    return this.#cursors.projected()
  }

  /** Projects records into cursors, and cursors into the heap of the scheduler. */
  async reconcile(batch: Batch<JobSpec>): Promise<void> {
    const due = new Map<string, number | undefined>(batch.removed.map(id => [id, undefined]))
    await this.kernel.db.tx(t => {
      for (const id of batch.removed) this.#cursors.remove(t, id)
      const overlays = this.#cursors.overlays()
      for (const record of batch.records) {
        try {
          due.set(record.id, this.#cursors.project(t, record, overlays))
        } catch (error) {
          batch.fail(record.id, error)
        }
      }
    })
    for (const record of batch.records) this.jobs.projected(record)
    // A claim may have moved a cursor meanwhile; on the boot nothing is claimed yet.
    for (const [id, at] of due) batch.first ? this.#scheduler.set(id, at) : this.#scheduler.refresh(id)
  }

  listJobs(actor: Actor, query: ListJobsQuery): Promise<ListJobsReply> {
    return pageJobs(this.kernel.records, actor, query, this.jobs.reader())
  }

  /** Reserves a run by hand and starts it; whether the job is enabled does not matter. Answers with the `scheduled` run. */
  async trigger(actor: Actor, id: string, cause: string): Promise<Run> {
    this.jobs.find(id)
    if (!this.#enabled || this.#stopping.signal.aborted) throw AutomationErrors.automation_disabled()
    await this.kernel.needs.daemon.admit('automation run')
    const { run, job } = await this.kernel.db.tx(t => this.#claims.reserve(t, id, { actor, cause }))
    this.#dispatcher.start(run, job)
    return runToWire(run)
  }

  run(id: string): Run {
    const row = this.#runs.get(id)
    if (!row) throw AutomationErrors.run_not_found(`there is no run ${shown(id)}`)
    return runToWire(row)
  }

  listRuns({ job_id: jobId, trigger_id: trigger, status, since, until, limit }: ListRunsQuery): Run[] {
    // Nothing here was set off by a trigger.
    if (trigger) return []
    const time = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text))
    const filter = { jobId, status, since: time(since), until: time(until) }
    return this.#runs.list({ ...filter, limit: Math.min(limit || DEFAULT_RUNS, MAX_RUNS) }).map(runToWire)
  }

  /** Runs of a job that is there, or that was. Throws `job_not_found`. */
  history(id: string, query: Omit<ListRunsQuery, 'job_id' | 'trigger_id'>): Run[] {
    const runs = this.listRuns({ ...query, job_id: id })
    if (runs.length === 0) this.jobs.stored(id)
    return runs
  }

  /** Member `automation` of the status. */
  status(): StatusAutomation {
    const next = this.running ? this.#scheduler.nextDue : undefined
    return {
      enabled: this.#enabled,
      jobs: this.#cursors.totals(),
      triggers: this.#triggerTotals(),
      next_fire: next === undefined ? null : iso(next),
      scheduler_running: this.running,
      scheduled_jobs: this.#cursors.upcoming(SHOWN_JOBS).map(cursorToWire),
      status: this.running || !this.#enabled ? 'ok' : 'degraded',
    }
  }

  #triggerTotals(): StatusAutomation['triggers'] {
    const { records } = this.kernel
    const enabled = records.count({ kind: TriggerKind, members: { enabled: true } })
    return { total: records.count({ kind: TriggerKind }), enabled }
  }

  /** Doctor: the scheduler, and jobs whose latest run failed. */
  check(): DiagnosticItem[] {
    const scheduler = this.running
      ? {
          code: 'scheduler_ready',
          severity: 'info',
          title: 'the scheduler runs',
          message: `${this.#cursors.totals().enabled} jobs are enabled`,
        }
      : this.#enabled
        ? {
            code: 'scheduler_paused',
            severity: 'error',
            title: 'the scheduler does not run',
            message: 'nothing is fired; restart the daemon',
          }
        : {
            code: 'scheduler_paused',
            severity: 'warning',
            title: 'automation is switched off',
            message: 'automation.enabled is false in config.json; nothing is fired',
          }
    const failed = this.#runs.latestFailures(20)
    return [
      finding({ id: 'scheduler', category: 'automation', ...scheduler }),
      ...failed.map(run => this.#failure(run)),
    ]
  }

  #failure(run: RunRow): DiagnosticItem {
    return finding({
      id: `scheduler:${run.job_id}`,
      code: 'automation_run_failed',
      category: 'automation',
      severity: 'warning',
      title: `the latest run of job ${run.job_id} failed`,
      message: run.error ?? 'it says nothing about why',
      suggested_command: `svc automation jobs history ${run.job_id}`,
      evidence: { run_id: run.id, ...(run.session_id === null ? {} : { session_id: run.session_id }) },
    })
  }
}

/** When the daemon started by the present wall clock; by that of then, if it was set forward since. Epoch milliseconds. */
function startOf(clock: Clock): () => number {
  const [wall, monotonic] = [clock.now(), clock.monotonic()]
  return () => Math.min(wall, clock.now() - (clock.monotonic() - monotonic))
}
