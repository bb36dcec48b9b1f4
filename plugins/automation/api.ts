import * as v from 'valibot'
import { defineErrors, event, type Fault, type Hook, token } from '../../kernel/plugin.js'

export { JobKind, type JobRecord, JobSpec } from './job-kind.js'
export { TriggerKind, TriggerSpec } from './trigger-kind.js'

export type RunStatus = 'scheduled' | 'running' | 'delegated' | 'completed' | 'failed' | 'canceled'

/** A run that is about to be dispatched. */
export interface Fire {
  readonly runId: string
  readonly jobId: string
  readonly jobName: string
  readonly agentName: string
  readonly attempt: number
  /** Epoch milliseconds of the occurrence; absent for one that was triggered by hand. */
  readonly scheduledAt?: number | undefined
}

export interface AutomationApi {
  /** Is the scheduler at work? */
  readonly running: boolean
  /** May a claimed run be dispatched; a refusal makes it `canceled`. */
  readonly preFire: Hook<(fire: Fire) => Promise<Fault | undefined>>
}

export const Automation = token<AutomationApi>('automation@1')

const run = v.object({
  id: v.string(),
  job_id: v.string(),
  status: v.string(),
  session_id: v.optional(v.string()),
  error: v.optional(v.string()),
})
export const RunCreated = event('automation.run.created', run)
export const RunStarted = event('automation.run.started', run)
export const RunEnded = event('automation.run.ended', run)

export const AutomationErrors = defineErrors({
  job_not_found: { status: 404, message: 'no such job', next: 'svc automation jobs list' },
  run_not_found: { status: 404, message: 'no such run', next: 'svc automation runs list' },
  job_invalid: { status: 400, message: 'the job is not valid', next: 'svc automation jobs create --help' },
  job_damaged: {
    status: 409,
    message: 'the stored definition of this job is not valid; write it anew or delete it',
    next: 'svc doctor',
  },
  loop_invalid: {
    status: 422,
    message: 'the loop target of the job is not valid',
    next: 'svc automation jobs create --help',
  },
  job_name_taken: { status: 409, message: 'another job has this name', next: 'svc automation jobs list' },
  job_read_only: {
    status: 409,
    message: 'this job is defined by the configuration or a package; only enabled may be changed here',
    next: 'svc automation jobs list',
  },
  lifecycle_command: {
    status: 400,
    message: 'the prompt looks like a command that stops or restarts the daemon, which a job must not do',
    next: 'svc automation jobs create --help',
  },
  concurrency_limit: {
    status: 409,
    message: 'automation.max_concurrent_jobs runs are going on; wait for one to end',
    next: 'svc automation runs list --status running',
  },
  fire_limit: {
    status: 409,
    message: 'the fire limit of this job is reached; wait or raise fire_limit',
    next: 'svc automation runs list',
  },
  workspace_required: {
    status: 422,
    message: 'there is no workspace to run in; register one: svc workspace add <dir>',
    next: 'svc workspace add',
  },
  automation_disabled: {
    status: 503,
    message: 'automation is switched off by automation.enabled, or is stopping',
    next: 'svc doctor --only scheduler',
  },
})
