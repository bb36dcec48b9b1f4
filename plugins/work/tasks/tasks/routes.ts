import { cli, columnsOf, runsCode, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../../kernel/kit/collection.js'
import { created, ok } from '../../../../kernel/plugin.js'
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
  type TaskDetail,
  TaskDetailReply,
  TaskReply,
  UpdateTaskBody,
} from '../../../../schemas/tasks.js'
import { AGENT_SESSION } from '../../../access/identity/api.js'
import { undo } from '../../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { TaskErrors } from '../api.js'
import { about, CHANGING, changingTask, FOLLOWING, QUEUEING, READING, route } from '../routing.js'
import type { TaskService } from '../service.js'
import { WORKING } from '../tools/toolsets.js'
import { runColumns, runRows, TASK_ARG, TASK_FIELDS, taskFields, taskItem } from '../views/columns.js'
import { whoOf } from '../who.js'

/** Agents see and create tasks in their own workspace only. */
const origins = [AGENT_SESSION]
const taskDetail = {
  item: 'task',
  fields: [
    ...taskFields.map(field => ({ ...field, path: `task.${field.path}` })),
    ...columnsOf<TaskDetail>()([
      'children',
      { of: 'why', header: 'Reason' },
      { of: 'next_action', header: 'Next step', words: { none: '-' } },
    ]),
  ],
  table: { path: 'runs', columns: runColumns },
} as const
const invalid = 422

/** Errors of a new task. */
const CREATING = [TaskErrors.task_invalid, TaskErrors.task_too_large, TaskErrors.task_exists, ...REFERENCE_ERRORS]
const TITLE = [{ name: 'title', option: true, summary: 'title of the task' }] as const

const task = collectionOf<TaskService>(about)({
  path: '/api/tasks',
  key: 'id',
  noun: 'task',
  one: [TaskReply, 'task'],
  many: [ListTasksReply, 'tasks'],
  show: ['id', 'status', 'priority', 'title', { of: 'active_run.status', header: 'Run' }, 'last_activity_at~ago'],
  fields: TASK_FIELDS,
  argument: { summary: TASK_ARG.summary },
  missing: TaskErrors.task_not_found,
})

