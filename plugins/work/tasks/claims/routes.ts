import { cli, describe, runsCode, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { noContent, ok, routeOf } from '../../../../kernel/plugin.js'
import {
  AgentRunReply,
  ClaimNextBody,
  ClaimReply,
  CompleteLeaseBody,
  CompleteLeaseReply,
  FailRunBody,
  HeartbeatBody,
  LeaseReply,
  ReleaseBody,
  StartRunBody,
} from '../../../../schemas/tasks.js'
import { AGENT_SESSION } from '../../../access/identity/api.js'
import { DaemonErrors } from '../../../desk/daemon/api.js'
import { SessionErrors } from '../../sessions/api.js'
import { TaskErrors } from '../api.js'
import { BudgetErrors } from '../budgets/errors.js'
import type { TaskService } from '../service.js'
import { WORKING } from '../tools/toolsets.js'
import { AGENT_RUN_ARG, completedItem, leaseItem, runItem } from '../views/columns.js'

// A lease holder changes its own run only. Whatever that triggers was set up by the creator of the tasks.
const route = routeOf<TaskService>(describe('Agent task claims'), runsCode(false))
/** Errors of the session that is to hold the lease. */
const HELD = [
  TaskErrors.task_run_not_found,
  TaskErrors.task_run_conflict,
  TaskErrors.AUTONOMY_SESSION_REQUIRED,
  TaskErrors.AUTONOMY_FOREIGN_RUN,
  TaskErrors.AUTONOMY_NO_ACTIVE_LEASE,
  TaskErrors.AUTONOMY_LEASE_EXPIRED,
]
const { task_invalid, task_result_required, AUTONOMY_CREATED_TASKS_UNKNOWN, AUTONOMY_LEASE_INVALID } = TaskErrors
/** Optional for the agent itself, which its socket identifies. */
const headers = { 'X-Service-Session-ID': { required: false }, 'X-Service-Agent': { required: false } }
const common = {
  method: 'POST',
  headers,
  origins: [AGENT_SESSION],
  durable: true,
  invalid: 422,
} as const

export const claimRoutes = [
  route({
    ...common,
    path: '/api/agent/tasks/claim-next',
    audited: false,
    summary: 'Claim the next run for the calling session',
    body: ClaimNextBody,
    bodyOptional: true,
    replies: { 200: ClaimReply, 204: null },
    with: [
      cli('task next', {
        view: show(ClaimReply, 'claim', [
          { of: 'run.id', header: 'Run' },
          { of: 'task.id', header: 'Task' },
          'task.title',
          { of: 'run.designation.brief', header: 'Part' },
          'run.attempt',
          { of: 'lease.lease_until~time', header: 'Lease expires' },
          { of: 'coordination_channel.id', header: 'Channel' },
        ]),
        done:
          'no run to claim: none is queued, or it waits, or another session holds it. --scope workspace looks in the workspace of ' +
          'the session, --scope global at global tasks',
      }),
      tool('task_run_claim_next', WORKING, {
        description:
          'Claim the next run for this session. Returns the run, its task and the lease with its expiry, or nothing when no run can ' +
          'be claimed. After a claim, call task_run_start, then task_run_heartbeat before each expiry of the lease, and finally ' +
          'task_run_complete, task_run_fail or task_run_release',
        tags: ['work', 'next', 'claim'],
      }),
      throws(
        task_invalid,
        TaskErrors.task_claim_denied,
        AUTONOMY_LEASE_INVALID,
        TaskErrors.AUTONOMY_SESSION_REQUIRED,
        TaskErrors.AUTONOMY_LEASE_ALREADY_HELD,
        TaskErrors.AUTONOMY_WORKSPACE_FULL,
        BudgetErrors.AUTONOMY_BUDGET_EXHAUSTED,
        BudgetErrors.AUTONOMY_BUDGET_UNMEASURED,
        SessionErrors.session_journal_damaged,
        DaemonErrors.draining,
        DaemonErrors.home_held,
      ),
    ],
    handle: async (service, request) => {
      const { session, who } = service.caller(request.actor, request.headers)
      const claim = await service.claims.next(session, who, request.body ?? {}, request)
      return claim ? ok({ claim }) : noContent()
    },
  }),
  route({
    ...common,
    path: '/api/agent/tasks/{run_id}/start',
    audited: false,
    summary: 'Mark a claimed run as running',
    body: StartRunBody,
    bodyOptional: true,
    replies: { 200: AgentRunReply },
    with: [
      cli('task begin', { args: [AGENT_RUN_ARG], view: runItem }),
      tool('task_run_start', WORKING),
      throws(...HELD),
    ],
    handle: async (service, { actor, headers, params }) => {
      const { session, who } = service.caller(actor, headers)
      return ok({ run: await service.leases.start(session, who, params.run_id) })
    },
  }),
  route({
    ...common,
    path: '/api/agent/tasks/{run_id}/heartbeat',
    audited: false,
    summary: 'Renew the lease of a claimed run',
    body: HeartbeatBody,
    bodyOptional: true,
    essential: true,
    replies: { 200: LeaseReply },
    with: [
      cli('task heartbeat', { args: [AGENT_RUN_ARG], view: leaseItem }),
      tool('task_run_heartbeat', WORKING),
      throws(...HELD, AUTONOMY_LEASE_INVALID),
    ],
    handle: async (service, { actor, headers, params, body }) => {
      const { session, who } = service.caller(actor, headers)
      return ok({ lease: await service.leases.heartbeat(session, who, params.run_id, body?.lease_seconds) })
    },
  }),
  route({
    ...common,
    path: '/api/agent/tasks/{run_id}/complete',
    audited: false,
    summary: 'Complete a claimed run',
    body: CompleteLeaseBody,
    bodyOptional: true,
    essential: true,
    replies: { 200: CompleteLeaseReply },
    with: [
      cli('task complete', { args: [AGENT_RUN_ARG], view: completedItem }),
      tool('task_run_complete', WORKING, { tags: ['done'] }),
      throws(...HELD, task_invalid, task_result_required, AUTONOMY_CREATED_TASKS_UNKNOWN, AUTONOMY_LEASE_INVALID),
    ],
    handle: async (service, request) => {
      const { session, who } = service.caller(request.actor, request.headers)
      const { params, body = {} } = request
      return ok(await service.completing.complete(session, who, params.run_id, body, request))
    },
  }),
  route({
    ...common,
    path: '/api/agent/tasks/{run_id}/fail',
    audited: false,
    summary: 'Fail a claimed run',
    body: FailRunBody,
    essential: true,
    replies: { 200: LeaseReply },
    with: [
      cli('task fail', { args: [AGENT_RUN_ARG], view: leaseItem }),
      tool('task_run_fail', WORKING),
      throws(...HELD, task_invalid),
    ],
    handle: async (service, { actor, headers, params, body }) => {
      const { session, who } = service.caller(actor, headers)
      return ok({ lease: await service.leases.fail(session, who, params.run_id, body) })
    },
  }),
  route({
    ...common,
    path: '/api/agent/tasks/{run_id}/release',
    audited: false,
    summary: 'Release a claimed run back to the queue',
    body: ReleaseBody,
    bodyOptional: true,
    essential: true,
    replies: { 200: LeaseReply },
    with: [
      cli('task release', { args: [AGENT_RUN_ARG], view: leaseItem }),
      tool('task_run_release', WORKING),
      throws(...HELD, task_invalid),
    ],
    handle: async (service, { actor, headers, params, body }) => {
      const { session, who } = service.caller(actor, headers)
      return ok({ lease: await service.leases.release(session, who, params.run_id, body ?? {}) })
    },
  }),
]
