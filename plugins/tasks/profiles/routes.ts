import { noContent, ok, routeOf } from '../../../kernel/plugin.js'
import { ExecutionProfileBody, ExecutionProfileReply, WorktreePolicy } from '../../../schemas/tasks.js'
import type { TaskService } from '../service.js'
import { whoOf } from '../who.js'

const route = routeOf<TaskService>()
const area = 'Tasks'
const path = '/api/tasks/{id}/execution-profile'
const replies = { 200: ExecutionProfileReply } as const
const view = {
  item: 'profile',
  fields: [
    { header: 'Task', path: 'task_id' },
    { header: 'Worker', path: 'worker.mode' },
    { header: 'Agent', path: 'worker.agent_name' },
    { header: 'Provider', path: 'worker.provider' },
    { header: 'Model', path: 'worker.model' },
    { header: 'Capabilities', path: 'worker.required_capabilities', as: 'list' },
    { header: 'Worktree', path: 'worktree.mode' },
    { header: 'In', path: 'worktree.worktree_ref' },
    { header: 'Sandbox', path: 'sandbox.mode' },
    { header: 'Profile', path: 'sandbox.sandbox_ref' },
    { header: 'Changed', path: 'updated_at', as: 'time' },
  ],
} as const

export const profileRoutes = [
  route({
    method: 'GET',
    path,
    area,
    summary: 'Show who works on the runs of a task, and where',
    replies,
    errors: [404, 422, 500, 503],
    cli: { path: 'task profile show', view },
    handle: (self, { params }) => ok({ profile: self.profiles.get(params.id) }),
  }),
  route({
    method: 'PUT',
    path,
    area,
    summary: 'Say who works on the runs of a task, and where; the daemon starts its sessions from then on',
    body: ExecutionProfileBody,
    replies,
    errors: [400, 404, 409, 500, 503],
    cli: {
      path: 'task profile set',
      view,
      shorthands: [
        {
          option: 'agent',
          member: 'worker',
          value: { mode: 'select', agent_name: '$' },
          type: 'text',
          summary: 'the agent that works on it',
        },
      ],
    },
    handle: async (self, { actor, params, body }) =>
      ok({ profile: await self.profiles.set(whoOf(actor), params.id, body) }),
  }),
  route({
    method: 'DELETE',
    path,
    area,
    summary: 'Forget the execution profile of a task',
    replies: { 204: null },
    errors: [404, 409, 500, 503],
    cli: { path: 'task profile reset', done: 'the task has no profile of its own any more' },
    handle: async (self, { actor, params }) => {
      await self.profiles.reset(whoOf(actor), params.id)
      return noContent()
    },
  }),
  route({
    method: 'PATCH',
    path: `${path}/worktree`,
    area,
    summary: 'Say where the runs of a task are worked on: in the workspace, or in a git worktree',
    body: WorktreePolicy,
    replies,
    errors: [400, 404, 409, 500, 503],
    cli: { path: 'task profile worktree', args: [{ name: 'id', in: 'path' }, { name: 'mode' }], view },
    handle: async (self, { actor, params, body }) =>
      ok({ profile: await self.profiles.setWorktree(whoOf(actor), params.id, body) }),
  }),
]
