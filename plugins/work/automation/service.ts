import { aborted } from '../../../kernel/kit/backoff.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../kernel/kit/text.js'
import type { Fault } from '../../../kernel/plugin.js'
import { type Actor, type Batch, type Consumer, iso } from '../../../kernel/plugin.js'
import type { OccurrencesReply } from '../../../schemas/automation/simulation.js'
import type {
  Job,
  ListJobsQuery,
  ListJobsReply,
  ListTriggersQuery,
  ListTriggersReply,
  Run,
  Schedule,
} from '../../../schemas/automation.js'
import type { StatusAutomation } from '../../../schemas/daemon.js'
import { durationMs } from '../../../schemas/duration.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import type { Planning, Undoing } from '../../desk/changes/api.js'
import type { HookRequest } from '../hooks/api.js'
import { type AutomationApi, AutomationErrors, points } from './api.js'
import { RunArchive } from './archive/run-archive.js'
import { Claims, startOf } from './claim.js'
import { CursorStore, cursorToWire } from './cursors.js'
import { DefaultZone } from './default-zone.js'
import { pageDefinitions } from './definition-list.js'
import { Dispatcher } from './dispatch.js'
import { findings } from './doctor.js'
import { ConfiguredDefinitions } from './from-config.js'
import { decodeJob, JobKind, type JobSpec } from './job-kind.js'
import { Jobs } from './jobs/jobs.js'
import type { K } from './needs.js'
import { Pace } from './pace.js'
import { LeftSessions } from './runs/left-sessions.js'
import { NoteworthyRuns } from './runs/noteworthy.js'
import { repairRuns, resumeFires } from './runs/repair.js'
import { forgetPlaces, keepPlaces, placeItems } from './runs/run-place.js'
import type { RunRow } from './runs/run-row.js'
import { RunViews } from './runs/run-views.js'
import { runToWire } from './runs/run-wire.js'
import { RunStore } from './runs/runs.js'
import { WaitingRuns } from './runs/waiting.js'
import { WaitingRows } from './runs/waiting-rows.js'
import { Occurrences, scheduleProblem } from './schedule.js'
import { scheduleText } from './schedule-words.js'
import { Scheduler } from './scheduler.js'
import { AutomationSettings } from './settings.js'
import { Simulator } from './simulate/simulator.js'
import { Suggestions } from './suggestions/suggestions.js'
import { EmittedEvents } from './triggers/emitted.js'
import { TriggerFires } from './triggers/fires.js'
import { Observed } from './triggers/observed.js'
import { TriggerKind } from './triggers/trigger-kind.js'
import { Triggers } from './triggers/triggers.js'
import { WebhookIds } from './webhooks/webhook-ids.js'
import { Webhooks } from './webhooks/webhooks.js'

const FORGET_MS = 24 * 60 * 60_000

/** Jobs replanned in one transaction. */
const REPLANNED_AT_ONCE = 200
/** Run steps per turn of the event loop: each is a transaction of a few tenths of a millisecond. */
const STEPS_A_TURN = 16
/** Number of upcoming jobs shown in the status. */
const SHOWN_JOBS = 50

/** Jobs, triggers and their runs. */
export class AutomationService {
  readonly preFire
  readonly prompting
  readonly jobs: Jobs
  readonly triggers: Triggers
  readonly fires: TriggerFires
  readonly simulator: Simulator
  readonly suggestions: Suggestions
  readonly emitted: EmittedEvents
  readonly runs: RunViews
  readonly archive: RunArchive
  readonly webhooks: Webhooks
  readonly configured: ConfiguredDefinitions
  #isConfigured = false
  readonly #runs: RunStore
  readonly #left: LeftSessions
  readonly #cursors: CursorStore
  readonly #claims: Claims
  readonly #scheduler: Scheduler
  readonly #dispatcher: Dispatcher
  readonly #waitingRuns: WaitingRuns
  readonly #observed: Observed
  readonly #enabled: boolean
  readonly #zone: DefaultZone
  readonly #stopping = new AbortController()
  /** Runs of triggers that a previous daemon claimed but did not dispatch. */
  #waiting: RunRow[] = []

