import { cli, describe } from '../../../../kernel/kit/annotations/index.js'
import { noContent, ok, routeOf } from '../../../../kernel/plugin.js'
import { ExecutionProfileBody, ExecutionProfileReply, WorktreePolicy } from '../../../../schemas/tasks.js'
import { undo } from '../../../desk/changes/api.js'
import type { TaskService } from '../service.js'
import { TASK_ARG } from '../views/columns.js'
import { whoOf } from '../who.js'

const route = routeOf<TaskService>(describe('Tasks'))
const path = '/api/tasks/{id}/execution-profile'
const replies = { 200: ExecutionProfileReply } as const
const view = {
  item: 'profile',
  fields: [
    { header: 'Task', path: 'task_id' },
    { header: 'Worker mode', path: 'worker.mode' },
    { header: 'Agent', path: 'worker.agent_name' },
    { header: 'Provider', path: 'worker.provider' },
    { header: 'Model', path: 'worker.model' },
    { header: 'Capabilities', path: 'worker.required_capabilities', as: 'list' },
    { header: 'Worktree mode', path: 'worktree.mode' },
    { header: 'Worktree', path: 'worktree.worktree_ref' },
    { header: 'Sandbox mode', path: 'sandbox.mode' },
    { header: 'Sandbox profile', path: 'sandbox.sandbox_ref' },
    { header: 'Updated', path: 'updated_at', as: 'time' },
  ],
} as const

export const profileRoutes = [
  route({
    method: 'GET',
    path,
    summary: 'Show the execution profile of a task',
    replies,
    with: [cli('task profile show', { args: [TASK_ARG], view })],
    handle: (self, { actor, params }) =>
      self.reading(actor, params.id, ({ profiles }) => ok({ profile: profiles.get(params.id) })),
  }),
  route({
    method: 'PUT',
    path,
    summary: 'Set the execution profile of a task: the agent, worktree and sandbox of its runs',
    body: ExecutionProfileBody,
    replies,
    with: [
      undo({ by: 'put', of: 'profile' }),
      cli('task profile set', {
        args: [TASK_ARG],
        view,
        shorthands: [
          {
            option: 'agent',
            member: 'worker',
            value: { mode: 'select', agent_name: '$' },
            type: 'text',
            summary: 'agent that works on the runs of the task',
          },
        ],
      }),
    ],
    handle: async (self, { actor, params, body }) =>
      ok({ profile: await self.profiles.set(whoOf(actor), params.id, body) }),
  }),
  route({
    method: 'DELETE',
    path,
    summary: 'Delete the execution profile of a task',
    replies: { 204: null },
    with: [
      undo({ by: 'put', of: 'profile' }),
      cli('task profile reset', { args: [TASK_ARG], done: 'deleted the execution profile of task {id}' }),
    ],
    handle: async (self, { actor, params }) => {
      await self.profiles.reset(whoOf(actor), params.id)
      return noContent()
    },
  }),
  route({
    method: 'PATCH',
    path: `${path}/worktree`,
    summary: 'Set the worktree mode of a task',
    body: WorktreePolicy,
    replies,
    with: [
      undo({ by: 'never', why: 'the former mode is in svc change show; set it again: svc task profile' }),
      cli('task profile worktree', { args: [TASK_ARG, { name: 'mode' }], view }),
    ],
    handle: async (self, { actor, params, body }) =>
      ok({ profile: await self.profiles.setWorktree(whoOf(actor), params.id, body) }),
  }),
]
