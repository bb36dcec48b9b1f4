import { cli, runsCode, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { created, ok } from '../../../../kernel/plugin.js'
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
import { TaskErrors } from '../api.js'
import { CHANGING, changingTask } from '../routing.js'
import { WORKING } from '../tools/toolsets.js'
import { TASK_ARG, taskFields } from '../views/columns.js'
import { whoOf } from '../who.js'

const { task_invalid, task_conflict, task_graph_limit, task_cycle, task_run_not_found, task_block_not_found } =
  TaskErrors
const detail = { item: 'task.task', fields: taskFields } as const
const invalid = 422
const blockItem = show(BlockReply, 'block', ['id', 'kind', 'reason', 'expires_at~time', 'cleared_at~time'])

/** Routes for dependencies and blocks. */
export const waitsRoutes = [
  changingTask({
    method: 'POST',
    path: '/api/tasks/{id}/dependencies',
    audited: false,
    summary: 'Add a dependency: the task waits until the other task is completed',
    body: AddDependencyBody,
    invalid,
    replies: { 200: TaskDetailReply },
    with: [
      cli('task dependency add', { args: [TASK_ARG, { name: 'depends_on_task_id' }], view: detail }),
      throws(...CHANGING, task_invalid, task_conflict, task_graph_limit, task_cycle),
    ],
    handle: async (service, { actor, params, body }) => {
      await service.graph.add(whoOf(actor), params.id, body.depends_on_task_id)
      return ok({ task: service.details.of(params.id) })
    },
  }),
  changingTask({
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
    handle: async (service, { actor, params }) => {
      await service.graph.remove(whoOf(actor), params.id, params.depends_on_id)
      return ok({ task: service.details.of(params.id) })
    },
  }),
  changingTask({
    method: 'GET',
    path: '/api/tasks/{id}/blocks',
    summary: 'List the blocks of a task',
    query: ListBlocksQuery,
    origins: [AGENT_SESSION],
    replies: { 200: BlocksReply },
    with: [
      cli('task blocks', {
        args: [TASK_ARG],
        view: show(BlocksReply, 'blocks', ['id', 'kind', 'reason', 'created_at~ago', 'cleared_at~ago'], {
          empty: 'no blocks. Show why a task is not progressing: svc task inspect <id>',
        }),
      }),
      tool('task_blocks', ['tasks']),
    ],
    handle: (service, { actor, params, query }) => {
      service.visible(whoOf(actor), params.id)
      return ok({ blocks: service.blocks.list(params.id, query.include_cleared ?? false) })
    },
  }),
  changingTask({
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
      throws(...CHANGING, task_invalid, task_conflict, task_run_not_found),
      runsCode(false),
    ],
    handle: async (service, { actor, params, body }) => {
      const who = whoOf(actor)
      service.visible(who, params.id)
      return created({ block: await service.blocks.create(who, params.id, body) })
    },
  }),
  changingTask({
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
      throws(...CHANGING, task_block_not_found, task_invalid),
    ],
    handle: async (service, { actor, params, body }) =>
      ok({ block: await service.blocks.clear(whoOf(actor), params.id, params.block_id, body?.note) }),
  }),
]
