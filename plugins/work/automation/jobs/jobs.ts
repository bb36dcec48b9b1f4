import { command } from '../../../../kernel/kit/commands/command-line.js'
import { type Actor, type Fault, iso, type RecordChange, type StoredRecord } from '../../../../kernel/plugin.js'
import type { CreateJobBody, Job } from '../../../../schemas/automation.js'
import { durationText } from '../../../../schemas/duration.js'
import { AutomationErrors } from '../api.js'
import { type CursorStore, cursorToWire } from '../cursors.js'
import type { DefinitionReader } from '../definition-list.js'
import { Definitions, factsOf } from '../definitions.js'
import { JobKind, type JobRecord, JobSpec, jobProblem } from '../job-kind.js'
import type { K } from '../needs.js'
import { type Limits, MINUTE_MS, minuteOf } from '../runs/room.js'
import { lastRunToWire } from '../runs/run-wire.js'
import type { RunStore } from '../runs/runs.js'
import { scheduleText } from '../schedule-words.js'

/** The jobs API: reads and writes job records. */
export class Jobs extends Definitions<JobSpec, Job> {
  constructor(
    kernel: K,
    private readonly cursors: CursorStore,
    private readonly runs: RunStore,
    private readonly limits: Limits,
  ) {
    const disable = (id: string) => command('automation jobs update', id, '--no-enabled')
    const family = { noun: 'job' as const, disable, kind: JobKind, schema: JobSpec, problem: jobProblem }
    super(kernel, cursors.overlays, family, limits.fireLimit)
  }

  create(actor: Actor, body: CreateJobBody, id = this.kernel.ids.id('job')): Promise<Job> {
    return this.insert(actor, id, body, this.#specOf(body))
  }

  /** Throws the error that creating this job would fail with. */
  async judge(body: CreateJobBody): Promise<void> {
    await this.checked(body, this.#specOf(body))
  }

  #specOf({ scope, workspace_id, ...rest }: CreateJobBody): object {
    // A loop target takes no agent.
    const agent = rest.loop_target ? '' : this.kernel.needs.sessions.agentFor(workspace_id || undefined)
    return { ...rest, agent_name: rest.agent_name || agent, enabled: rest.enabled ?? true }
  }

  /** Reader for one list request. */
  reader(): DefinitionReader<ReturnType<typeof jobFacts>, Job> {
    const overlays = this.overlays.all()
    return {
      facts: stored => {
        const record = this.decode(stored)
        return record && jobFacts(record, this.cursors.enabled(record, overlays))
      },
      wire: id => {
        const record = this.decode(this.kernel.records.get(JobKind.name, id))
        return record && this.toWire(record)
      },
      searched: ({ schedule }) =>
        Object.values({ mode: '', expr: '', interval: '', time: '', ...schedule }).map(String),
    }
  }

  /** The wire form of a job, from its record and cursor. */
  toWire(record: JobRecord): Job {
    const { spec } = record
    const cursor = this.cursors.get(record.id)
    const [last] = this.runs.list({ jobId: record.id, limit: 1 })
    return {
      ...jobFacts(record, this.cursors.enabled(record)),
      ...this.common(record),
      ...(spec.task ? { task: spec.task } : {}),
      last_run: last ? lastRunToWire(last) : null,
      next_run: cursor?.next_run_at ? iso(cursor.next_run_at) : null,
      scheduler: cursor ? cursorToWire(cursor) : null,
    }
  }

  /** A job for people, with its schedule in words. */
  async described(job: Job): Promise<Job> {
    if (!job.schedule) return job
    return { ...job, schedule_text: await scheduleText(job.schedule, this.limits.timezone) }
  }

  /** Warns when more jobs are due in the minute of its next run than may run at once. */
  warnings({ next_run: next }: Job): { warnings?: string[] } {
    if (!next) return {}
    const from = minuteOf(Date.parse(next))
    const due = this.cursors.countDue(from, from + MINUTE_MS)
    const { maxConcurrent, queueWait } = this.limits
    if (due <= maxConcurrent) return {}
    const rest = queueWait === 0 ? 'are skipped' : `wait for at most ${durationText(queueWait)} (automation.queue_wait)`
    return {
      warnings: [
        `${due} jobs are due at ${iso(from).replace(':00.000Z', 'Z')}, and ${maxConcurrent} run at once (automation.max_concurrent_jobs); the others ${rest}`,
      ],
    }
  }

  /** Also refuses a duplicate name, whichever API writes the record. */
  override guard(change: RecordChange): Fault | undefined {
    return super.guard(change) ?? (change.verb === 'put' ? this.nameTaken(change.after) : undefined)
  }

  protected named(key: string): readonly string[] {
    return this.cursors.named(key)
  }

  /** A new `at` time in the past is a mistake. Stored jobs whose time passes later stay valid. */
  protected override refuse({ schedule }: JobSpec): void {
    if (schedule?.mode === 'at' && Date.parse(schedule.time ?? '') <= this.kernel.clock.now())
      throw AutomationErrors.job_invalid(`schedule.time: ${schedule.time} is in the past; the job would never run`)
  }
}

const jobFacts = (record: StoredRecord<JobSpec>, enabled: boolean) => ({
  ...factsOf(record, enabled),
  schedule: record.spec.schedule ?? null,
})
