import * as v from 'valibot'
import { defineErrors, event, token } from '../../kernel/plugin.js'

export type RunStatus = 'scheduled' | 'running' | 'delegated' | 'completed' | 'failed' | 'canceled'

export interface AutomationApi {
  readonly running: boolean
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
  job_invalid: { status: 400, message: 'the job is not valid' },
  job_name_taken: { status: 409, message: 'another job has this name' },
  job_read_only: {
    status: 409,
    message: 'this job is defined by the configuration or a package; only enabled may be changed here',
  },
  lifecycle_command: {
    status: 400,
    message: 'the prompt looks like a command that stops or restarts the daemon, which a job must not do',
  },
  concurrency_limit: { status: 409, message: 'automation.max_concurrent_jobs runs are going on; wait for one to end' },
  fire_limit: { status: 409, message: 'the fire limit of this job is reached; wait or raise fire_limit' },
  invalid_cursor: { status: 400, message: 'the cursor does not belong to this filter; start again without it' },
})
