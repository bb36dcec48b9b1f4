import type { CliColumn } from '../../../../kernel/kit/annotations/index.js'
import { cli, describe, tool } from '../../../../kernel/kit/annotations/index.js'
import { ok, routeOf } from '../../../../kernel/plugin.js'
import { ListRunsQuery, ListRunsReply, RunReply } from '../../../../schemas/automation.js'
import type { AutomationService } from '../service.js'

const route = routeOf<AutomationService>(describe('Automation'))

const runColumns: readonly CliColumn[] = [
  { header: 'ID', path: 'id' },
  { header: 'STATUS', path: 'status' },
  { header: 'JOB', path: 'job_id' },
  { header: 'TRIGGER', path: 'trigger_id' },
  { header: 'STARTED', path: 'started_at', as: 'ago' },
  { header: 'ENDED', path: 'ended_at', as: 'ago' },
  { header: 'SESSION', path: 'session_id', below: true },
  { header: 'ERROR', path: 'error', below: true },
]

export const runFields: readonly CliColumn[] = [
  { header: 'Run', path: 'id' },
  { header: 'Status', path: 'status' },
  { header: 'Job', path: 'job_id' },
  { header: 'Trigger', path: 'trigger_id' },
  { header: 'Session', path: 'session_id' },
  { header: 'Attempt', path: 'attempt' },
  { header: 'Scheduled for', path: 'scheduled_at', as: 'time' },
  { header: 'Started', path: 'started_at', as: 'time' },
  { header: 'Ended', path: 'ended_at', as: 'time' },
  { header: 'Error', path: 'error' },
]

/** The table view of a list of runs. */
export const runRows = {
  rows: 'runs',
  columns: runColumns,
  empty: 'No runs. Start one: svc automation jobs trigger <id>',
} as const

export const runRoutes = [
  route({
    method: 'GET',
    path: '/api/automation/runs',
    summary: 'List the runs of all jobs and triggers, newest first',
    query: ListRunsQuery,
    replies: { 200: ListRunsReply },
    with: [cli('automation runs list', { view: runRows }), tool('automation_runs_list', ['automation'])],
    handle: async (self, { actor, query }) => ok({ runs: await self.runs.list(actor, query) }),
  }),
  route({
    method: 'GET',
    path: '/api/automation/runs/{id}',
    summary: 'Show a run',
    replies: { 200: RunReply },
    with: [
      cli('automation runs get', {
        args: [{ name: 'id', summary: 'id of a run' }],
        view: { item: 'run', fields: runFields },
      }),
      tool('automation_runs_info', ['automation']),
    ],
    handle: async (self, { actor, params }) => ok({ run: await self.runs.get(actor, params.id) }),
  }),
]
