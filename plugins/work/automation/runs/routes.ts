import { cli, describe, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { ok, type Route, routeOf } from '../../../../kernel/plugin.js'
import { ListRunsQuery, ListRunsReply, RunReply } from '../../../../schemas/automation.js'
import { ArchiveErrors } from '../../../desk/archives/api.js'
import { AutomationErrors } from '../api.js'
import type { AutomationService } from '../service.js'

const route = routeOf<AutomationService>(describe('Automation'))

/** The table view of a list of runs. */
export const runRows = show(
  ListRunsReply,
  'runs',
  [
    'id',
    'status',
    { of: 'job_id', header: 'Job' },
    { of: 'trigger_id', header: 'Trigger' },
    'started_at~ago',
    'ended_at~ago',
    { of: 'session_id', header: 'Session', below: true },
    { of: 'error', below: true },
  ],
  { empty: 'No runs. Start one: svc automation jobs trigger <id>' },
)

export const runView = show(RunReply, 'run', [
  { of: 'id', header: 'Run' },
  'status',
  { of: 'job_id', header: 'Job' },
  { of: 'trigger_id', header: 'Trigger' },
  { of: 'session_id', header: 'Session' },
  'attempt',
  { of: 'scheduled_at~time', header: 'Scheduled for' },
  'started_at~time',
  'ended_at~time',
  'error',
])

export const runRoutes: readonly Route<AutomationService>[] = [
  route({
    method: 'GET',
    path: '/api/automation/runs',
    summary: 'List the runs of all jobs and triggers, newest first',
    query: ListRunsQuery,
    replies: { 200: ListRunsReply },
    with: [cli('automation runs list', { view: runRows }), tool('automation_runs_list', ['automation'])],
    handle: async (service, { actor, query }) => ok({ runs: await service.runs.list(actor, query) }),
  }),
  route({
    method: 'GET',
    path: '/api/automation/runs/{id}',
    summary: 'Show a run',
    replies: { 200: RunReply },
    with: [
      cli('automation runs get', { args: [{ name: 'id', summary: 'id of a run' }], view: runView }),
      tool('automation_runs_info', ['automation']),
      throws(
        AutomationErrors.run_not_found,
        AutomationErrors.run_archive_off,
        ArchiveErrors.archive_missing,
        ArchiveErrors.archive_damaged,
      ),
    ],
    handle: async (service, { actor, params }) => ok({ run: await service.runs.get(actor, params.id) }),
  }),
]
