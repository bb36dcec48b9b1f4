import { cli, describe, runsCode, tool } from '../../../../kernel/kit/annotations/index.js'
import { created, noContent, ok, routeOf } from '../../../../kernel/plugin.js'
import {
  CreateTaskBody,
  ExecutionBody,
  ExecutionReply,
  FanOutBody,
  FanOutReply,
  ListTasksQuery,
  ListTasksReply,
  MetadataBody,
  PauseTaskBody,
  ReasonBody,
  RecoverTaskBody,
  TaskDetailReply,
  TaskReply,
  UpdateTaskBody,
} from '../../../../schemas/tasks.js'
import { AGENT_SESSION } from '../../../access/identity/api.js'
import { undo } from '../../../desk/changes/api.js'
import type { TaskService } from '../service.js'
import { WORKING } from '../tools/toolsets.js'
import { runRows, TASK_ARG, taskFields, taskItem } from '../views/columns.js'
import { whoOf } from '../who.js'

const route = routeOf<TaskService>(describe('Tasks'))
/** Agents see and create tasks in their own workspace only. */
const origins = [AGENT_SESSION]
const taskDetail = {
  item: 'task',
  fields: [
    ...taskFields.map(field => ({ ...field, path: `task.${field.path}` })),
    { header: 'Children', path: 'children' },
    { header: 'Reason', path: 'why' },
    { header: 'Next step', path: 'next_action', words: { none: '-' } },
  ],
  table: { path: 'runs', columns: runRows.columns },
} as const
const invalid = 422

const TITLE = [{ name: 'title', option: true, summary: 'title of the task' }] as const

