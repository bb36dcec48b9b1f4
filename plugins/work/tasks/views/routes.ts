import { cli, describe, tool } from '../../../../kernel/kit/annotations/index.js'
import { ok, routeOf, streamed } from '../../../../kernel/plugin.js'
import {
  DashboardQuery,
  DashboardReply,
  InboxQuery,
  InboxReply,
  InspectReply,
  RunDetailReply,
  TaskFrame,
  TaskStreamFrame,
  TimelineQuery,
  TimelineReply,
  TreeReply,
  TriageReply,
} from '../../../../schemas/tasks.js'
import { AGENT_SESSION } from '../../../access/identity/api.js'
import type { TaskService } from '../service.js'
import { WORKING } from '../tools/toolsets.js'
import { whoOf } from '../who.js'
import { RUN_ARG, runFields, TASK_ARG } from './columns.js'

const route = routeOf<TaskService>(describe('Tasks'))
const inspection = {
  item: 'inspect',
  fields: [
    { header: 'Task', path: 'task.id' },
    { header: 'Title', path: 'task.title' },
    { header: 'Status', path: 'task.status' },
    { header: 'Run', path: 'current_run.run_id' },
    { header: 'Run status', path: 'current_run.status' },
    { header: 'Reason', path: 'why' },
    { header: 'Last heartbeat', path: 'current_run.heartbeat_at', as: 'ago' },
    { header: 'Session', path: 'bound_session.session_id' },
    { header: 'Session state', path: 'bound_session.state' },
    { header: 'Next step', path: 'next_action', words: { none: '-' } },
  ],
} as const
const MARKS = {
  read: { mark: 'read', summary: 'Mark a task in the inbox as read' },
  dismiss: { mark: 'dismissed', summary: 'Dismiss a task from the inbox until its next event' },
  archive: { mark: 'archived', summary: 'Archive a task in the inbox' },
} as const

