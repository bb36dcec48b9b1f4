import { created, noContent, ok, routeOf } from '../../../kernel/plugin.js'
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
} from '../../../schemas/tasks.js'
import { AGENT_SESSION } from '../../identity/api.js'
import type { TaskService } from '../service.js'
import { runRows, taskFields, taskItem } from '../views/columns.js'
import { whoOf } from '../who.js'

const route = routeOf<TaskService>()
const area = 'Tasks'
/** Agents see and create the tasks of their own workspace. */
const origins = [AGENT_SESSION]
const taskDetail = {
  item: 'task',
  fields: [
    ...taskFields.map(field => ({ ...field, path: `task.${field.path}` })),
    { header: 'Children', path: 'children' },
    { header: 'Why', path: 'why' },
    { header: 'Next', path: 'next_action', words: { none: '-' } },
  ],
  table: { path: 'runs', columns: runRows.columns },
} as const
const invalid = 422

const TITLE = [{ name: 'title', option: true }] as const

export const taskRoutes = [
  route({
    method: 'GET',
    path: '/api/tasks',
    area,
    summary: 'List tasks, filtered and in pages',
    query: ListTasksQuery,
    origins,
    replies: { 200: ListTasksReply },
    errors: [400, 403, 404, 410, 500, 503],
    cli: {
      path: 'task list',
      view: {
        rows: 'tasks',
        columns: [
          { header: 'ID', path: 'id' },
          { header: 'STATUS', path: 'status' },
          { header: 'PRIORITY', path: 'priority' },
          { header: 'TITLE', path: 'title' },
          { header: 'RUN', path: 'active_run.status' },
          { header: 'ACTIVE', path: 'last_activity_at', as: 'ago' },
        ],
        empty: 'no tasks; make one: svc task create <title>',
      },
    },
    handle: async (self, { actor, query }) => ok(await self.list(actor, query)),
  }),
  route({
    method: 'POST',
    path: '/api/tasks',
    area,
    summary: 'Create a task',
    body: CreateTaskBody,
    origins,
    invalid,
    replies: { 201: TaskReply },
    errors: [400, 403, 404, 409, 413, 422, 500, 503],
    cli: {
      path: 'task create',
      args: TITLE,
      scoped: { scope: 'scope', workspace: 'workspace' },
      options: { auto_enqueue_on_ready: 'auto-enqueue' },
      view: taskItem,
    },
    handle: async (self, { actor, body }) => created({ task: await self.create(whoOf(actor), body) }),
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{id}',
    area,
    summary: 'Show a task with its runs, children, dependencies and what happened to it',
    origins,
    replies: { 200: TaskDetailReply },
    errors: [403, 404, 422, 500, 503],
    cli: { path: 'task get', view: taskDetail },
    handle: (self, { actor, params }) => {
      self.visible(whoOf(actor), params.id)
      return ok({ task: self.details.of(params.id) })
    },
  }),
  route({
    method: 'PATCH',
    path: '/api/tasks/{id}',
    area,
    summary: 'Update a task; members that are absent or null stay',
    body: UpdateTaskBody,
    invalid,
    replies: { 200: TaskReply },
    errors: [404, 409, 413, 422, 500, 503],
    cli: { path: 'task update', options: { auto_enqueue_on_ready: 'auto-enqueue' }, view: taskItem },
    handle: async (self, { actor, params, body }) =>
      ok({ task: await self.writer.update(whoOf(actor), params.id, body) }),
  }),
  route({
    method: 'DELETE',
    path: '/api/tasks/{id}',
    area,
    summary: 'Delete a task that has no children and no run that is not over',
    essential: true,
    replies: { 204: null },
    errors: [404, 409, 422, 500, 503],
    cli: { path: 'task delete', done: 'deleted task {id}' },
    handle: async (self, { actor, params }) => {
      await self.control.remove(whoOf(actor), params.id)
      return noContent()
    },
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/children',
    area,
    summary: 'Create a task below another one, which is completed when all of its children are',
    body: CreateTaskBody,
    origins,
    invalid,
    replies: { 201: TaskReply },
    errors: [400, 403, 404, 409, 413, 422, 500, 503],
    cli: {
      path: 'task child create',
      args: [{ name: 'id', in: 'path' }, ...TITLE],
      // The parameter has the name already.
      options: { auto_enqueue_on_ready: 'auto-enqueue', id: 'child-id' },
      scoped: { scope: 'scope', workspace: 'workspace' },
      view: taskItem,
    },
    handle: async (self, { actor, params, body }) =>
      created({ task: await self.createChild(whoOf(actor), params.id, body) }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/publish',
    area,
    summary: 'Publish a draft and queue its first run',
    body: ExecutionBody,
    bodyOptional: true,
    invalid,
    replies: { 200: ExecutionReply },
    errors: [404, 409, 422, 500, 503],
    cli: { path: 'task publish', view: taskItem },
    handle: async (self, { actor, params, body }) =>
      ok(await self.execution.publish(whoOf(actor), params.id, body ?? {})),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/start',
    area,
    summary: 'Queue a run for a task; again only with another idempotency key',
    body: ExecutionBody,
    bodyOptional: true,
    invalid,
    replies: { 201: ExecutionReply },
    errors: [404, 409, 422, 500, 503],
    cli: { path: 'task start', view: taskItem },
    handle: async (self, { actor, params, body }) =>
      created(await self.execution.start(whoOf(actor), params.id, body ?? {})),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/approve',
    area,
    summary: 'Approve a task that waits for it, and queue a run',
    body: ExecutionBody,
    bodyOptional: true,
    invalid,
    replies: { 201: ExecutionReply },
    errors: [404, 409, 422, 500, 503],
    cli: { path: 'task approve', view: taskItem },
    handle: async (self, { actor, params, body }) =>
      created(await self.execution.approve(whoOf(actor), params.id, body ?? {})),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/reject',
    area,
    summary: 'Refuse a task that waits for its approval',
    replies: { 200: TaskReply },
    errors: [404, 409, 422, 500, 503],
    cli: { path: 'task reject', view: taskItem },
    handle: async (self, { actor, params }) => ok({ task: await self.control.reject(whoOf(actor), params.id) }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/cancel',
    area,
    summary: 'Cancel a task, all below it, and their runs',
    body: ReasonBody,
    bodyOptional: true,
    invalid,
    essential: true,
    replies: { 200: TaskReply },
    errors: [404, 409, 422, 500, 503],
    cli: { path: 'task cancel', view: taskItem },
    handle: async (self, { actor, params, body }) =>
      ok({ task: await self.control.cancel(whoOf(actor), params.id, body ?? {}) }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/pause',
    area,
    summary: 'Keep the runs of a task and of all below it from being claimed',
    body: PauseTaskBody,
    invalid,
    replies: { 200: TaskReply },
    errors: [404, 409, 422, 500, 503],
    cli: { path: 'task pause', view: taskItem },
    handle: async (self, { actor, params, body }) =>
      ok({ task: await self.control.pause(whoOf(actor), params.id, body) }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/resume',
    area,
    summary: 'Let the runs of a paused task be claimed again',
    body: MetadataBody,
    bodyOptional: true,
    invalid,
    replies: { 200: TaskReply },
    errors: [404, 409, 422, 500, 503],
    cli: { path: 'task resume', view: taskItem },
    handle: async (self, { actor, params }) => ok({ task: await self.control.resume(whoOf(actor), params.id) }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/recover',
    area,
    summary: 'Let a task go on that needed attention',
    body: RecoverTaskBody,
    bodyOptional: true,
    invalid,
    replies: { 200: TaskReply },
    errors: [404, 409, 422, 429, 500, 503],
    cli: { path: 'task recover', view: taskItem },
    handle: async (self, { actor, params, body }) =>
      ok({ task: await self.runs.recoverTask(whoOf(actor), params.id, body?.note) }),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/runs/fan-out',
    area,
    summary: 'Queue several runs that share the work of a task',
    body: FanOutBody,
    invalid,
    replies: { 201: FanOutReply },
    errors: [404, 409, 422, 500, 503],
    cli: { path: 'task fan-out', view: runRows },
    handle: async (self, { actor, params, body }) =>
      created(await self.execution.fanOut(whoOf(actor), params.id, body)),
  }),
]
