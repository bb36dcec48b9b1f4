import { type CliShorthand, cli, describe, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../../kernel/kit/collection.js'
import { ok, type Route, routeOf } from '../../../../kernel/plugin.js'
import {
  CreateJobBody,
  JobReply,
  ListJobRunsQuery,
  ListJobsQuery,
  ListJobsReply,
  ListRunsReply,
  PatchJobBody,
  RunReply,
} from '../../../../schemas/automation.js'
import { undo } from '../../../desk/changes/api.js'
import { DaemonErrors } from '../../../desk/daemon/api.js'
import { AutomationErrors } from '../api.js'
import { runRows, runView } from '../runs/routes.js'
import type { AutomationService } from '../service.js'

const about = describe('Automation')
const route = routeOf<AutomationService>(about)
const { job_not_found: missing, job_damaged, job_invalid, job_name_taken, job_read_only } = AutomationErrors
/** Errors of a job that is refused. */
export const jobRefusals = [
  job_invalid,
  job_name_taken,
  AutomationErrors.loop_invalid,
  AutomationErrors.lifecycle_command,
]
const argument = { summary: 'id or name of a job' }

/** Short forms of `--schedule <json>`. */
const schedules: readonly CliShorthand[] = [
  {
    option: 'every',
    member: 'schedule',
    value: { mode: 'every', interval: '$' },
    type: 'text',
    summary: 'run at this interval: 90s, 1h30m or 1d',
  },
  {
    option: 'cron',
    member: 'schedule',
    value: { mode: 'cron', expr: '$', timezone: '$zone' },
    type: 'text',
    summary: "run on this cron expression: '0 9 * * 1-5', or @daily",
  },
  {
    option: 'at',
    member: 'schedule',
    value: { mode: 'at', time: '$' },
    type: 'time',
    summary: 'run once at this time: 2030-01-31T09:00',
  },
]

const jobs = collectionOf<AutomationService>(about)({
  path: '/api/automation/jobs',
  key: 'id',
  noun: 'automation jobs',
  one: [JobReply, 'job'],
  many: [ListJobsReply, 'jobs'],
  show: [
    'id',
    'name',
    'enabled',
    { of: 'agent_name', header: 'Agent' },
    'next_run~ago',
    { of: 'last_run.started_at~ago', header: 'Last run' },
    'last_run.status',
    { of: 'schedule_text', header: 'Schedule', below: true },
    { of: 'last_run.error', below: true },
  ],
  fields: [
    'id',
    'name',
    'enabled',
    { of: 'agent_name', header: 'Agent' },
    'prompt',
    'scope',
    { of: 'workspace_id', header: 'Workspace' },
    'source',
    { of: 'schedule_text', header: 'Schedule' },
    'schedule.mode',
    { of: 'schedule.expr', header: 'Cron' },
    { of: 'schedule.timezone', header: 'Time zone' },
    'schedule.interval',
    'schedule.time',
    { of: 'scheduler.catch_up_policy', header: 'Catch-up' },
    'next_run~time',
    { of: 'last_run.started_at~time', header: 'Last run' },
    { of: 'last_run.id', header: 'Run' },
    'last_run.status',
    'last_run.error',
    { of: 'scheduler.misfire_count', header: 'Misfires' },
  ],
  argument,
  missing,
})
const view = { ...jobs.view, problems: 'warnings' }

export const jobRoutes: readonly Route<AutomationService>[] = [
  jobs.list({
    summary: 'List jobs, newest first',
    query: ListJobsQuery,
    with: [tool('automation_jobs_list', ['automation'])],
    empty: 'No jobs. Create one: svc automation jobs create --help',
    handle: (service, { actor, query }) => service.listJobs(actor, query),
  }),
  jobs.create({
    summary: 'Create a job',
    body: CreateJobBody,
    with: [undo({ by: 'delete', of: 'job.id' }), tool('automation_jobs_create', ['automation'])],
    throws: jobRefusals,
    cli: {
      args: [{ name: 'name', option: true, summary: 'name of the job, unique in its scope' }],
      options: { agent_name: 'agent', workspace_id: 'workspace' },
      scoped: { scope: 'scope', workspace: 'workspace_id', opens: true },
      view,
      shorthands: schedules,
    },
    handle: async (service, { actor, body }) => {
      const job = await service.jobs.create(actor, body)
      return { job: await service.jobs.described(job), ...service.jobs.warnings(job) }
    },
  }),
  jobs.get({
    summary: 'Show a job',
    command: 'automation jobs get',
    with: [tool('automation_jobs_info', ['automation'])],
    throws: [job_damaged],
    cli: { view },
    handle: async (service, { actor, params }) => ({
      job: await service.jobs.described(service.jobs.toWire(service.jobs.find(params.id, actor))),
    }),
  }),
  jobs.update({
    summary: 'Update a job; fields that are omitted or null keep their value',
    body: PatchJobBody,
    with: [undo({ by: 'patch', of: 'job' }), tool('automation_jobs_update', ['automation'])],
    throws: [...jobRefusals, job_damaged, job_read_only],
    cli: { options: { agent_name: 'agent' }, view, shorthands: schedules },
    handle: async (service, { actor, params, body }) => {
      const job = await service.jobs.patch(actor, params.id, body)
      return { job: await service.jobs.described(job), ...service.jobs.warnings(job) }
    },
  }),
  jobs.delete({
    summary: 'Delete a job; its run history is kept',
    essential: true,
    with: [undo({ by: 'create', of: 'job' }), tool('automation_jobs_delete', ['automation'])],
    throws: [job_read_only],
    done: 'deleted job {id}',
    handle: (service, { actor, params }) => service.jobs.remove(actor, params.id),
  }),
  route({
    method: 'GET',
    path: '/api/automation/jobs/{id}/runs',
    summary: 'List the runs of a job, newest first',
    query: ListJobRunsQuery,
    replies: { 200: ListRunsReply },
    with: [
      cli('automation jobs history', { args: [{ name: 'id', ...argument }], view: runRows }),
      tool('automation_jobs_history', ['automation']),
      throws(missing),
    ],
    handle: async (service, { actor, params, query }) =>
      ok({ runs: await service.runs.ofJob(actor, params.id, query) }),
  }),
  jobs.action('trigger', {
    summary: 'Run a job now, even if it is disabled',
    with: [
      undo({ by: 'never', why: 'the run has started; cancel it: svc automation runs' }),
      tool('automation_jobs_trigger', ['automation']),
    ],
    throws: [
      job_damaged,
      AutomationErrors.automation_disabled,
      AutomationErrors.concurrency_limit,
      AutomationErrors.fire_limit,
      DaemonErrors.draining,
      DaemonErrors.home_held,
    ],
    cli: { view: runView },
    reply: RunReply,
    handle: async (service, { actor, params, id }) => ({ run: await service.trigger(actor, params.id, id) }),
  }),
]
