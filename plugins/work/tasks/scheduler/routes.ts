import { cli, columnsOf, describe, show, throws } from '../../../../kernel/kit/annotations/index.js'
import { ok, routeOf } from '../../../../kernel/plugin.js'
import {
  BacklogQuery,
  BacklogReply,
  DrainBody,
  DrainReply,
  SchedulerBody,
  SchedulerReply,
} from '../../../../schemas/tasks.js'
import { undo } from '../../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { TaskErrors } from '../api.js'
import type { TaskService } from '../service.js'
import { whoOf } from '../who.js'

type Queued = BacklogReply['backlog']['runs'][number]

const route = routeOf<TaskService>(describe('Task scheduler'))
const INVALID = throws(TaskErrors.task_invalid)
const view = show(SchedulerReply, 'scheduler', [
  'paused',
  'paused_by',
  { of: 'paused_reason', header: 'Pause reason' },
  { of: 'queued_run_count', header: 'Queued runs' },
  { of: 'active_claim_count', header: 'Active claims' },
  { of: 'starved_run_count', header: 'Starved runs' },
  { of: 'needs_attention_run_count', header: 'Runs needing attention' },
  { of: 'paused_task_count', header: 'Paused tasks' },
])

export const schedulerRoutes = [
  route({
    method: 'GET',
    path: '/api/scheduler',
    summary: 'Show the scheduler status: pause, queue length, active claims',
    replies: { 200: SchedulerReply },
    with: [cli('scheduler status', { view })],
    handle: service => ok({ scheduler: service.scheduler.toWire() }),
  }),
  route({
    method: 'POST',
    path: '/api/scheduler/pause',
    summary: 'Pause new claims; active runs continue',
    body: SchedulerBody,
    bodyOptional: true,
    invalid: 422,
    replies: { 200: SchedulerReply },
    with: [undo({ by: 'action', verb: 'resume' }), cli('scheduler pause', { view }), INVALID],
    handle: async (service, { actor, body }) => {
      await service.scheduler.pause(whoOf(actor), body?.reason)
      return ok({ scheduler: service.scheduler.toWire() })
    },
  }),
  route({
    method: 'POST',
    path: '/api/scheduler/resume',
    summary: 'Resume claims',
    body: SchedulerBody,
    bodyOptional: true,
    invalid: 422,
    replies: { 200: SchedulerReply },
    with: [undo({ by: 'action', verb: 'pause' }), cli('scheduler resume', { view }), INVALID],
    handle: async (service, { actor, body }) => {
      await service.scheduler.resume(whoOf(actor), body?.reason)
      return ok({ scheduler: service.scheduler.toWire() })
    },
  }),
  route({
    method: 'POST',
    path: '/api/scheduler/drain',
    summary: 'Pause new claims and wait for active runs to end; the scheduler stays paused',
    body: DrainBody,
    bodyOptional: true,
    invalid: 422,
    replies: { 200: DrainReply },
    with: [
      undo({ by: 'action', verb: 'resume' }),
      INVALID,
      cli('scheduler drain', {
        view: show(DrainReply, '', [
          { of: 'completed', header: 'Drained' },
          'remaining_claims',
          'timed_out',
          'scheduler.paused',
        ]),
      }),
    ],
    handle: async (service, { actor, body, signal }) => ok(await service.drain(whoOf(actor), body ?? {}, signal)),
  }),
  route({
    method: 'GET',
    path: '/api/scheduler/backlog',
    summary: 'List queued runs in claim order, with the status of their tasks',
    query: BacklogQuery,
    invalid: 422,
    replies: { 200: BacklogReply },
    with: [
      throws(...REFERENCE_ERRORS),
      cli('scheduler backlog', {
        view: {
          rows: 'backlog.runs',
          columns: columnsOf<Queued>()([
            { of: 'run.id', header: 'Run' },
            { of: 'task.id', header: 'Task' },
            'task.title',
            'task.priority',
            'run.queued_at~ago',
            { of: 'task.status', header: 'Task status' },
          ]),
          empty: 'no queued runs',
        },
      }),
    ],
    handle: async (service, { query }) => ok({ backlog: await service.backlog(query) }),
  }),
]
