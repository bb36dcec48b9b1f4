import { cli, describe, runsCode, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { created, ok, routeOf } from '../../../../kernel/plugin.js'
import {
  ListReviewsQuery,
  RequestReviewBody,
  ReviewReply,
  ReviewRequestReply,
  ReviewsReply,
  RouteReviewBody,
  VerdictBody,
  VerdictReply,
} from '../../../../schemas/tasks.js'
import { AGENT_SESSION } from '../../../access/identity/api.js'
import { TaskErrors } from '../api.js'
import { READING, RESERVING } from '../routing.js'
import type { TaskService } from '../service.js'
import { RUN_ARG, TASK_ARG } from '../views/columns.js'
import { sessionOf, whoOf } from '../who.js'
import { ReviewErrors } from './errors.js'

const route = routeOf<TaskService>(describe('Task reviews'))
const REVIEW_ARG = { name: 'id', in: 'path', summary: 'review ID, ID prefix or @last' } as const
const headers = { 'X-Service-Session-ID': { required: false }, 'X-Service-Agent': { required: false } } as const
const { task_review_not_found, task_review_conflict, task_review_invalid, task_review_not_due } = ReviewErrors
/** Errors of assigning a review to a session. */
const ASSIGNING = throws(
  task_review_not_found,
  task_review_conflict,
  ReviewErrors.task_review_foreign,
  ReviewErrors.task_review_own_work,
  TaskErrors.AUTONOMY_SESSION_REQUIRED,
)
const rows = show(
  ReviewsReply,
  'reviews',
  [
    { of: 'review_id', header: 'Review' },
    { of: 'run_id', header: 'Run' },
    { of: 'review_round', header: 'Round' },
    'status',
    'outcome',
    { of: 'reviewer_agent_name', header: 'Reviewer' },
    'deadline_at~ago',
    { of: 'reason', below: true },
  ],
  { empty: 'no reviews. Request one: svc task review request <run-id>' },
)
const item = show(ReviewReply, 'review', [
  'review_id',
  'task_id',
  'run_id',
  { of: 'review_round', header: 'Round' },
  'status',
  'outcome',
  'reason',
  { of: 'next_round_guidance', header: 'Guidance' },
  { of: 'reviewer_agent_name', header: 'Reviewer' },
  { of: 'reviewer_session_id', header: 'Reviewer session' },
  'deadline_at~time',
])

export const reviewRoutes = [
  route({
    method: 'GET',
    path: '/api/tasks/{id}/reviews',
    summary: 'List the reviews of a task, newest first',
    query: ListReviewsQuery,
    origins: [AGENT_SESSION],
    replies: { 200: ReviewsReply },
    with: [
      cli('task review list', { args: [TASK_ARG], view: rows }),
      tool('task_reviews', ['tasks']),
      throws(TaskErrors.task_not_found, ...READING),
    ],
    handle: (service, { actor, params, query }) =>
      service.reading(actor, params.id, ({ reviews }) => ok({ reviews: reviews.list({ task: params.id }, query) })),
  }),
  route({
    method: 'GET',
    path: '/api/task-runs/{id}/reviews',
    summary: 'List the reviews of a run, newest first',
    query: ListReviewsQuery,
    origins: [AGENT_SESSION],
    replies: { 200: ReviewsReply },
    with: [cli('task run reviews', { args: [RUN_ARG], view: rows }), throws(TaskErrors.task_run_not_found, ...READING)],
    handle: (service, { actor, params, query }) =>
      service.readingRun(actor, params.id, ({ reviews }) => ok({ reviews: reviews.list({ run: params.id }, query) })),
  }),
  route({
    method: 'POST',
    path: '/api/task-runs/{id}/reviews',
    audited: false,
    summary: 'Request a review of a run that has ended',
    body: RequestReviewBody,
    with: [
      runsCode(false),
      throws(TaskErrors.task_run_not_found, task_review_not_found, task_review_invalid, task_review_not_due),
    ],
    replies: { 200: ReviewRequestReply, 201: ReviewRequestReply },
    handle: async (service, { actor, params, body }) => {
      const reply = await service.reviews.request(whoOf(actor), params.id, body)
      return reply.created ? created(reply) : ok(reply)
    },
  }),
  route({
    method: 'GET',
    path: '/api/task-reviews/{id}',
    summary: 'Show a review',
    origins: [AGENT_SESSION],
    replies: { 200: ReviewReply },
    with: [
      cli('task review show', { args: [REVIEW_ARG], view: item }),
      tool('task_review_info', ['tasks']),
      throws(task_review_not_found, ...READING),
    ],
    handle: (service, { actor, params }) =>
      service.readingReview(actor, params.id, ({ reviews }) => ok({ review: reviews.show(params.id) })),
  }),
  route({
    method: 'POST',
    path: '/api/task-reviews/{id}/route',
    audited: false,
    summary: 'Assign a review to a session',
    body: RouteReviewBody,
    replies: { 200: ReviewReply },
    with: [cli('task review route', { args: [REVIEW_ARG], view: item }), runsCode(false), ASSIGNING],
    handle: async (service, { actor, params, body }) =>
      ok({ review: await service.reviews.route(whoOf(actor), params.id, body.session_id) }),
  }),
  route({
    method: 'POST',
    path: '/api/task-reviews/{id}/start',
    audited: false,
    summary: 'Start a review as the calling session',
    headers,
    origins: [AGENT_SESSION],
    replies: { 200: ReviewReply },
    with: [
      cli('task review start', { args: [REVIEW_ARG], view: item }),
      tool('task_review_start', ['tasks']),
      runsCode(false),
      ASSIGNING,
    ],
    handle: async (service, { actor, headers, params }) => {
      const { session, who } = service.caller(actor, headers)
      service.visible(who, service.reviews.show(params.id).task_id)
      return ok({ review: await service.reviews.start(who, params.id, session) })
    },
  }),
  route({
    method: 'POST',
    path: '/api/task-reviews/{id}/cancel',
    audited: false,
    summary: 'Cancel a review',
    essential: true,
    replies: { 200: ReviewReply },
    with: [
      cli('task review cancel', { args: [REVIEW_ARG], view: item }),
      runsCode(false),
      throws(task_review_not_found, task_review_conflict),
    ],
    handle: async (service, { actor, params }) => ok({ review: await service.reviews.cancel(whoOf(actor), params.id) }),
  }),
  route({
    method: 'POST',
    path: '/api/task-reviews/{id}/verdict',
    audited: false,
    with: [
      tool('task_review_verdict', ['tasks']),
      ASSIGNING,
      // A rejection queues the next run.
      throws(task_review_invalid, ...RESERVING),
    ],
    summary: 'Record the verdict of a review',
    body: VerdictBody,
    headers,
    origins: [AGENT_SESSION],
    replies: { 200: VerdictReply },
    handle: async (service, { actor, headers, params, body }) => {
      const isAgent = sessionOf(actor) !== undefined || headers['x-service-session-id'] !== undefined
      const { session, who } = isAgent ? service.caller(actor, headers) : { session: undefined, who: whoOf(actor) }
      service.visible(who, service.reviews.show(params.id).task_id)
      return ok(await service.reviews.verdict(who, params.id, body, session))
    },
  }),
]
