import type { CliColumn, CliShorthand } from '../../../../kernel/kit/annotations/index.js'
import { cli, describe, tool } from '../../../../kernel/kit/annotations/index.js'
import { created, noContent, ok, routeOf } from '../../../../kernel/plugin.js'
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
import { runFields, runRows } from '../runs/routes.js'
import type { AutomationService } from '../service.js'

const route = routeOf<AutomationService>(describe('Automation'))

const jobFields: readonly CliColumn[] = [
  { header: 'ID', path: 'id' },
  { header: 'Name', path: 'name' },
  { header: 'Enabled', path: 'enabled' },
  { header: 'Agent', path: 'agent_name' },
  { header: 'Prompt', path: 'prompt' },
  { header: 'Scope', path: 'scope' },
  { header: 'Workspace', path: 'workspace_id' },
  { header: 'Source', path: 'source' },
  { header: 'Schedule', path: 'schedule_text' },
  { header: 'Mode', path: 'schedule.mode' },
  { header: 'Cron', path: 'schedule.expr' },
  { header: 'Time zone', path: 'schedule.timezone' },
  { header: 'Interval', path: 'schedule.interval' },
  { header: 'Time', path: 'schedule.time' },
  { header: 'Catch-up', path: 'scheduler.catch_up_policy' },
  { header: 'Next run', path: 'next_run', as: 'time' },
  { header: 'Last run', path: 'last_run.started_at', as: 'time' },
  { header: 'Run', path: 'last_run.id' },
  { header: 'Status', path: 'last_run.status' },
  { header: 'Error', path: 'last_run.error' },
  { header: 'Misfires', path: 'scheduler.misfire_count' },
]

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

const jobItem = { item: 'job', fields: jobFields, problems: 'warnings' } as const
const jobId = { name: 'id', summary: 'id or name of a job' } as const

export const jobRoutes = [
  route({
    method: 'GET',
    path: '/api/automation/jobs',
    summary: 'List jobs, newest first',
    query: ListJobsQuery,
    replies: { 200: ListJobsReply },
    with: [
      cli('automation jobs list', {
        view: {
          rows: 'jobs',
          columns: [
            { header: 'ID', path: 'id' },
            { header: 'NAME', path: 'name' },
            { header: 'ENABLED', path: 'enabled' },
            { header: 'AGENT', path: 'agent_name' },
            { header: 'NEXT RUN', path: 'next_run', as: 'ago' },
            { header: 'LAST RUN', path: 'last_run.started_at', as: 'ago' },
            { header: 'STATUS', path: 'last_run.status' },
            { header: 'SCHEDULE', path: 'schedule_text', below: true },
            { header: 'ERROR', path: 'last_run.error', below: true },
          ],
          empty: 'No jobs. Create one: svc automation jobs create --help',
        },
      }),
      tool('automation_jobs_list', ['automation']),
    ],
    handle: async (self, { actor, query }) => ok(await self.listJobs(actor, query)),
  }),
  route({
    method: 'POST',
    path: '/api/automation/jobs',
    summary: 'Create a job',
    body: CreateJobBody,
    replies: { 201: JobReply },
    with: [
      undo({ by: 'delete', of: 'job.id' }),
      cli('automation jobs create', {
        args: [{ name: 'name', option: true, summary: 'name of the job, unique in its scope' }],
        options: { agent_name: 'agent', workspace_id: 'workspace' },
        scoped: { scope: 'scope', workspace: 'workspace_id', opens: true },
        view: jobItem,
        shorthands: schedules,
      }),
      tool('automation_jobs_create', ['automation']),
    ],
    handle: async (self, { actor, body }) => {
      const job = await self.jobs.create(actor, body)
      return created({ job: await self.jobs.described(job), ...self.jobs.warnings(job) })
    },
  }),
  route({
    method: 'GET',
    path: '/api/automation/jobs/{id}',
    summary: 'Show a job',
    replies: { 200: JobReply },
    with: [cli('automation jobs get', { args: [jobId], view: jobItem }), tool('automation_jobs_info', ['automation'])],
    handle: async (self, { actor, params }) =>
      ok({ job: await self.jobs.described(self.jobs.toWire(self.jobs.find(params.id, actor))) }),
  }),
  route({
    method: 'PATCH',
    path: '/api/automation/jobs/{id}',
    summary: 'Update a job; fields that are omitted or null keep their value',
    body: PatchJobBody,
    replies: { 200: JobReply },
    with: [
      undo({ by: 'patch', of: 'job' }),
      cli('automation jobs update', {
        args: [jobId],
        options: { agent_name: 'agent' },
        view: jobItem,
        shorthands: schedules,
      }),
      tool('automation_jobs_update', ['automation']),
    ],
    handle: async (self, { actor, params, body }) => {
      const job = await self.jobs.patch(actor, params.id, body)
      return ok({ job: await self.jobs.described(job), ...self.jobs.warnings(job) })
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/automation/jobs/{id}',
    summary: 'Delete a job; its run history is kept',
    essential: true,
    replies: { 204: null },
    with: [
      undo({ by: 'create', of: 'job' }),
      cli('automation jobs delete', { args: [jobId], done: 'deleted job {id}' }),
      tool('automation_jobs_delete', ['automation']),
    ],
    handle: async (self, { actor, params }) => {
      await self.jobs.remove(actor, params.id)
      return noContent()
    },
  }),
  route({
    method: 'GET',
    path: '/api/automation/jobs/{id}/runs',
    summary: 'List the runs of a job, newest first',
    query: ListJobRunsQuery,
    replies: { 200: ListRunsReply },
    with: [
      cli('automation jobs history', { args: [jobId], view: runRows }),
      tool('automation_jobs_history', ['automation']),
    ],
    handle: async (self, { actor, params, query }) => ok({ runs: await self.runs.ofJob(actor, params.id, query) }),
  }),
  route({
    method: 'POST',
    path: '/api/automation/jobs/{id}/trigger',
    summary: 'Run a job now, even if it is disabled',
    replies: { 200: RunReply },
    with: [
      undo({ by: 'never', why: 'the run has begun; cancel it: svc automation runs' }),
      cli('automation jobs trigger', { args: [jobId], view: { item: 'run', fields: runFields } }),
      tool('automation_jobs_trigger', ['automation']),
    ],
    handle: async (self, { actor, params, id }) => ok({ run: await self.trigger(actor, params.id, id) }),
  }),
]
