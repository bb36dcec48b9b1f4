import * as v from 'valibot'
import { shown } from '../../kernel/kit/text.js'
import {
  type Actor,
  type Fault,
  iso,
  issueText,
  type PluginKernel,
  type RecordChange,
  type RecordScope,
  type StoredRecord,
} from '../../kernel/plugin.js'
import type { CreateJobBody, FireLimit, Job, PatchJobBody } from '../../schemas/automation.js'
import type { Reconcile } from '../reconcile/api.js'
import { AutomationErrors } from './api.js'
import { type CursorStore, cursorToWire, nameKey } from './cursors.js'
import { decodeJob, isLoop, JobKind, type JobRecord, JobSpec, jobProblem, jobSource } from './job-kind.js'
import type { JobReader } from './job-list.js'
import { lifecycleCommand } from './lifecycle-command.js'
import { lastRunToWire, type RunStore } from './runs.js'

type Kernel = Pick<PluginKernel<{ reconcile: typeof Reconcile }>, 'db' | 'records' | 'needs' | 'ids'>

/** Kinds with a prompt that runs by itself. */

/** The jobs API: reads and writes the jobs' records. */
export class Jobs {
  /** Ids that were given a name and may have no cursor yet; what is in here is looked up before it is believed. */
  readonly #named = new Map<string, string>()

  constructor(
    private readonly kernel: Kernel,
    private readonly cursors: CursorStore,
    private readonly runs: RunStore,
    private readonly fireLimit: FireLimit,
  ) {}

  /** Throws `job_not_found`, `job_damaged`. */
  find(id: string): JobRecord {
    const job = decodeJob(this.stored(id))
    if (!job)
      throw AutomationErrors.job_damaged(`the stored definition of job ${id} is not valid; write it anew or delete it`)
    return job
  }

  /** The record as it is stored, valid or not. Throws `job_not_found`. */
  stored(id: string): StoredRecord {
    const record = this.kernel.records.get(JobKind.name, id)
    if (!record) throw AutomationErrors.job_not_found(`there is no job ${shown(id)}`)
    return record
  }

  async create(actor: Actor, body: CreateJobBody): Promise<Job> {
    const { scope: kind, workspace_id: workspace, ...rest } = body
    const scope = scopeOf(kind, workspace)
    const id = this.kernel.ids.id('job')
    const spec = { ...rest, enabled: rest.enabled ?? true }
    this.#validate(spec, scope)
    await this.kernel.db.tx(t =>
      this.kernel.records.put(t, actor, { kind: JobKind, id, scope, spec, expectedVersion: 0 }),
    )
    return this.#projected(id)
  }