export const taskRoutes = [
  task.list({
    query: ListTasksQuery,
    origins,
    with: [tool('task_list', WORKING)],
    throws: REFERENCE_ERRORS,
    empty: 'no tasks. Create one: svc task create <title>',
    handle: (service, { actor, query }) => service.list(actor, query),
  }),
  task.create({
    audited: false,
    body: CreateTaskBody,
    origins,
    invalid,
    cli: {
      args: TITLE,
      scoped: { scope: 'scope', workspace: 'workspace', opens: true },
      options: { auto_enqueue_on_ready: 'auto-enqueue' },
    },
    with: [tool('task_create', ['tasks'])],
    throws: CREATING,
    handle: async (service, { actor, body }) => ({ task: await service.create(whoOf(actor), body) }),
  }),
  task.get({
    summary: 'Show a task with its runs, children, dependencies and events',
    command: 'task get',
    origins,
    reply: TaskDetailReply,
    cli: { view: taskDetail },
    with: [tool('task_info', WORKING)],
    throws: READING,
    handle: (service, { actor, params }) =>
      service.reading(actor, params.id, ({ details }) => ({ task: details.of(params.id) })),
  }),
  task.update({
    audited: false,
    summary: 'Update a task; omitted or null members keep their values',
    body: UpdateTaskBody,
    invalid,
    cli: { options: { auto_enqueue_on_ready: 'auto-enqueue' } },
    with: [undo({ by: 'patch', of: 'task' }), tool('task_update', ['tasks'], { visibility: 'operator' })],
    throws: [TaskErrors.task_archived, TaskErrors.task_invalid, TaskErrors.task_too_large],
    handle: async (service, { actor, params, body }) => ({
      task: await service.writer.update(whoOf(actor), params.id, body),
    }),
  }),
  task.delete({
    audited: false,
    summary: 'Delete a task that has no children and no open run',
    essential: true,
    done: 'deleted task {id}',
    throws: [TaskErrors.task_archived, TaskErrors.task_conflict, TaskErrors.task_run_open],
    handle: (service, { actor, params }) => service.control.remove(whoOf(actor), params.id),
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
      throws(...CREATING, ...CHANGING, TaskErrors.task_conflict, TaskErrors.task_graph_limit),
    ],
    handle: async (service, { actor, params, body }) =>
      created({ task: await service.createChild(whoOf(actor), params.id, body) }),
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
      throws(...QUEUEING),
      cli('task publish', { args: [TASK_ARG], view: taskItem }),
      tool('task_publish', ['tasks'], { visibility: 'operator' }),
    ],
    handle: async (service, { actor, params, body }) =>
      ok(await service.execution.publish(whoOf(actor), params.id, body ?? {})),
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
      throws(...QUEUEING, TaskErrors.task_approval_pending),
      cli('task start', { args: [TASK_ARG], view: taskItem }),
      tool('task_start', ['tasks'], { visibility: 'operator' }),
    ],
    handle: async (service, { actor, params, body }) =>
      created(await service.execution.start(whoOf(actor), params.id, body ?? {})),
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
    with: [cli('task approve', { args: [TASK_ARG], view: taskItem }), throws(...QUEUEING)],
    handle: async (service, { actor, params, body }) =>
      created(await service.execution.approve(whoOf(actor), params.id, body ?? {})),
  }),
  task.action('reject', {
    audited: false,
    summary: 'Reject a task that is waiting for approval',
    throws: [TaskErrors.task_archived, TaskErrors.task_conflict],
    handle: async (service, { actor, params }) => ({ task: await service.control.reject(whoOf(actor), params.id) }),
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
      throws(...CHANGING, TaskErrors.task_conflict, TaskErrors.task_invalid),
    ],
    handle: async (service, { actor, params, body }) =>
      ok({ task: await service.control.cancel(whoOf(actor), params.id, body ?? {}) }),
  }),
  task.action('restore', {
    summary: 'Bring a task back from the archive, with its parents and children',
    with: [undo({ by: 'never', why: 'finished tasks move to the archive by themselves' }), runsCode(false)],
    throws: [TaskErrors.task_archived, ...READING],
    handle: async (service, { params }) => ({ task: await service.restore(params.id) }),
  }),
  task.action('pause', {
    audited: false,
    summary: 'Pause new claims for a task and its descendants',
    body: PauseTaskBody,
    invalid,
    with: [undo({ by: 'action', verb: 'resume' }), tool('task_pause', ['tasks'], { visibility: 'operator' })],
    throws: [TaskErrors.task_archived, TaskErrors.task_conflict, TaskErrors.task_invalid],
    handle: async (service, { actor, params, body }) => ({
      task: await service.control.pause(whoOf(actor), params.id, body),
    }),
  }),
  changingTask({
    method: 'POST',
    path: '/api/tasks/{id}/resume',
    audited: false,
    summary: 'Resume claims for a paused task',
    body: MetadataBody,
    bodyOptional: true,
    invalid,
    replies: { 200: TaskReply },
    with: [
      undo({ by: 'action', verb: 'pause' }),
      cli('task resume', { args: [TASK_ARG], view: taskItem }),
      tool('task_resume', ['tasks'], { visibility: 'operator' }),
    ],
    handle: async (service, { actor, params }) => ok({ task: await service.control.resume(whoOf(actor), params.id) }),
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
      throws(...FOLLOWING),
      cli('task recover', { args: [TASK_ARG], view: taskItem }),
      tool('task_recover', ['tasks'], { visibility: 'operator' }),
    ],
    handle: async (service, { actor, params, body }) =>
      ok({ task: await service.runs.recoverTask(whoOf(actor), params.id, body?.note) }),
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
      throws(...QUEUEING, TaskErrors.task_approval_pending, TaskErrors.task_fan_out_refused),
      cli('task fan-out', { args: [TASK_ARG], view: runRows }),
      tool('task_fan_out', ['tasks'], { visibility: 'operator' }),
    ],
    handle: async (service, { actor, params, body }) =>
      created(await service.execution.fanOut(whoOf(actor), params.id, body)),
  }),
]
