import { cli, columnsOf, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { ok, streamed } from '../../../../kernel/plugin.js'
import {
  type Dashboard,
  DashboardQuery,
  DashboardReply,
  type DashboardRun,
  InboxQuery,
  InboxReply,
  InspectReply,
  RunDetailReply,
  TaskFrame,
  TaskStreamFrame,
  TimelineQuery,
  TimelineReply,
  type TreeNode,
  TreeReply,
  TriageReply,
} from '../../../../schemas/tasks.js'
import { AGENT_SESSION } from '../../../access/identity/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { changingTask, readingRun, readingTask, route } from '../routing.js'
import { WORKING } from '../tools/toolsets.js'
import { whoOf } from '../who.js'
import { RUN_ARG, runFields, TASK_ARG } from './columns.js'

const inspection = show(InspectReply, 'inspect', [
  { of: 'task.id', header: 'Task' },
  'task.title',
  'task.status',
  { of: 'current_run.run_id', header: 'Run' },
  { of: 'current_run.status', header: 'Run status' },
  { of: 'why', header: 'Reason' },
  { of: 'current_run.heartbeat_at~ago', header: 'Last heartbeat' },
  { of: 'bound_session.session_id', header: 'Session' },
  { of: 'bound_session.state', header: 'Session state' },
  { of: 'next_action', header: 'Next step', words: { none: '-' } },
])
const dashboardFields = columnsOf<Dashboard>()
/** The state of all work, with the open runs below. */
const board = {
  item: 'dashboard',
  fields: [
    ...dashboardFields([
      { of: 'health.status', header: 'Health' },
      'health.stuck_runs',
      { of: 'health.active_orphan_runs', header: 'Orphaned runs' },
      { of: 'totals.needs_attention_runs', header: 'Runs needing attention' },
      'totals.ready_tasks',
      'totals.queued_runs',
    ]),
    // The only member that is absent where no run is queued.
    { header: 'Oldest queued', path: 'queue.depth.0.oldest_queued_at', as: 'ago' },
    ...dashboardFields([
      'totals.claimed_runs',
      'totals.running_runs',
      'totals.blocked_tasks',
      'totals.failed_tasks',
      'totals.completed_tasks',
    ]),
  ],
  table: {
    path: 'active_runs.items',
    empty: 'no open runs; start one: svc task start <id>; ready tasks: svc task list',
    columns: columnsOf<DashboardRun>()([
      { of: 'run_id', header: 'Run' },
      { of: 'run_status', header: 'Status' },
      // The status column already shows `needs_attention`.
      { of: 'health_status', header: 'Health', words: { ok: '-', needs_attention: '-' } },
      { of: 'age_ms~duration', header: 'Age' },
      { of: 'task_title', header: 'Task' },
      { of: 'agent_name', header: 'Agent' },
      { of: 'part', below: true },
      { of: 'session_id', header: 'Session', below: true },
      { of: 'why', header: 'Reason', below: true },
      { of: 'next_action', header: 'Next step', below: true },
    ]),
  },
} as const
const runDetail = {
  item: 'run',
  fields: [
    ...runFields.map(field => ({ ...field, path: `run.${field.path}` })),
    ...columnsOf<RunDetailReply['run']>()([
      { of: 'session.agent_name', header: 'Agent' },
      { of: 'session.state', header: 'Session state' },
      { of: 'worker.session_id', header: 'Worker session' },
      { of: 'worker.error', header: 'Worker error' },
      'worktree.folder',
      'worktree.branch',
      'worktree.commit',
      'summary.last_activity_at~ago',
    ]),
  ],
} as const
const MARKS = {
  read: { mark: 'read', summary: 'Mark a task in the inbox as read' },
  dismiss: { mark: 'dismissed', summary: 'Dismiss a task from the inbox until its next event' },
  archive: { mark: 'archived', summary: 'Archive a task in the inbox' },
} as const

export const viewRoutes = [
  readingTask({
    method: 'GET',
    path: '/api/tasks/{id}/timeline',
    summary: 'List the events of a task, oldest first',
    query: TimelineQuery,
    invalid: 422,
    origins: [AGENT_SESSION],
    replies: { 200: TimelineReply },
    with: [
      cli('task timeline', {
        args: [TASK_ARG],
        view: show(TimelineReply, 'timeline', [
          { of: 'timestamp~ago', header: 'Time' },
          { of: 'event_type', header: 'Event' },
          { of: 'actor.ref', header: 'Actor' },
          { of: 'run.id', header: 'Run', below: true },
          { of: 'note', header: 'Detail', below: true },
        ]),
      }),
      tool('task_timeline', ['tasks']),
    ],
    handle: (service, { actor, params, query }) =>
      service.reading(actor, params.id, ({ history }) =>
        ok({ timeline: history.timeline(params.id, query.after_sequence, query.limit) }),
      ),
  }),
  readingTask({
    method: 'GET',
    path: '/api/tasks/{id}/stream',
    summary: 'Stream the events of a task',
    query: TimelineQuery,
    invalid: 422,
    headers: { 'Last-Event-ID': { required: false } },
    contentType: 'text/event-stream',
    replies: { 200: TaskFrame },
    frames: TaskStreamFrame,
    handle: async (service, { actor, params, query, headers, signal }) => {
      const resumed = Number(headers['last-event-id'] ?? Number.NaN)
      const after = Number.isSafeInteger(resumed) ? resumed : (query.after_sequence ?? 0)
      await service.reading(actor, params.id, ({ history }) => history.timeline(params.id, after, 1))
      return streamed(service.stream(actor, params.id, after, signal))
    },
  }),
  readingTask({
    method: 'GET',
    path: '/api/tasks/{id}/tree',
    summary: 'List a task and its descendants',
    replies: { 200: TreeReply },
    with: [
      cli('task tree', {
        args: [TASK_ARG],
        view: {
          rows: 'tree.root tree.descendants',
          columns: columnsOf<TreeNode>()([
            { of: 'depth', header: 'Level' },
            'task.id',
            'task.status',
            'task.title',
            { of: 'active_run.status', header: 'Run' },
          ]),
        },
      }),
    ],
    handle: (service, { actor, params }) =>
      service.reading(actor, params.id, ({ history }) => ok({ tree: history.tree(params.id) })),
  }),
  route({
    method: 'GET',
    path: '/api/observe/tasks/dashboard',
    summary: 'Show active, queued and stuck runs, with the reason and the next step',
    query: DashboardQuery,
    invalid: 422,
    replies: { 200: DashboardReply },
    with: [
      cli('task board', { view: board }),
      tool('task_board', ['tasks'], { visibility: 'operator' }),
      throws(...REFERENCE_ERRORS),
    ],
    handle: async (service, { query }) => ok({ dashboard: await service.dashboard(query) }),
  }),
  route({
    method: 'GET',
    path: '/api/observe/tasks/inbox',
    with: [tool('task_inbox', ['tasks'], { visibility: 'operator' }), throws(...REFERENCE_ERRORS)],
    summary: 'List the tasks that need action from the caller, grouped by reason',
    query: InboxQuery,
    replies: { 200: InboxReply },
    handle: async (service, { actor, query }) => ok({ inbox: await service.listInbox(actor, query) }),
  }),
  ...(['read', 'dismiss', 'archive'] as const).map(verb =>
    changingTask({
      method: 'POST',
      path: `/api/tasks/{id}/triage/${verb}`,
      audited: false,
      summary: MARKS[verb].summary,
      replies: { 200: TriageReply },
      with: [
        cli(`task triage ${verb}`, {
          args: [TASK_ARG],
          view: show(TriageReply, 'triage', ['task_id']),
        }),
      ],
      handle: async (service, { actor, params }) =>
        ok({ triage: await service.inbox.triage(whoOf(actor), params.id, MARKS[verb].mark) }),
    }),
  ),
  readingRun({
    method: 'GET',
    path: '/api/task-runs/{id}',
    summary: 'Show a run with its session, worktree and result',
    origins: [AGENT_SESSION],
    replies: { 200: RunDetailReply },
    with: [cli('task run show', { args: [RUN_ARG], view: runDetail }), tool('task_run_info', WORKING)],
    handle: (service, { actor, params }) =>
      service.readingRun(actor, params.id, ({ inspection: views }) => ok({ run: views.run(params.id) })),
  }),
  readingTask({
    method: 'GET',
    path: '/api/tasks/{id}/inspect',
    summary: 'Show why a task is not progressing and what to do next',
    replies: { 200: InspectReply },
    with: [cli('task inspect', { args: [TASK_ARG], view: inspection })],
    handle: (service, { actor, params }) =>
      service.reading(actor, params.id, ({ inspection: views }) => ok({ inspect: views.inspectTask(params.id) })),
  }),
  readingRun({
    method: 'GET',
    path: '/api/runs/{id}/inspect',
    summary: 'Show why a run is not progressing and what to do next',
    replies: { 200: InspectReply },
    with: [cli('task run inspect', { args: [RUN_ARG], view: inspection })],
    handle: (service, { actor, params }) =>
      service.readingRun(actor, params.id, ({ inspection: views }) => ok({ inspect: views.inspectRun(params.id) })),
  }),
]
