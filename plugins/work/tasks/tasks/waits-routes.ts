import { cli, describe, runsCode, tool } from '../../../../kernel/kit/annotations/index.js'
import { created, ok, routeOf } from '../../../../kernel/plugin.js'
import {
  AddDependencyBody,
  BlockReply,
  BlocksReply,
  ClearBlockBody,
  CreateBlockBody,
  ListBlocksQuery,
  TaskDetailReply,
} from '../../../../schemas/tasks.js'
import { AGENT_SESSION } from '../../../access/identity/api.js'
import type { TaskService } from '../service.js'
import { WORKING } from '../tools/toolsets.js'
import { TASK_ARG, taskFields } from '../views/columns.js'
import { whoOf } from '../who.js'

const route = routeOf<TaskService>(describe('Tasks'))
const detail = { item: 'task.task', fields: taskFields } as const
const invalid = 422
const blockItem = {
  item: 'block',
  fields: [
    { header: 'Block', path: 'id' },
    { header: 'Kind', path: 'kind' },
    { header: 'Reason', path: 'reason' },
    { header: 'Expires', path: 'expires_at', as: 'time' },
    { header: 'Cleared', path: 'cleared_at', as: 'time' },
  ],
} as const

/** Routes for what a task waits for: dependencies and blocks. */
export const waitsRoutes = [
  route({
    method: 'POST',
    path: '/api/tasks/{id}/dependencies',
    audited: false,
    summary: 'Add a dependency: the task waits until the other task is completed',
    body: AddDependencyBody,
    invalid,
    replies: { 200: TaskDetailReply },
    with: [cli('task dependency add', { args: [TASK_ARG, { name: 'depends_on_task_id' }], view: detail })],
    handle: async (self, { actor, params, body }) => {
      await self.graph.add(whoOf(actor), params.id, body.depends_on_task_id)
      return ok({ task: self.details.of(params.id) })
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/tasks/{id}/dependencies/{depends_on_id}',
    audited: false,
    summary: 'Remove a dependency of a task',
    replies: { 200: TaskDetailReply },
    with: [
      cli('task dependency remove', {
        args: [TASK_ARG, { name: 'depends_on_id', in: 'path', summary: 'ID of the task that it depends on' }],
        view: detail,
      }),
    ],
    handle: async (self, { actor, params }) => {
      await self.graph.remove(whoOf(actor), params.id, params.depends_on_id)
      return ok({ task: self.details.of(params.id) })
    },
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{id}/blocks',
    summary: 'List the blocks of a task',
    query: ListBlocksQuery,
    origins: [AGENT_SESSION],
    replies: { 200: BlocksReply },
    with: [
      cli('task blocks', {
        args: [TASK_ARG],
        view: {
          rows: 'blocks',
          columns: [
            { header: 'ID', path: 'id' },
            { header: 'KIND', path: 'kind' },
            { header: 'REASON', path: 'reason' },
            { header: 'CREATED', path: 'created_at', as: 'ago' },
            { header: 'CLEARED', path: 'cleared_at', as: 'ago' },
          ],
          empty: 'no blocks. Show why a task is not progressing: svc task inspect <id>',
        },
      }),
      tool('task_blocks', ['tasks']),
    ],
    handle: (self, { actor, params, query }) => {
      self.visible(whoOf(actor), params.id)
      return ok({ blocks: self.blocks.list(params.id, query.include_cleared ?? false) })
    },
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/blocks',
    audited: false,
    summary: 'Block a task: its runs cannot be claimed until the block is cleared',
    body: CreateBlockBody,
    origins: [AGENT_SESSION],
    invalid,
    replies: { 201: BlockReply },
    with: [
      cli('task block', { args: [TASK_ARG], view: blockItem }),
      tool('task_block', WORKING, { tags: ['ask', 'question', 'input'] }),
      runsCode(false),
    ],
    handle: async (self, { actor, params, body }) => {
      const who = whoOf(actor)
      self.visible(who, params.id)
      return created({ block: await self.blocks.create(who, params.id, body) })
    },
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/blocks/{block_id}/clear',
    audited: false,
    summary: 'Clear a block of a task',
    body: ClearBlockBody,
    bodyOptional: true,
    invalid,
    replies: { 200: BlockReply },
    with: [
      cli('task unblock', {
        args: [TASK_ARG, { name: 'block_id', in: 'path', summary: 'block ID; list them: svc task blocks <id>' }],
        view: blockItem,
      }),
    ],
    handle: async (self, { actor, params, body }) =>
      ok({ block: await self.blocks.clear(whoOf(actor), params.id, params.block_id, body?.note) }),
  }),
]
