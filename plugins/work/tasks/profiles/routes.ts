import { cli, show, throws } from '../../../../kernel/kit/annotations/index.js'
import { noContent, ok } from '../../../../kernel/plugin.js'
import { ExecutionProfileBody, ExecutionProfileReply, WorktreePolicy } from '../../../../schemas/tasks.js'
import { undo } from '../../../desk/changes/api.js'
import { TaskErrors } from '../api.js'
import { CHANGING, readingTask, route } from '../routing.js'
import { TASK_ARG } from '../views/columns.js'
import { whoOf } from '../who.js'
import { ProfileErrors } from './errors.js'

const changed = throws(...CHANGING, TaskErrors.task_conflict, ProfileErrors.task_profile_invalid)
const path = '/api/tasks/{id}/execution-profile'
const replies = { 200: ExecutionProfileReply } as const
const view = show(ExecutionProfileReply, 'profile', [
  'task_id',
  { of: 'worker.mode', header: 'Worker mode' },
  { of: 'worker.agent_name', header: 'Agent' },
  'worker.provider',
  'worker.model',
  { of: 'worker.required_capabilities~list', header: 'Capabilities' },
  { of: 'worktree.mode', header: 'Worktree mode' },
  { of: 'worktree.worktree_ref', header: 'Worktree' },
  { of: 'sandbox.mode', header: 'Sandbox mode' },
  { of: 'sandbox.sandbox_ref', header: 'Sandbox profile' },
  'updated_at~time',
])

export const profileRoutes = [
  readingTask({
    method: 'GET',
    path,
    summary: 'Show the execution profile of a task',
    replies,
    with: [cli('task profile show', { args: [TASK_ARG], view })],
    handle: (service, { actor, params }) =>
      service.reading(actor, params.id, ({ profiles }) => ok({ profile: profiles.get(params.id) })),
  }),
  route({
    method: 'PUT',
    path,
    summary: 'Set the execution profile of a task: the agent, worktree and sandbox of its runs',
    body: ExecutionProfileBody,
    replies,
    with: [
      undo({ by: 'put', of: 'profile' }),
      changed,
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
    handle: async (service, { actor, params, body }) =>
      ok({ profile: await service.profiles.set(whoOf(actor), params.id, body) }),
  }),
  route({
    method: 'DELETE',
    path,
    summary: 'Delete the execution profile of a task',
    replies: { 204: null },
    with: [
      undo({ by: 'put', of: 'profile' }),
      throws(...CHANGING, TaskErrors.task_conflict),
      cli('task profile reset', { args: [TASK_ARG], done: 'deleted the execution profile of task {id}' }),
    ],
    handle: async (service, { actor, params }) => {
      await service.profiles.reset(whoOf(actor), params.id)
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
      changed,
      cli('task profile worktree', { args: [TASK_ARG, { name: 'mode' }], view }),
    ],
    handle: async (service, { actor, params, body }) =>
      ok({ profile: await service.profiles.setWorktree(whoOf(actor), params.id, body) }),
  }),
]
