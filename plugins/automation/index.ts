import {
  type CliColumn,
  type CliShorthand,
  created,
  definePlugin,
  noContent,
  ok,
  routeOf,
  surfaceOf,
} from '../../kernel/plugin.js'
import {
  CreateJobBody,
  JobReply,
  ListJobRunsQuery,
  ListJobsQuery,
  ListJobsReply,
  ListRunsQuery,
  ListRunsReply,
  PatchJobBody,
  RunReply,
} from '../../schemas/automation.js'
import { Checks, Daemon, StatusMembers } from '../daemon/api.js'
import { Events } from '../events/api.js'
import { Reconcile } from '../reconcile/api.js'
import { Sessions } from '../sessions/api.js'
import { Workspaces } from '../workspaces/api.js'
import { Automation, AutomationErrors, JobKind, RunCreated, RunEnded, RunStarted, TriggerKind } from './api.js'
import { bootColumns, countIndexes, cursorTables } from './cursors.js'
import { deliveryColumns, runTable } from './runs.js'
import type { AutomationService } from './service.js'
import { AutomationSettings } from './settings.js'

const route = routeOf<AutomationService>()
const { contribute, reconciler } = surfaceOf<AutomationService>()
const area = 'Automation'

const jobFields: readonly CliColumn[] = [
  { header: 'Id', path: 'id' },
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
    summary: '1h, 90s, 1h30m',
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

const runColumns: readonly CliColumn[] = [
  { header: 'ID', path: 'id' },
  { header: 'STATUS', path: 'status' },
  { header: 'JOB', path: 'job_id' },
  { header: 'STARTED', path: 'started_at', as: 'ago' },
  { header: 'ENDED', path: 'ended_at', as: 'ago' },
  { header: 'SESSION', path: 'session_id', below: true },
  { header: 'ERROR', path: 'error' },
]

const runFields: readonly CliColumn[] = [
  { header: 'Run', path: 'id' },
  { header: 'Status', path: 'status' },
  { header: 'Job', path: 'job_id' },
  { header: 'Session', path: 'session_id' },
  { header: 'Attempt', path: 'attempt' },
  { header: 'Scheduled for', path: 'scheduled_at', as: 'time' },
  { header: 'Started', path: 'started_at', as: 'time' },
  { header: 'Ended', path: 'ended_at', as: 'time' },
  { header: 'Error', path: 'error' },
]

const jobItem = { item: 'job', fields: jobFields } as const
const runRows = {
  rows: 'runs',
  columns: runColumns,
  empty: 'no runs; start one: svc automation jobs trigger <id>',
} as const

export default definePlugin({
  name: 'automation',
  version: '0.1.0',
  requires: { daemon: Daemon, events: Events, reconcile: Reconcile, sessions: Sessions, workspaces: Workspaces },
  provides: Automation,
  service: () => import('./service.js').then(m => m.AutomationService),
}).surface({
  kinds: [JobKind, TriggerKind],
  events: [RunCreated, RunStarted, RunEnded],
  errors: [AutomationErrors],
  settings: Object.values(AutomationSettings),
  tables: [
    { id: '001-cursor', sql: cursorTables },
    { id: '002-run', sql: runTable },
    { id: '003-delivery', sql: deliveryColumns },
    { id: '004-boot', sql: bootColumns },
    { id: '005-counts', sql: countIndexes },
  ],
  reconcilers: [
    reconciler({ kind: JobKind, projected: self => self.projected(), run: (self, batch) => self.reconcile(batch) }),
  ],
  services: [{ name: 'scheduler', run: (self, signal) => self.schedule(signal) }],
  quiesce: [{ phase: 'automation', run: self => self.quiesce() }],
  routes: [
    route({
      method: 'GET',
      path: '/api/automation/jobs',
      area,
      summary: 'Jobs, the newest first, filtered and in pages',
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
      summary: 'Makes a job',
      body: CreateJobBody,
      replies: { 201: JobReply },
      errors: [400, 409, 422, 500, 503],
      cli: { path: 'automation jobs create', view: jobItem, shorthands: schedules },
      handle: async (self, { actor, body }) => created({ job: await self.jobs.create(actor, body) }),
    }),
    route({
      method: 'GET',
      path: '/api/automation/jobs/{id}',
      area,
      summary: 'One job',
      replies: { 200: JobReply },
      errors: [404, 500, 503],
      cli: { path: 'automation jobs get', view: jobItem },
      handle: (self, { params }) => ok({ job: self.jobs.toWire(self.jobs.find(params.id)) }),
    }),
    route({
      method: 'PATCH',
      path: '/api/automation/jobs/{id}',
      area,
      summary: 'Changes a job; members that are absent or null stay',
      body: PatchJobBody,
      replies: { 200: JobReply },
      errors: [400, 404, 409, 422, 500, 503],
      cli: { path: 'automation jobs update', view: jobItem, shorthands: schedules },
      handle: async (self, { actor, params, body }) => ok({ job: await self.jobs.patch(actor, params.id, body) }),
    }),
    route({
      method: 'DELETE',
      path: '/api/automation/jobs/{id}',
      area,
      summary: 'Deletes a job; its history stays',
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
      summary: 'Runs of a job, newest first',
      query: ListJobRunsQuery,
      replies: { 200: ListRunsReply },
      errors: [400, 404, 500, 503],
      cli: { path: 'automation jobs history', view: runRows },
      handle: (self, { params, query }) => ok({ runs: self.history(params.id, query) }),
    }),
    route({
      method: 'POST',
      path: '/api/automation/jobs/{id}/trigger',
      area,
      summary: 'Runs a job now, also one that is switched off',
      replies: { 200: RunReply },
      errors: [404, 409, 500, 503],
      cli: { path: 'automation jobs trigger', view: { item: 'run', fields: runFields } },
      handle: async (self, { actor, params, id }) => ok({ run: await self.trigger(actor, params.id, id) }),
    }),
    route({
      method: 'GET',
      path: '/api/automation/runs',
      area,
      summary: 'Runs of all jobs, newest first',
      query: ListRunsQuery,
      replies: { 200: ListRunsReply },
      errors: [400, 500, 503],
      cli: { path: 'automation runs list', view: runRows },
      handle: (self, { query }) => ok({ runs: self.listRuns(query) }),
    }),
    route({
      method: 'GET',
      path: '/api/automation/runs/{id}',
      area,
      summary: 'One run',
      replies: { 200: RunReply },
      errors: [404, 500, 503],
      cli: { path: 'automation runs get', view: { item: 'run', fields: runFields } },
      handle: (self, { params }) => ok({ run: self.run(params.id) }),
    }),
  ],
  registries: [
    contribute(StatusMembers, self => [{ path: 'automation', read: () => self.status() }]),
    contribute(Checks, self => [{ id: 'scheduler', category: 'automation', run: async () => self.check() }]),
  ],
  hooks: {
    write: {
      [JobKind.name]: (self, _, change) => self.jobs.guard(change),
      [TriggerKind.name]: (self, _, change) => self.jobs.guard(change),
    },
  },
})
