import * as v from 'valibot'
import { text } from '../../../kernel/kit/text.js'
import { kind, type PartyOf, type RecordFilter, type RecordScope, type StoredRecord } from '../../../kernel/plugin.js'
import type { AutomationSource } from '../../../schemas/automation/definitions.js'
import { FireLimit, JobTask, LoopTarget, Retry, Schedule } from '../../../schemas/automation.js'
import { durationMs } from '../../../schemas/duration.js'
import { scheduleProblem } from './schedule.js'

/** Spec of a record of kind `automation.job`, decoded leniently: unknown members are dropped. */
export const JobSpec = v.object({
  id: v.optional(v.string()),
  name: text(200),
  scope: v.optional(v.picklist(['user', 'global', 'workspace'])),
  workspace_id: v.optional(v.string()),
  target_kind: v.optional(v.picklist(['', 'agent', 'loop'])),
  agent_name: v.optional(text(128, 0)),
  prompt: v.optional(v.string()),
  enabled: v.optional(v.boolean(), true),
  schedule: v.nullish(v.object(Schedule.entries)),
  fire_limit: v.nullish(v.object(FireLimit.entries)),
  retry: v.nullish(v.object(Retry.entries)),
  loop_target: v.nullish(v.object(LoopTarget.entries)),
  task: v.nullish(v.object(JobTask.entries)),
})
export type JobSpec = v.InferOutput<typeof JobSpec>

/** A stored job. */
export type JobRecord = StoredRecord<JobSpec>

/** A validation problem: `loop` problems are answered with 422, others with 400 by the jobs and triggers API. */
export interface JobProblem {
  readonly of: 'job' | 'loop'
  readonly text: string
}

/** Members that jobs and triggers share. */
type Definition = Partial<
  Pick<
    JobSpec,
    'id' | 'scope' | 'workspace_id' | 'target_kind' | 'agent_name' | 'prompt' | 'fire_limit' | 'retry' | 'loop_target'
  >
> & { readonly task?: JobSpec['task'] }

/** Validates the fire limit and the retry policy. */
export function limitsProblem({ fire_limit: limit, retry }: Definition): string | undefined {
  if (limit && !(limit.max > 0)) return 'fire_limit.max: must be greater than 0'
  if (limit && !durationMs(limit.window)) return 'fire_limit.window: must be a duration greater than 0, such as 1h'
  if (retry?.strategy === 'none' && (retry.max_retries !== 0 || retry.base_delay !== '')) {
    return 'retry: strategy none requires max_retries 0 and base_delay ""'
  }
  if (retry?.strategy === 'backoff' && !(retry.max_retries > 0 && durationMs(retry.base_delay))) {
    return 'retry: strategy backoff requires max_retries and base_delay greater than 0'
  }
  return undefined
}

/** Checks the rules that the schema cannot express; `undefined` when all hold. */
export function jobProblem(spec: JobSpec, scope: RecordScope): JobProblem | undefined {
  const job = (text: string): JobProblem => ({ of: 'job', text })
  const wrong = limitsProblem(spec) ?? (spec.schedule ? scheduleProblem(spec.schedule) : undefined)
  if (wrong) return job(wrong)
  if (isLoop(spec)) return loopProblem(spec, scope, 'job')
  if (spec.loop_target) return job('loop_target: not allowed with target_kind agent')
  if (spec.task) return spec.retry?.strategy === 'backoff' ? job('retry: not allowed for a job with a task') : undefined
  if (!spec.agent_name) return job('agent_name: required')
  if (!spec.prompt?.trim()) return job('prompt: required')
  return undefined
}

/** Whether the target is a loop: by `target_kind`, or because `loop_target` is set and `target_kind` is not. */
export const isLoop = (spec: Definition) =>
  spec.target_kind === 'loop' || (!spec.target_kind && Boolean(spec.loop_target))

/** Validates a definition whose target is a loop. */
export function loopProblem(spec: Definition, scope: RecordScope, of: 'job' | 'trigger'): JobProblem | undefined {
  const loop = (text: string): JobProblem => ({ of: 'loop', text })
  const target = spec.loop_target
  if (!target?.loop_name.trim()) return loop('loop_target.loop_name: required')
  if (spec.agent_name || spec.prompt || spec.task) return loop('loop_target: agent_name, prompt and task must be empty')
  if (target.input_mapping && of === 'job') return loop('loop_target.input_mapping: only allowed for triggers')
  if (!target.workspace_id) return loop('loop_target.workspace_id: required')
  if (scope.kind === 'workspace' && target.workspace_id !== scope.id) {
    return loop(`loop_target.workspace_id: must be the workspace of the ${of}`)
  }
  return undefined
}

/** The id and scope in a spec must agree with those of its record. */
export function identityProblem(id: string, scope: RecordScope, spec: Definition): string | undefined {
  if (spec.id !== undefined && spec.id !== id)
    return `id: ${JSON.stringify(spec.id)} does not match the record id ${id}`
  if (spec.scope !== undefined && (spec.scope === 'workspace') !== (scope.kind === 'workspace')) {
    return `scope: ${spec.scope} does not match the record scope ${scope.kind}`
  }
  if (spec.workspace_id && spec.workspace_id !== scope.id)
    return 'workspace_id: does not match the workspace of the record'
  return undefined
}

/** The record kind of jobs. The record is the only definition of a job. */
export const JobKind = kind<JobSpec>({
  name: 'automation.job',
  spec: JobSpec,
  maxBytes: 256 * 1024,
  check: ({ id, scope, spec }) => identityProblem(id, scope, spec) ?? jobProblem(spec, scope)?.text,
})

/** The source of a definition. Those from `package` and `config` are read-only in the API, except for `enabled`. */
export function jobSource(record: StoredRecord): AutomationSource {
  if (record.owner.kind === 'bundle.activation' || record.source.kind === 'extension') return 'package'
  return record.source.kind === 'daemon' && record.source.id === 'config' ? 'config' : 'dynamic'
}

const PACKAGE: readonly PartyOf[] = [
  { of: 'owner', kind: 'bundle.activation' },
  { of: 'source', kind: 'extension' },
]
const CONFIG: PartyOf = { of: 'source', kind: 'daemon', id: 'config' }

/** {@link jobSource} as store filters. */
export const sourceFilters: Readonly<Record<AutomationSource, RecordFilter>> = {
  package: { anyOf: PACKAGE },
  config: { anyOf: [CONFIG], noneOf: PACKAGE },
  dynamic: { noneOf: [...PACKAGE, CONFIG] },
}

/** Decodes a record; undefined when it does not match the schema (it may have been stored before the codec existed). */
export function decodeAs<S>(schema: v.GenericSchema<unknown, S>, record: StoredRecord | undefined) {
  if (!record) return undefined
  const decoded = v.safeParse(schema, record.spec)
  return decoded.success ? { ...record, spec: decoded.output } : undefined
}

export const decodeJob = (record: StoredRecord | undefined): JobRecord | undefined => decodeAs(JobSpec, record)
