import { type CliColumn, type CliShorthand, created, noContent, ok, routeOf } from '../../../kernel/plugin.js'
import {
  CreateJobBody,
  JobReply,
  ListJobRunsQuery,
  ListJobsQuery,
  ListJobsReply,
  ListRunsReply,
  PatchJobBody,
  RunReply,
} from '../../../schemas/automation.js'
import { runFields, runRows } from '../runs/routes.js'
import type { AutomationService } from '../service.js'

const route = routeOf<AutomationService>()
const area = 'Automation'

const jobFields: readonly CliColumn[] = [
  { header: 'ID', path: 'id' },
  { header: 'Name', path: 'name' },
  { header: 'Enabled', path: 'enabled' },
  { header: 'Agent', path: 'agent_name' },
  { header: 'Prompt', path: 'prompt' },
  { header: 'Scope', path: 'scope' },
  { header: 'Workspace', path: 'workspace_id' },
  { header: 'Source', path: 'source' },
  { header: 'Mode', path: 'schedule.mode' },
  { header: 'Cron', path: 'schedule.expr' },
  { header: 'Interval', path: 'schedule.interval' },
  { header: 'Time', path: 'schedule.time' },
  { header: 'If missed', path: 'scheduler.catch_up_policy' },
  { header: 'Next run', path: 'next_run', as: 'time' },
  { header: 'Last run', path: 'last_run.started_at', as: 'time' },
  { header: 'Run', path: 'last_run.id' },
  { header: 'Status', path: 'last_run.status' },
  { header: 'Reason', path: 'last_run.error' },
  { header: 'Missed', path: 'scheduler.misfire_count' },
]

/** Beside `--schedule` with JSON. */
const schedules: readonly CliShorthand[] = [
  {
    option: 'every',
    member: 'schedule',
    value: { mode: 'every', interval: '$' },
    type: 'text',
    summary: '90s, 1h30m, 1d',
  },
  {
    option: 'cron',
    member: 'schedule',
    value: { mode: 'cron', expr: '$' },
    type: 'text',
    summary: "five fields: '0 9 * * 1-5'",
  },
  {
    option: 'at',
    member: 'schedule',
    value: { mode: 'at', time: '$' },
    type: 'time',
    summary: 'once: 2030-01-31T09:00',
  },
]

const jobItem = { item: 'job', fields: jobFields } as const

export const jobRoutes = [
  route({
    method: 'GET',
    path: '/api/automation/jobs',
    area,
    summary: 'List jobs, the newest first, filtered and in pages',
    query: ListJobsQuery,
    replies: { 200: ListJobsReply },
    errors: [400, 500, 503],
    cli: {
      path: 'automation jobs list',
      view: {
        rows: 'jobs',
        columns: [
          { header: 'ID', path: 'id' },
          { header: 'NAME', path: 'name' },
          { header: 'ENABLED', path: 'enabled' },
          { header: 'AGENT', path: 'agent_name' },
          { header: 'NEXT', path: 'next_run', as: 'ago' },
          { header: 'LAST', path: 'last_run.started_at', as: 'ago' },
          { header: 'STATUS', path: 'last_run.status' },
          { header: 'REASON', path: 'last_run.error' },
        ],
        empty: 'no jobs; make one: svc automation jobs create --help',
      },
    },
    handle: async (self, { actor, query }) => ok(await self.listJobs(actor, query)),
  }),
  route({
    method: 'POST',
    path: '/api/automation/jobs',
    area,
    summary: 'Create a job',
    body: CreateJobBody,
    replies: { 201: JobReply },
    errors: [400, 409, 422, 500, 503],
    cli: {
      path: 'automation jobs create',
      args: [{ name: 'name', option: true }],
      options: { agent_name: 'agent', workspace_id: 'workspace' },
      scoped: { scope: 'scope', workspace: 'workspace_id' },
      view: jobItem,
      shorthands: schedules,
    },
    handle: async (self, { actor, body }) => created({ job: await self.jobs.create(actor, body) }),
  }),
  route({
    method: 'GET',
    path: '/api/automation/jobs/{id}',
    area,
    summary: 'Show a job',
    replies: { 200: JobReply },
    errors: [404, 500, 503],
    cli: { path: 'automation jobs get', view: jobItem },
    handle: (self, { actor, params }) => ok({ job: self.jobs.toWire(self.jobs.find(params.id, actor)) }),
  }),
  route({
    method: 'PATCH',
    path: '/api/automation/jobs/{id}',
    area,
    summary: 'Update a job; members that are absent or null stay',
    body: PatchJobBody,
    replies: { 200: JobReply },
    errors: [400, 404, 409, 422, 500, 503],
    cli: { path: 'automation jobs update', options: { agent_name: 'agent' }, view: jobItem, shorthands: schedules },
    handle: async (self, { actor, params, body }) => ok({ job: await self.jobs.patch(actor, params.id, body) }),
  }),
  route({
    method: 'DELETE',
    path: '/api/automation/jobs/{id}',
    area,
    summary: 'Delete a job; its history stays',
    essential: true,
    replies: { 204: null },
    errors: [400, 404, 409, 500, 503],
    cli: { path: 'automation jobs delete', done: 'deleted job {id}' },
    handle: async (self, { actor, params }) => {
      await self.jobs.remove(actor, params.id)
      return noContent()
    },
  }),
  route({
    method: 'GET',
    path: '/api/automation/jobs/{id}/runs',
    area,
    summary: 'List runs of a job, the newest first',
    query: ListJobRunsQuery,
    replies: { 200: ListRunsReply },
    errors: [400, 404, 500, 503],
    cli: { path: 'automation jobs history', view: runRows },
    handle: (self, { actor, params, query }) => ok({ runs: self.runs.ofJob(actor, params.id, query) }),
  }),
  route({
    method: 'POST',
    path: '/api/automation/jobs/{id}/trigger',
    area,
    summary: 'Run a job now, also one that is disabled',
    replies: { 200: RunReply },
    errors: [404, 409, 500, 503],
    cli: { path: 'automation jobs trigger', view: { item: 'run', fields: runFields } },
    handle: async (self, { actor, params, id }) => ok({ run: await self.trigger(actor, params.id, id) }),
  }),
]