  constructor(private readonly kernel: K) {
    this.configured = new ConfiguredDefinitions(kernel)
    this.#zone = new DefaultZone(kernel)
    const timezone = this.#zone.name
    const fireLimit = kernel.config.get(AutomationSettings.fireLimit)
    this.#enabled = kernel.config.get(AutomationSettings.enabled)
    const { preFire, prompting } = kernel.hooks.of(points)
    this.preFire = preFire
    this.prompting = prompting
    this.#left = new LeftSessions(kernel)
    this.#runs = new RunStore(kernel, this.#left)
    this.#cursors = new CursorStore(kernel, timezone)
    const limits = {
      timezone,
      fireLimit,
      maxConcurrent: kernel.config.get(AutomationSettings.maxConcurrentJobs),
      queueWait: kernel.config.get(AutomationSettings.queueWait),
      startedAt: startOf(kernel.clock),
    }
    const waiting = new WaitingRows(kernel)
    this.#claims = new Claims(kernel, this.#runs, this.#cursors, limits, waiting)
    const pace = new Pace(STEPS_A_TURN, () => this.#scheduler.isBehind)
    this.#dispatcher = new Dispatcher(kernel, this.#runs, this.#claims, this, pace, job => this.#scheduler.refresh(job))
    this.#scheduler = new Scheduler(kernel, {
      claim: async job => {
        const full = await kernel.needs.disk.refusal()
        if (full) throw full
        // Claims take precedence over the steps of earlier runs: an occurrence should not be late.
        await pace.pass(true)
        return this.#waitingRuns.noted(await this.#claims.due(job))
      },
      setBack: () => this.#replan(),
      dueAt: job => this.#cursors.dueAt(job),
      dispatch: ({ run, job }) => this.#dispatcher.start(run, job),
    })
    const catchUp = (job: string) => this.#scheduler.catchUp(job)
    const slots = { runs: this.#runs, claims: this.#claims, rows: waiting, dispatcher: this.#dispatcher, catchUp }
    this.#waitingRuns = new WaitingRuns(kernel, slots)
    this.jobs = new Jobs(kernel, this.#cursors, this.#runs, limits)
    const ids = new WebhookIds(kernel)
    this.triggers = new Triggers(kernel, ids, fireLimit)
    this.#observed = new Observed(kernel, this.triggers, this.#runs)
    const { triggers } = this
    const observed = this.#observed
    this.simulator = new Simulator(kernel, { cursors: this.#cursors, runs: this.#runs, triggers, observed, limits })
    this.suggestions = new Suggestions(kernel, this.jobs, triggers)
    this.emitted = new EmittedEvents(kernel)
    this.archive = new RunArchive(kernel, this.#left, {
      archives: () => kernel.needs.archives.current,
      days: () => kernel.config.get(AutomationSettings.archiveAfterDays),
      window: job => {
        const record = kernel.records.get(JobKind.name, job)
        return record && (durationMs((decodeJob(record)?.spec.fire_limit ?? fireLimit).window) ?? 0)
      },
    })
    this.runs = new RunViews(this.#runs, this.archive, this.jobs, triggers)
    const work = {
      triggers,
      observed,
      claims: this.#claims,
      enabled: this.#enabled,
      dispatch: this.#dispatcher.start.bind(this.#dispatcher),
    }
    this.fires = new TriggerFires(kernel, work)
    this.webhooks = new Webhooks(kernel, work)
  }

  /** Refuses to undo a change of a definition while a run of the present one is open. */
  mayUndo({ path, params: { id = '' } }: Undoing): Fault | undefined {
    if (!path.startsWith('/api/automation/jobs/') || this.#runs.openOf(id) === 0) return undefined
    return AutomationErrors.job_in_use(
      `a run of the job ${shown(id)} is in progress; undo the change when the run has ended`,
    )
  }

  /** Notes for the plan of a job: its schedule in words, or the reason of a refusal. */
  async planNotes(notes: readonly string[], { path, body }: Planning): Promise<readonly string[]> {
    const schedule = path.startsWith('/api/automation/jobs') ? (body as Partial<Pick<Job, 'schedule'>>)?.schedule : null
    if (!schedule) return notes
    const problem = scheduleProblem(schedule)
    if (problem !== undefined) return [...notes, `It would be refused: ${problem}`]
    return [...notes, `Schedule: ${await scheduleText(schedule, this.#zone.name)}`]
  }

  /** A schedule in words, and its next occurrences for a job that is created now. */
  async preview(schedule: Schedule, count: number): Promise<OccurrencesReply> {
    const problem = scheduleProblem(schedule)
    if (problem !== undefined) throw AutomationErrors.job_invalid(problem)
    const timezone = schedule.timezone ?? this.#zone.name
    const occurrences = new Occurrences(schedule, timezone)
    const found: number[] = []
    let at = occurrences.first(this.kernel.clock.now())
    while (at !== undefined && found.length < count) {
      found.push(at)
      at = occurrences.after(at, at)
    }
    return { text: await scheduleText(schedule, this.#zone.name), timezone, occurrences: found.map(iso) }
  }

  async start(): Promise<void> {
    await this.kernel.db.tx(t => {
      keepPlaces(this.kernel, t)
      this.#cursors.overlays.removeOrphans(t)
      this.triggers.removeOrphans(t)
    })
    await this.#replan()
    for (const [job, at] of this.#cursors.registered()) this.#scheduler.set(job, at)
    this.#waiting = [...(await repairRuns(this.kernel, this.#runs, this.#cursors))]
  }

  /** Runs once all plugins are loaded, when workspaces, kinds and guards exist. */
  async configure(): Promise<void> {
    if (this.#isConfigured) return
    this.#isConfigured = true
    await this.configured.sync()
    await this.#zone.settle()
  }

  /** Replans jobs whose cursor was computed while the clock was ahead. */
  async #replan(): Promise<readonly string[]> {
    const ahead = this.#cursors.ahead()
    await this.#replanAll(ahead)
    return ahead
  }

  async #replanAll(ids: readonly string[]): Promise<void> {
    for (let from = 0; from < ids.length; from += REPLANNED_AT_ONCE) {
      await this.kernel.db.tx(t => {
        for (const id of ids.slice(from, from + REPLANNED_AT_ONCE)) {
          const job = decodeJob(this.kernel.records.get(JobKind.name, id))
          if (job) this.#cursors.replan(t, job)
        }
      })
    }
  }

  /** Skips occurrences that were due while the home was held, or before it was restored. */
  async #passOver(): Promise<void> {
    const overdue = this.#cursors.overdue()
    await this.#replanAll(overdue)
    for (const id of overdue) this.#scheduler.refresh(id)
    await this.#waitingRuns.drop()
  }

  for({ name }: Consumer): AutomationApi {
    const self = this
    return {
      get running() {
        return self.running
      },
      preFire: this.preFire,
      prompting: this.prompting,
      suggest: (actor, workspace, wish) => this.suggestions.propose(actor, workspace, wish),
      emit: (t, event) => this.emitted.emit(t, name, event),
      about: run => this.#claims.about(run),
    }
  }

  /** Records the request of a hook program: its changes inherit the trigger depth of the hook. Resolves when this is durable. */
  noteRequest(request: HookRequest): Promise<void> {
    return this.#observed.hookRequests.note(request)
  }

  get running(): boolean {
    return this.#scheduler.running
  }

  /** Dispatches runs left by a previous daemon, then runs the scheduler loop. */
  async schedule(signal: AbortSignal): Promise<void> {
    const wasHeld = await this.kernel.needs.daemon.released(signal)
    if (wasHeld && !signal.aborted) await this.#passOver()
    const dispatcher = this.#enabled && !wasHeld ? this.#dispatcher : undefined
    await resumeFires(this.kernel, this.#runs, this.#waiting.splice(0), dispatcher)
    this.#left.start()
    if (this.#enabled) await this.#waitingRuns.start()
    if (this.#enabled) await this.#scheduler.run(AbortSignal.any([signal, this.#stopping.signal]))
    // A service that returns counts as failed.
    await aborted(signal)
  }

  /** Removes old runs of deleted jobs and triggers once a day, until the signal aborts. */
  async forgetDeleted(signal: AbortSignal): Promise<void> {
    const { clock, db, needs, records } = this.kernel
    await needs.daemon.released(signal)
    while (!signal.aborted) {
      await clock.sleep(FORGET_MS, signal).catch(() => {})
      for (const of of signal.aborted ? [] : this.#runs.definitions()) {
        const [kind, id] = 'jobId' in of ? [JobKind.name, of.jobId] : [TriggerKind.name, of.triggerId]
        if (records.get(kind, id) === undefined) await db.tx(t => this.#runs.forget(t, of))
      }
    }
  }

  async quiesce(): Promise<void> {
    this.#stopping.abort()
    this.#waitingRuns.close()
    await this.#left.close()
    await this.#dispatcher.close()
  }

  /** Record versions of the cursors: at startup only changed jobs are reconciled. */
  projected(): ReadonlyMap<string, number> {
    return this.#cursors.projected()
  }

  /** Projects records into cursors, and cursors into the scheduler's heap. */
  async reconcile(batch: Batch<JobSpec>): Promise<void> {
    const due = new Map<string, number | undefined>(batch.removed.map(id => [id, undefined]))
    await this.kernel.db.tx(t => {
      forgetPlaces(t, batch.removed)
      for (const id of batch.removed) this.#cursors.remove(t, id)
      const overlays = this.#cursors.overlays.all()
      for (const record of batch.records) {
        try {
          due.set(record.id, this.#cursors.project(t, record, overlays))
        } catch (error) {
          batch.fail(record.id, error)
        }
      }
    })
    for (const record of batch.records) this.jobs.projected(record)
    // A claim may have advanced a cursor meanwhile. During boot nothing is claimed yet.
    for (const [id, at] of due) batch.first ? this.#scheduler.set(id, at) : this.#scheduler.refresh(id)
  }

  async listJobs(actor: Actor, query: ListJobsQuery): Promise<ListJobsReply> {
    const { records } = this.kernel
    const of = { kind: JobKind.name, records, next: command('automation jobs list'), all: this.jobs.all }
    const { definitions, page } = await pageDefinitions(of, actor, query, this.jobs.reader())
    const jobs: Job[] = []
    for (const job of definitions) jobs.push(await this.jobs.described(job))
    return { jobs, page }
  }

  async listTriggers(actor: Actor, query: ListTriggersQuery): Promise<ListTriggersReply> {
    const { records } = this.kernel
    const of = { kind: TriggerKind.name, records, next: command('automation triggers list'), all: this.triggers.all }
    const { definitions: triggers, page } = await pageDefinitions(of, actor, query, this.triggers.reader())
    return { triggers, page }
  }

  /** Starts a manual run, also of a disabled job. Returns the `scheduled` run. */
  async trigger(actor: Actor, id: string, cause: string): Promise<Run> {
    this.jobs.find(id, actor)
    if (!this.#enabled || this.#stopping.signal.aborted) throw AutomationErrors.automation_disabled()
    await this.kernel.needs.daemon.admit('automation run')
    const { run, job } = await this.kernel.db.tx(t => this.#claims.reserve(t, id, { actor, cause }))
    this.#dispatcher.start(run, job)
    return runToWire(run)
  }

  /** The `automation` member of the status. */
  status(): StatusAutomation {
    const next = this.running ? this.#scheduler.nextDue : undefined
    return {
      enabled: this.#enabled,
      jobs: this.#cursors.totals(),
      triggers: this.triggers.totals(),
      next_fire: next === undefined ? null : iso(next),
      scheduler_running: this.running,
      scheduled_jobs: this.#cursors.upcoming(SHOWN_JOBS).map(cursorToWire),
      status: this.running || !this.#enabled ? 'ok' : 'degraded',
    }
  }

  /** Doctor items of automation. */
  async check(): Promise<DiagnosticItem[]> {
    const { held: isHeld } = this.kernel.needs.daemon
    const scheduler = { running: this.running, isHeld, isEnabled: this.#enabled, jobs: this.#cursors.totals().enabled }
    const isTrigger = (id: string) => this.kernel.records.get(TriggerKind.name, id) !== undefined
    return [
      ...findings(scheduler, new NoteworthyRuns(this.kernel.db), isTrigger),
      ...(await this.webhooks.findings()),
      ...placeItems(this.kernel),
      ...this.#zone.items(),
      ...this.configured.items(),
      ...this.archive.findings(),
    ]
  }
}