  /** Null and absent members stay as they are. */
  async patch(actor: Actor, id: string, body: PatchJobBody): Promise<Job> {
    const before = this.find(id)
    const change = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null && value !== undefined))
    if (Object.keys(change).length === 0) return this.toWire(before)
    if (jobSource(before) !== 'dynamic') {
      const { enabled } = change
      if (Object.keys(change).length > 1 || typeof enabled !== 'boolean') throw AutomationErrors.job_read_only()
      await this.kernel.db.tx(t => this.cursors.setOverlay(t, id, enabled))
      this.kernel.needs.reconcile.mark([{ kind: JobKind.name, id }])
      return this.#projected(id)
    }
    const spec = { ...before.spec, ...change }
    this.#validate(spec, before.scope)
    const write = { kind: JobKind, id, scope: before.scope, spec, expectedVersion: before.version, owner: before.owner }
    await this.kernel.db.tx(t => this.kernel.records.put(t, actor, write))
    return this.#projected(id)
  }

  async remove(actor: Actor, id: string): Promise<void> {
    if (jobSource(this.stored(id)) !== 'dynamic') {
      throw AutomationErrors.job_read_only('this job is defined by the configuration or a package and goes with it', {
        next: `svc automation jobs update ${id} --no-enabled`,
      })
    }
    await this.kernel.db.tx(t => this.kernel.records.delete(t, actor, { kind: JobKind, id }))
    await this.kernel.needs.reconcile.settled([{ kind: JobKind.name, id }])
  }

  /** For one list. */
  reader(): JobReader {
    const overlays = this.cursors.overlays()
    return {
      facts: stored => {
        const record = decodeJob(stored)
        return record && facts(record, this.cursors.enabled(record, overlays))
      },
      wire: id => {
        const record = decodeJob(this.kernel.records.get(JobKind.name, id))
        return record && this.toWire(record)
      },
    }
  }

  /** A job as the contract has it: from its record and its cursor. */
  toWire(record: JobRecord): Job {
    const { spec } = record
    const cursor = this.cursors.get(record.id)
    const [last] = this.runs.list({ jobId: record.id, limit: 1 })
    return {
      ...facts(record, this.cursors.enabled(record)),
      fire_limit: spec.fire_limit ?? this.fireLimit,
      retry: spec.retry ?? { strategy: 'none', max_retries: 0, base_delay: '' },
      ...(spec.task ? { task: spec.task } : {}),
      last_run: last ? lastRunToWire(last) : null,
      next_run: cursor?.next_run_at ? iso(cursor.next_run_at) : null,
      scheduler: cursor ? cursorToWire(cursor) : null,
      created_at: iso(record.createdAt),
      updated_at: iso(record.updatedAt),
    }
  }

  /** The cursor of a record has its name now. */
  projected(record: StoredRecord): void {
    this.#named.delete(nameKey(record))
  }

  /** Refuses, inside the transaction of a write at any door, a name that is taken and a prompt that ends the daemon. */
  guard(change: RecordChange): Fault | undefined {
    if (change.verb !== 'put') return undefined
    const { after } = change
    const spec = after.spec as JobSpec
    if (jobSource(after) === 'dynamic') {
      const found = lifecycleCommand(`${spec.prompt ?? ''}\n${spec.task?.description ?? ''}`)
      if (found) return AutomationErrors.lifecycle_command(undefined, { details: { class: found } })
    }
    if (after.kind !== JobKind.name) return undefined
    const key = nameKey(after)
    for (const id of [this.#named.get(key) ?? after.id, ...this.cursors.named(key)]) {
      const other = id === after.id ? undefined : this.kernel.records.get(JobKind.name, id)
      if (other && nameKey(other) === key)
        return AutomationErrors.job_name_taken(`job ${id} has the name ${JSON.stringify(spec.name)} already`)
    }
    this.#named.set(key, after.id)
    return undefined
  }

  #validate(spec: unknown, scope: RecordScope): void {
    const decoded = v.safeParse(JobSpec, spec)
    if (!decoded.success) {
      const [issue] = decoded.issues
      throw AutomationErrors.job_invalid(`${v.getDotPath(issue) ?? 'job'}: ${issueText(issue)}`)
    }
    const problem = jobProblem(decoded.output, scope)
    if (problem?.of === 'loop') throw AutomationErrors.loop_invalid(problem.text)
    if (problem) throw AutomationErrors.job_invalid(problem.text)
  }

  /** The job as written, once its cursor says when it is due. */
  async #projected(id: string): Promise<Job> {
    await this.kernel.needs.reconcile.settled([{ kind: JobKind.name, id }])
    return this.toWire(this.find(id))
  }
}

/** What a record says of a job by itself. */
function facts(record: JobRecord, enabled: boolean) {
  const { id, spec, scope } = record
  return {
    id,
    name: spec.name,
    agent_name: spec.agent_name ?? '',
    prompt: spec.prompt ?? '',
    enabled,
    target_kind: isLoop(spec) ? 'loop' : 'agent',
    scope: scope.kind === 'workspace' ? ('workspace' as const) : ('global' as const),
    ...(scope.id === undefined ? {} : { workspace_id: scope.id }),
    source: jobSource(record),
    schedule: spec.schedule ?? null,
    ...(spec.loop_target ? { loop_target: spec.loop_target } : {}),
  }
}

function scopeOf(kind: 'global' | 'workspace', workspace: string | undefined): RecordScope {
  if (kind === 'workspace') {
    if (!workspace) throw AutomationErrors.job_invalid('workspace_id: required for scope workspace')
    return { kind, id: workspace }
  }
  if (workspace) throw AutomationErrors.job_invalid('workspace_id: must be empty for scope global')
  return { kind }
}
