import { cli, describe } from '../../../../kernel/kit/annotations/index.js'
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
import type { TaskService } from '../service.js'
import { whoOf } from '../who.js'

const route = routeOf<TaskService>(describe('Task scheduler'))
export const schedulerItem = {
  item: 'scheduler',
  fields: [
    { header: 'Paused', path: 'paused' },
    { header: 'Paused by', path: 'paused_by' },
    { header: 'Pause reason', path: 'paused_reason' },
    { header: 'Queued runs', path: 'queued_run_count' },
    { header: 'Active claims', path: 'active_claim_count' },
    { header: 'Starved runs', path: 'starved_run_count' },
    { header: 'Runs needing attention', path: 'needs_attention_run_count' },
    { header: 'Paused tasks', path: 'paused_task_count' },
  ],
} as const

export const schedulerRoutes = [
  route({
    method: 'GET',
    path: '/api/scheduler',
    summary: 'Show the scheduler status: pause, queue length, active claims',
    replies: { 200: SchedulerReply },
    with: [cli('scheduler status', { view: schedulerItem })],
    handle: self => ok({ scheduler: self.scheduler.toWire() }),
  }),
  route({
    method: 'POST',
    path: '/api/scheduler/pause',
    summary: 'Pause new claims; active runs continue',
    body: SchedulerBody,
    bodyOptional: true,
    invalid: 422,
    replies: { 200: SchedulerReply },
    with: [undo({ by: 'action', path: '/api/scheduler/resume' }), cli('scheduler pause', { view: schedulerItem })],
    handle: async (self, { actor, body }) => {
      await self.scheduler.pause(whoOf(actor), body?.reason)
      return ok({ scheduler: self.scheduler.toWire() })
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
    with: [undo({ by: 'action', path: '/api/scheduler/pause' }), cli('scheduler resume', { view: schedulerItem })],
    handle: async (self, { actor, body }) => {
      await self.scheduler.resume(whoOf(actor), body?.reason)
      return ok({ scheduler: self.scheduler.toWire() })
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
      undo({ by: 'action', path: '/api/scheduler/resume' }),
      cli('scheduler drain', {
        view: {
          item: '',
          fields: [
            { header: 'Drained', path: 'completed' },
            { header: 'Remaining claims', path: 'remaining_claims' },
            { header: 'Timed out', path: 'timed_out' },
            { header: 'Paused', path: 'scheduler.paused' },
          ],
        },
      }),
    ],
    handle: async (self, { actor, body, signal }) => ok(await self.drain(whoOf(actor), body ?? {}, signal)),
  }),
  route({
    method: 'GET',
    path: '/api/scheduler/backlog',
    summary: 'List queued runs in claim order, with the status of their tasks',
    query: BacklogQuery,
    invalid: 422,
    replies: { 200: BacklogReply },
    with: [
      describe('Task scheduler', { errors: [410] }),
      cli('scheduler backlog', {
        view: {
          rows: 'backlog.runs',
          columns: [
            { header: 'RUN', path: 'run.id' },
            { header: 'TASK', path: 'task.id' },
            { header: 'TITLE', path: 'task.title' },
            { header: 'PRIORITY', path: 'task.priority' },
            { header: 'QUEUED', path: 'run.queued_at', as: 'ago' },
            { header: 'TASK STATUS', path: 'task.status' },
          ],
          empty: 'no queued runs',
        },
      }),
    ],
    handle: async (self, { query }) => ok({ backlog: await self.backlog(query) }),
  }),
]
