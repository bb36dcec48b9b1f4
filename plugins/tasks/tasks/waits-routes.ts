import { created, ok, routeOf } from '../../../kernel/plugin.js'
import {
  AddDependencyBody,
  BlockReply,
  BlocksReply,
  ClearBlockBody,
  CreateBlockBody,
  ListBlocksQuery,
  TaskDetailReply,
} from '../../../schemas/tasks.js'
import { AGENT_SESSION } from '../../identity/api.js'
import type { TaskService } from '../service.js'
import { taskFields } from '../views/columns.js'
import { whoOf } from '../who.js'

const route = routeOf<TaskService>()
const area = 'Tasks'
const detail = { item: 'task.task', fields: taskFields } as const
const invalid = 422
const blockItem = {
  item: 'block',
  fields: [
    { header: 'Block', path: 'id' },
    { header: 'Kind', path: 'kind' },
    { header: 'Reason', path: 'reason' },
    { header: 'Until', path: 'expires_at', as: 'time' },
    { header: 'Cleared', path: 'cleared_at', as: 'time' },
  ],
} as const

/** What tasks wait for: other tasks, and somebody's word. */
export const waitsRoutes = [
  route({
    method: 'POST',
    path: '/api/tasks/{id}/dependencies',
    area,
    summary: 'Make a task wait until another one is completed',
    body: AddDependencyBody,
    invalid,
    replies: { 200: TaskDetailReply },
    errors: [404, 409, 422, 500, 503],
    cli: {
      path: 'task dependency add',
      args: [{ name: 'id', in: 'path' }, { name: 'depends_on_task_id' }],
      view: detail,
    },
    handle: async (self, { actor, params, body }) => {
      await self.graph.add(whoOf(actor), params.id, body.depends_on_task_id)
      return ok({ task: self.details.of(params.id) })
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/tasks/{id}/dependencies/{depends_on_id}',
    area,
    summary: 'Make a task wait for another one no longer',
    replies: { 200: TaskDetailReply },
    errors: [404, 409, 422, 500, 503],
    cli: { path: 'task dependency remove', view: detail },
    handle: async (self, { actor, params }) => {
      await self.graph.remove(whoOf(actor), params.id, params.depends_on_id)
      return ok({ task: self.details.of(params.id) })
    },
  }),
  route({
    method: 'GET',
    path: '/api/tasks/{id}/blocks',
    area,
    summary: 'List the blocks on a task',
    query: ListBlocksQuery,
    origins: [AGENT_SESSION],
    replies: { 200: BlocksReply },
    errors: [403, 404, 422, 500, 503],
    cli: {
      path: 'task blocks',
      view: {
        rows: 'blocks',
        columns: [
          { header: 'ID', path: 'id' },
          { header: 'KIND', path: 'kind' },
          { header: 'REASON', path: 'reason' },
          { header: 'CREATED', path: 'created_at', as: 'ago' },
          { header: 'CLEARED', path: 'cleared_at', as: 'ago' },
        ],
        empty: 'nothing blocks it by somebody’s word',
      },
    },
    handle: (self, { actor, params, query }) => {
      self.visible(whoOf(actor), params.id)
      return ok({ blocks: self.blocks.list(params.id, query.include_cleared ?? false) })
    },
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/blocks',
    area,
    summary: 'Keep the runs of a task from being claimed until the block is cleared',
    body: CreateBlockBody,
    origins: [AGENT_SESSION],
    runsCode: false,
    invalid,
    replies: { 201: BlockReply },
    errors: [403, 404, 409, 422, 500, 503],
    cli: { path: 'task block', view: blockItem },
    handle: async (self, { actor, params, body }) => {
      const who = whoOf(actor)
      self.visible(who, params.id)
      return created({ block: await self.blocks.create(who, params.id, body) })
    },
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/blocks/{block_id}/clear',
    area,
    summary: 'Clear a block',
    body: ClearBlockBody,
    bodyOptional: true,
    invalid,
    replies: { 200: BlockReply },
    errors: [404, 409, 422, 500, 503],
    cli: { path: 'task unblock', view: blockItem },
    handle: async (self, { actor, params, body }) =>
      ok({ block: await self.blocks.clear(whoOf(actor), params.id, params.block_id, body?.note) }),
  }),
]