export const taskRoutes = [
  route({
    method: 'GET',
    path: '/api/tasks',
    summary: 'List tasks',
    query: ListTasksQuery,
    origins,
    replies: { 200: ListTasksReply },
    with: [
      describe('Tasks', { errors: [410] }),
      cli('task list', {
        view: {
          rows: 'tasks',
          columns: [
            { header: 'ID', path: 'id' },
            { header: 'STATUS', path: 'status' },
            { header: 'PRIORITY', path: 'priority' },
            { header: 'TITLE', path: 'title' },
            { header: 'RUN', path: 'active_run.status' },
            { header: 'LAST ACTIVITY', path: 'last_activity_at', as: 'ago' },
          ],
          empty: 'no tasks. Create one: svc task create <title>',
        },
      }),
      tool('task_list', WORKING),
    ],
    handle: async (self, { actor, query }) => ok(await self.list(actor, query)),
  }),
  route({
    method: 'POST',
    path: '/api/tasks',
    audited: false,
    summary: 'Create a task',
    body: CreateTaskBody,
    origins,
    invalid,
    replies: { 201: TaskReply },
    with: [
      cli('task create', {
        args: TITLE,
        scoped: { scope: 'scope', workspace: 'workspace', opens: true },
        options: { auto_enqueue_on_ready: 'auto-enqueue' },
        view: taskItem,
      }),
      tool('task_create', ['tasks']),
    ],
    handle: async (self, { actor, body }) => created({ task: await self.create(whoOf(actor), body) }),
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{id}',
    summary: 'Show a task with its runs, children, dependencies and events',
    origins,
    replies: { 200: TaskDetailReply },
    with: [cli('task get', { args: [TASK_ARG], view: taskDetail }), tool('task_info', WORKING)],
    handle: (self, { actor, params }) =>
      self.reading(actor, params.id, ({ details }) => ok({ task: details.of(params.id) })),
  }),
  route({
    method: 'PATCH',
    path: '/api/tasks/{id}',
    audited: false,
    summary: 'Update a task; omitted or null members keep their values',
    body: UpdateTaskBody,
    invalid,
    replies: { 200: TaskReply },
    with: [
      undo({ by: 'patch', of: 'task' }),
      cli('task update', { args: [TASK_ARG], options: { auto_enqueue_on_ready: 'auto-enqueue' }, view: taskItem }),
      tool('task_update', ['tasks'], { visibility: 'operator' }),
    ],
    handle: async (self, { actor, params, body }) =>
      ok({ task: await self.writer.update(whoOf(actor), params.id, body) }),
  }),
  route({
    method: 'DELETE',
    path: '/api/tasks/{id}',
    audited: false,
    summary: 'Delete a task that has no children and no open run',
    essential: true,
    replies: { 204: null },
    with: [cli('task delete', { args: [TASK_ARG], done: 'deleted task {id}' })],
    handle: async (self, { actor, params }) => {
      await self.control.remove(whoOf(actor), params.id)
      return noContent()
    },
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/children',
    audited: false,
    summary: 'Create a child task; the parent completes when all its children are completed',
    body: CreateTaskBody,
    origins,
    invalid,
    replies: { 201: TaskReply },
    with: [
      cli('task child create', {
        args: [{ ...TASK_ARG, summary: `parent ${TASK_ARG.summary}` }, ...TITLE], // The path parameter is already named `id`.
        options: { auto_enqueue_on_ready: 'auto-enqueue', id: 'child-id' },
        scoped: { scope: 'scope', workspace: 'workspace' },
        view: taskItem,
      }),
      tool('task_child_create', ['tasks']),
    ],
    handle: async (self, { actor, params, body }) =>
      created({ task: await self.createChild(whoOf(actor), params.id, body) }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/publish',
    audited: false,
    summary: 'Publish a draft and queue its first run',
    body: ExecutionBody,
    bodyOptional: true,
    invalid,
    replies: { 200: ExecutionReply },
    with: [
      cli('task publish', { args: [TASK_ARG], view: taskItem }),
      tool('task_publish', ['tasks'], { visibility: 'operator' }),
    ],
    handle: async (self, { actor, params, body }) =>
      ok(await self.execution.publish(whoOf(actor), params.id, body ?? {})),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/start',
    audited: false,
    summary: 'Queue a run of a task; starting it again requires a new idempotency key',
    body: ExecutionBody,
    bodyOptional: true,
    invalid,
    replies: { 201: ExecutionReply },
    with: [
      cli('task start', { args: [TASK_ARG], view: taskItem }),
      tool('task_start', ['tasks'], { visibility: 'operator' }),
    ],
    handle: async (self, { actor, params, body }) =>
      created(await self.execution.start(whoOf(actor), params.id, body ?? {})),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/approve',
    audited: false,
    summary: 'Approve a task that is waiting for approval and queue a run',
    body: ExecutionBody,
    bodyOptional: true,
    invalid,
    replies: { 201: ExecutionReply },
    with: [cli('task approve', { args: [TASK_ARG], view: taskItem })],
    handle: async (self, { actor, params, body }) =>
      created(await self.execution.approve(whoOf(actor), params.id, body ?? {})),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/reject',
    audited: false,
    summary: 'Reject a task that is waiting for approval',
    replies: { 200: TaskReply },
    with: [cli('task reject', { args: [TASK_ARG], view: taskItem })],
    handle: async (self, { actor, params }) => ok({ task: await self.control.reject(whoOf(actor), params.id) }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/cancel',
    audited: false,
    summary: 'Cancel a task, its descendants and their open runs',
    body: ReasonBody,
    bodyOptional: true,
    invalid,
    essential: true,
    replies: { 200: TaskReply },
    with: [
      cli('task cancel', { args: [TASK_ARG], view: taskItem }),
      tool('task_cancel', ['tasks'], { visibility: 'operator' }),
    ],
    handle: async (self, { actor, params, body }) =>
      ok({ task: await self.control.cancel(whoOf(actor), params.id, body ?? {}) }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/restore',
    summary: 'Bring a task back from the archive, with its parents and children',
    replies: { 200: TaskReply },
    with: [
      undo({ by: 'never', why: 'finished tasks move to the archive by themselves' }),
      cli('task restore', { args: [TASK_ARG], view: taskItem }),
      runsCode(false),
    ],
    handle: async (self, { params }) => ok({ task: await self.restore(params.id) }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/pause',
    audited: false,
    summary: 'Pause new claims for a task and its descendants',
    body: PauseTaskBody,
    invalid,
    replies: { 200: TaskReply },
    with: [
      undo({ by: 'action', path: '/api/tasks/{id}/resume' }),
      cli('task pause', { args: [TASK_ARG], view: taskItem }),
      tool('task_pause', ['tasks'], { visibility: 'operator' }),
    ],
    handle: async (self, { actor, params, body }) =>
      ok({ task: await self.control.pause(whoOf(actor), params.id, body) }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/resume',
    audited: false,
    summary: 'Resume claims for a paused task',
    body: MetadataBody,
    bodyOptional: true,
    invalid,
    replies: { 200: TaskReply },
    with: [
      undo({ by: 'action', path: '/api/tasks/{id}/pause' }),
      cli('task resume', { args: [TASK_ARG], view: taskItem }),
      tool('task_resume', ['tasks'], { visibility: 'operator' }),
    ],
    handle: async (self, { actor, params }) => ok({ task: await self.control.resume(whoOf(actor), params.id) }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/recover',
    audited: false,
    summary: 'Recover a task that needs attention',
    body: RecoverTaskBody,
    bodyOptional: true,
    invalid,
    replies: { 200: TaskReply },
    with: [
      cli('task recover', { args: [TASK_ARG], view: taskItem }),
      tool('task_recover', ['tasks'], { visibility: 'operator' }),
    ],
    handle: async (self, { actor, params, body }) =>
      ok({ task: await self.runs.recoverTask(whoOf(actor), params.id, body?.note) }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/runs/fan-out',
    audited: false,
    summary: 'Fan a task out into several runs, one for each part of the work',
    body: FanOutBody,
    origins,
    invalid,
    replies: { 201: FanOutReply },
    with: [
      cli('task fan-out', { args: [TASK_ARG], view: runRows }),
      tool('task_fan_out', ['tasks'], { visibility: 'operator' }),
    ],
    handle: async (self, { actor, params, body }) =>
      created(await self.execution.fanOut(whoOf(actor), params.id, body)),
  }),
]
