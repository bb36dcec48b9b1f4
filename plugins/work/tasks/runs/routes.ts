import { cli, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { created, ok } from '../../../../kernel/plugin.js'
import {
  AllRunsReply,
  AttachSessionBody,
  BulkRunsBody,
  BulkRunsReply,
  CompleteRunBody,
  ExecutionBody,
  FailRunBody,
  ForceFailBody,
  ListAllRunsQuery,
  ListTaskRunsQuery,
  MetadataBody,
  ReasonBody,
  StartRunBody,
  SuccessorReply,
  TaskRunReply,
  TaskRunsReply,
} from '../../../../schemas/tasks.js'
import { AGENT_SESSION } from '../../../access/identity/api.js'
import { undo } from '../../../desk/changes/api.js'
import { DaemonErrors } from '../../../desk/daemon/api.js'
import { TaskErrors } from '../api.js'
import { FOLLOWING, QUEUEING, RUN, readingTask, route } from '../routing.js'
import { allRunRows, RUN_ARG, runItem, runRows, TASK_ARG } from '../views/columns.js'
import { whoOf } from '../who.js'

const invalid = 422
const LEASE_ENDED = undo({
  by: 'never',
  why: 'an ended lease is not restored; check the task: svc task run show',
})
const { task_invalid, task_run_leased, task_reason_required, task_force_refused, task_force_limit } = TaskErrors
const FORCED = throws(...RUN, task_force_refused, task_force_limit, task_invalid)
const ENDED = throws(...RUN, task_run_leased, task_invalid)
const results = show(BulkRunsReply, 'results', [
  { of: 'run_id', header: 'Run' },
  { of: 'ok', header: 'OK' },
  'run.status',
  'error.error',
])

export const runRoutes = [
  route({
    method: 'GET',
    path: '/api/task-runs',
    summary: 'List the runs of all tasks, newest first',
    origins: [AGENT_SESSION],
    query: ListAllRunsQuery,
    replies: { 200: AllRunsReply },
    with: [cli('task run all', { view: allRunRows })],
    handle: (service, { actor, query }) => ok(service.history.runs(actor, query)),
  }),
  readingTask({
    method: 'GET',
    path: '/api/tasks/{id}/runs',
    summary: 'List the runs of a task, newest first',
    origins: [AGENT_SESSION],
    query: ListTaskRunsQuery,
    invalid,
    replies: { 200: TaskRunsReply },
    with: [cli('task run list', { args: [TASK_ARG], view: runRows }), tool('task_runs', ['tasks'])],
    handle: (service, { actor, params, query }) =>
      service.reading(actor, params.id, views => ok({ runs: service.listRuns(views, params.id, query) })),
  }),
  route({
    method: 'POST',
    path: '/api/tasks/{id}/runs',
    audited: false,
    summary: 'Queue a run of a task under its own idempotency key',
    body: ExecutionBody,
    bodyOptional: true,
    invalid,
    replies: { 201: TaskRunReply },
    with: [
      cli('task run enqueue', { args: [TASK_ARG], view: runItem }),
      throws(...QUEUEING, TaskErrors.task_approval_pending),
    ],
    handle: async (service, { actor, params, body }) => {
      const { run, existing_run } = await service.execution.enqueue(whoOf(actor), params.id, body ?? {})
      return created({ run, existing_run })
    },
  }),
  route({
    method: 'POST',
    path: '/api/task-runs/{id}/attach-session',
    audited: false,
    summary: 'Bind a session to a run without a lease',
    body: AttachSessionBody,
    invalid,
    replies: { 200: TaskRunReply },
    with: [
      cli('task run attach-session', { args: [RUN_ARG, { name: 'session_id' }], view: runItem }),
      throws(
        ...RUN,
        task_run_leased,
        TaskErrors.task_conflict,
        TaskErrors.AUTONOMY_SESSION_REQUIRED,
        DaemonErrors.draining,
        DaemonErrors.home_held,
      ),
    ],
    handle: async (service, { actor, params, body }) =>
      ok({ run: await service.runs.attach(whoOf(actor), params.id, body.session_id) }),
  }),
  route({
    method: 'POST',
    path: '/api/task-runs/{id}/start',
    audited: false,
    summary: 'Mark a run without a lease as running',
    body: StartRunBody,
    bodyOptional: true,
    invalid,
    replies: { 200: TaskRunReply },
    with: [cli('task run start', { args: [RUN_ARG], view: runItem }), throws(...RUN, task_run_leased)],
    handle: async (service, { actor, params }) => ok({ run: await service.runs.start(whoOf(actor), params.id) }),
  }),
  route({
    method: 'POST',
    path: '/api/task-runs/{id}/complete',
    audited: false,
    summary: 'Complete a running run that has no lease',
    body: CompleteRunBody,
    bodyOptional: true,
    invalid,
    essential: true,
    replies: { 200: TaskRunReply },
    with: [cli('task run complete', { args: [RUN_ARG], view: runItem }), ENDED],
    handle: async (service, { actor, params, body }) =>
      ok({ run: await service.runs.complete(whoOf(actor), params.id, body ?? {}) }),
  }),
  route({
    method: 'POST',
    path: '/api/task-runs/{id}/fail',
    audited: false,
    summary: 'Fail a starting or running run that has no lease',
    body: FailRunBody,
    invalid,
    essential: true,
    replies: { 200: TaskRunReply },
    with: [ENDED],
    handle: async (service, { actor, params, body }) =>
      ok({ run: await service.runs.fail(whoOf(actor), params.id, body) }),
  }),
  route({
    method: 'POST',
    path: '/api/task-runs/{id}/cancel',
    audited: false,
    summary: 'Cancel a run and revoke its lease',
    body: ReasonBody,
    bodyOptional: true,
    invalid,
    essential: true,
    replies: { 200: TaskRunReply },
    with: [
      cli('task run cancel', { args: [RUN_ARG], view: runItem }),
      tool('task_run_cancel', ['tasks'], { visibility: 'operator' }),
      throws(...RUN, task_invalid),
    ],
    handle: async (service, { actor, params, body }) =>
      ok({ run: await service.runs.cancel(whoOf(actor), params.id, body ?? {}) }),
  }),
  route({
    method: 'POST',
    path: '/api/runs/{id}/release',
    summary: 'Force-release a claimed run: revoke its lease and requeue it',
    origins: [AGENT_SESSION],
    body: ReasonBody,
    bodyOptional: true,
    invalid,
    replies: { 200: TaskRunReply },
    with: [LEASE_ENDED, cli('task run release', { args: [RUN_ARG], view: runItem }), FORCED],
    handle: async (service, { actor, params, body }) =>
      ok({ run: await service.runs.forceRelease(whoOf(actor), params.id, body ?? {}) }),
  }),
  route({
    method: 'POST',
    path: '/api/runs/{id}/fail',
    summary: 'Force-fail a queued or claimed run and revoke its lease',
    origins: [AGENT_SESSION],
    body: ForceFailBody,
    invalid,
    replies: { 200: TaskRunReply },
    with: [LEASE_ENDED, cli('task run fail', { args: [RUN_ARG], view: runItem }), FORCED, throws(task_reason_required)],
    handle: async (service, { actor, params, body }) =>
      ok({ run: await service.runs.forceFail(whoOf(actor), params.id, body) }),
  }),
  route({
    method: 'POST',
    path: '/api/runs/{id}/retry',
    summary: 'Retry a failed run: queue a new run linked to it',
    origins: [AGENT_SESSION],
    body: MetadataBody,
    bodyOptional: true,
    invalid,
    replies: { 201: SuccessorReply },
    with: [
      LEASE_ENDED,
      cli('task retry', { args: [RUN_ARG], view: runItem }),
      tool('task_run_retry', ['tasks'], { visibility: 'operator' }),
      throws(...FOLLOWING),
    ],
    handle: async (service, { actor, params, body }) =>
      created(await service.runs.retry(whoOf(actor), params.id, body?.metadata)),
  }),
  route({
    method: 'POST',
    path: '/api/runs/{id}/recover',
    summary: 'Recover a run that needs attention: queue a new run in its place',
    origins: [AGENT_SESSION],
    body: ReasonBody,
    bodyOptional: true,
    invalid,
    replies: { 201: SuccessorReply },
    with: [
      LEASE_ENDED,
      cli('task run recover', { args: [RUN_ARG], view: runItem }),
      tool('task_run_recover', ['tasks'], { visibility: 'operator' }),
      throws(...FOLLOWING),
    ],
    handle: async (service, { actor, params, body }) =>
      created(await service.runs.recover(whoOf(actor), params.id, body ?? {})),
  }),
  ...(['release', 'fail'] as const).map(verb =>
    route({
      method: 'POST',
      path: `/api/runs/bulk/${verb}`,
      summary: verb === 'release' ? 'Force-release several claimed runs' : 'Force-fail several queued or claimed runs',
      origins: [AGENT_SESSION],
      body: BulkRunsBody,
      invalid,
      replies: { 200: BulkRunsReply },
      with: [
        undo({ by: 'never', why: 'an ended lease is not restored; check the tasks: svc task list' }),
        cli(`task run bulk ${verb}`, { view: results }),
        throws(task_invalid, task_force_refused, task_reason_required),
      ],
      handle: async (service, { actor, body }) =>
        ok(await service.runs.bulk(whoOf(actor), verb === 'release' ? 'forceRelease' : 'forceFail', body)),
    }),
  ),
]