export const viewRoutes = [
  route({
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
        view: {
          rows: 'timeline',
          columns: [
            { header: 'TIME', path: 'timestamp', as: 'ago' },
            { header: 'EVENT', path: 'event_type' },
            { header: 'ACTOR', path: 'actor.ref' },
            { header: 'RUN', path: 'run.id', below: true },
            { header: 'DETAIL', path: 'note', below: true },
          ],
        },
      }),
      tool('task_timeline', ['tasks']),
    ],
    handle: (self, { actor, params, query }) =>
      self.reading(actor, params.id, ({ history }) =>
        ok({ timeline: history.timeline(params.id, query.after_sequence, query.limit) }),
      ),
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{id}/stream',
    summary: 'Stream the events of a task',
    query: TimelineQuery,
    invalid: 422,
    headers: { 'Last-Event-ID': { required: false } },
    contentType: 'text/event-stream',
    replies: { 200: TaskFrame },
    frames: TaskStreamFrame,
    handle: async (self, { actor, params, query, headers, signal }) => {
      const resumed = Number(headers['last-event-id'] ?? Number.NaN)
      const after = Number.isSafeInteger(resumed) ? resumed : (query.after_sequence ?? 0)
      await self.reading(actor, params.id, ({ history }) => history.timeline(params.id, after, 1))
      return streamed(self.stream(actor, params.id, after, signal))
    },
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{id}/tree',
    summary: 'List the descendants of a task',
    replies: { 200: TreeReply },
    with: [
      cli('task tree', {
        args: [TASK_ARG],
        view: {
          rows: 'tree.descendants',
          columns: [
            { header: 'LEVEL', path: 'depth' },
            { header: 'ID', path: 'task.id' },
            { header: 'STATUS', path: 'task.status' },
            { header: 'TITLE', path: 'task.title' },
            { header: 'RUN', path: 'active_run.status' },
          ],
          empty: 'no child tasks. Create one: svc task child create <id> <title>',
        },
      }),
    ],
    handle: (self, { actor, params }) =>
      self.reading(actor, params.id, ({ history }) => ok({ tree: history.tree(params.id) })),
  }),
  route({
    method: 'GET',
    path: '/api/observe/tasks/dashboard',
    summary: 'Show active, queued and stuck runs, with the reason and the next step',
    query: DashboardQuery,
    invalid: 422,
    replies: { 200: DashboardReply },
    with: [
      describe('Tasks', { errors: [410] }),
      cli('task board', {
        view: {
          item: 'dashboard',
          fields: [
            { header: 'Health', path: 'health.status' },
            { header: 'Stuck runs', path: 'health.stuck_runs' },
            { header: 'Orphaned runs', path: 'health.active_orphan_runs' },
            { header: 'Runs needing attention', path: 'totals.needs_attention_runs' },
            { header: 'Queued runs', path: 'active_runs.queued' },
            { header: 'Oldest queued', path: 'queue.depth.0.oldest_queued_at', as: 'ago' },
            { header: 'Claimed runs', path: 'active_runs.claimed' },
            { header: 'Running runs', path: 'active_runs.running' },
            { header: 'Blocked tasks', path: 'totals.blocked_tasks' },
            { header: 'Failed tasks', path: 'totals.failed_tasks' },
            { header: 'Completed tasks', path: 'totals.completed_tasks' },
          ],
          table: {
            path: 'active_runs.items',
            columns: [
              { header: 'RUN', path: 'run_id' },
              { header: 'STATUS', path: 'run_status' },
              // The status column already shows `needs_attention`.
              { header: 'HEALTH', path: 'health_status', words: { ok: '-', needs_attention: '-' } },
              { header: 'AGE', path: 'age_ms', as: 'duration' },
              { header: 'TASK', path: 'task_title' },
              { header: 'AGENT', path: 'agent_name' },
              { header: 'PART', path: 'part', below: true },
              { header: 'SESSION', path: 'session_id', below: true },
              { header: 'REASON', path: 'why', below: true },
              { header: 'NEXT STEP', path: 'next_action', below: true },
            ],
          },
        },
      }),
      tool('task_board', ['tasks'], { visibility: 'operator' }),
    ],
    handle: async (self, { query }) => ok({ dashboard: await self.dashboard(query) }),
  }),
  route({
    method: 'GET',
    path: '/api/observe/tasks/inbox',
    with: [describe('Tasks', { errors: [410] }), tool('task_inbox', ['tasks'], { visibility: 'operator' })],
    summary: 'List the tasks that need action from the caller, grouped by reason',
    query: InboxQuery,
    replies: { 200: InboxReply },
    handle: async (self, { actor, query }) => ok({ inbox: await self.listInbox(actor, query) }),
  }),
  ...(['read', 'dismiss', 'archive'] as const).map(verb =>
    route({
      method: 'POST',
      path: `/api/tasks/{id}/triage/${verb}`,
      audited: false,
      summary: MARKS[verb].summary,
      replies: { 200: TriageReply },
      with: [
        cli(`task triage ${verb}`, {
          args: [TASK_ARG],
          view: { item: 'triage', fields: [{ header: 'Task', path: 'task_id' }] },
        }),
      ],
      handle: async (self, { actor, params }) =>
        ok({ triage: await self.inbox.triage(whoOf(actor), params.id, MARKS[verb].mark) }),
    }),
  ),
  route({
    method: 'GET',
    path: '/api/task-runs/{id}',
    summary: 'Show a run with its session, worktree and result',
    origins: [AGENT_SESSION],
    replies: { 200: RunDetailReply },
    with: [
      cli('task run show', {
        args: [RUN_ARG],
        view: {
          item: 'run',
          fields: [
            ...runFields.map(field => ({ ...field, path: `run.${field.path}` })),
            { header: 'Agent', path: 'session.agent_name' },
            { header: 'Session state', path: 'session.state' },
            { header: 'Worker session', path: 'worker.session_id' },
            { header: 'Worker error', path: 'worker.error' },
            { header: 'Folder', path: 'worktree.folder' },
            { header: 'Branch', path: 'worktree.branch' },
            { header: 'Commit', path: 'worktree.commit' },
            { header: 'Last activity', path: 'summary.last_activity_at', as: 'ago' },
          ],
        },
      }),
      tool('task_run_info', WORKING),
    ],
    handle: (self, { actor, params }) =>
      self.readingRun(actor, params.id, ({ inspection: views }) => ok({ run: views.run(params.id) })),
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{id}/inspect',
    summary: 'Show why a task is not progressing and what to do next',
    replies: { 200: InspectReply },
    with: [cli('task inspect', { args: [TASK_ARG], view: inspection })],
    handle: (self, { actor, params }) =>
      self.reading(actor, params.id, ({ inspection: views }) => ok({ inspect: views.inspectTask(params.id) })),
  }),
  route({
    method: 'GET',
    path: '/api/runs/{id}/inspect',
    summary: 'Show why a run is not progressing and what to do next',
    replies: { 200: InspectReply },
    with: [cli('task run inspect', { args: [RUN_ARG], view: inspection })],
    handle: (self, { actor, params }) =>
      self.readingRun(actor, params.id, ({ inspection: views }) => ok({ inspect: views.inspectRun(params.id) })),
  }),
]
