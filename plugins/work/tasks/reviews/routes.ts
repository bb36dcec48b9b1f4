import { cli, describe, runsCode, tool } from '../../../../kernel/kit/annotations/index.js'
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
import type { TaskService } from '../service.js'
import { RUN_ARG, TASK_ARG } from '../views/columns.js'
import { sessionOf, whoOf } from '../who.js'

const route = routeOf<TaskService>(describe('Task reviews'))
const REVIEW_ARG = { name: 'id', in: 'path', summary: 'review ID, ID prefix or @last' } as const
const headers = { 'X-Service-Session-ID': { required: false }, 'X-Service-Agent': { required: false } } as const
const rows = {
  rows: 'reviews',
  columns: [
    { header: 'REVIEW', path: 'review_id' },
    { header: 'RUN', path: 'run_id' },
    { header: 'ROUND', path: 'review_round' },
    { header: 'STATUS', path: 'status' },
    { header: 'OUTCOME', path: 'outcome' },
    { header: 'REVIEWER', path: 'reviewer_agent_name' },
    { header: 'DEADLINE', path: 'deadline_at', as: 'ago' },
    { header: 'REASON', path: 'reason', below: true },
  ],
  empty: 'no reviews. Request one: svc task review request <run-id>',
} as const
const fields = [
  { header: 'Review', path: 'review_id' },
  { header: 'Task', path: 'task_id' },
  { header: 'Run', path: 'run_id' },
  { header: 'Round', path: 'review_round' },
  { header: 'Status', path: 'status' },
  { header: 'Outcome', path: 'outcome' },
  { header: 'Reason', path: 'reason' },
  { header: 'Guidance', path: 'next_round_guidance' },
  { header: 'Reviewer', path: 'reviewer_agent_name' },
  { header: 'Reviewer session', path: 'reviewer_session_id' },
  { header: 'Deadline', path: 'deadline_at', as: 'time' },
] as const
const item = { item: 'review', fields } as const

export const reviewRoutes = [
  route({
    method: 'GET',
    path: '/api/tasks/{id}/reviews',
    summary: 'List the reviews of a task, newest first',
    query: ListReviewsQuery,
    origins: [AGENT_SESSION],
    replies: { 200: ReviewsReply },
    with: [cli('task review list', { args: [TASK_ARG], view: rows }), tool('task_reviews', ['tasks'])],
    handle: (self, { actor, params, query }) =>
      self.reading(actor, params.id, ({ reviews }) => ok({ reviews: reviews.list({ task: params.id }, query) })),
  }),
  route({
    method: 'GET',
    path: '/api/task-runs/{id}/reviews',
    summary: 'List the reviews of a run, newest first',
    query: ListReviewsQuery,
    origins: [AGENT_SESSION],
    replies: { 200: ReviewsReply },
    with: [cli('task run reviews', { args: [RUN_ARG], view: rows })],
    handle: (self, { actor, params, query }) =>
      self.readingRun(actor, params.id, ({ reviews }) => ok({ reviews: reviews.list({ run: params.id }, query) })),
  }),
  route({
    method: 'POST',
    path: '/api/task-runs/{id}/reviews',
    audited: false,
    summary: 'Request a review of a run that has ended',
    body: RequestReviewBody,
    with: [runsCode(false)],
    replies: { 200: ReviewRequestReply, 201: ReviewRequestReply },
    handle: async (self, { actor, params, body }) => {
      const reply = await self.reviews.request(whoOf(actor), params.id, body)
      return reply.created ? created(reply) : ok(reply)
    },
  }),
  route({
    method: 'GET',
    path: '/api/task-reviews/{id}',
    summary: 'Show a review',
    origins: [AGENT_SESSION],
    replies: { 200: ReviewReply },
    with: [cli('task review show', { args: [REVIEW_ARG], view: item }), tool('task_review_info', ['tasks'])],
    handle: (self, { actor, params }) =>
      self.readingReview(actor, params.id, ({ reviews }) => ok({ review: reviews.show(params.id) })),
  }),
  route({
    method: 'POST',
    path: '/api/task-reviews/{id}/route',
    audited: false,
    summary: 'Assign a review to a session',
    body: RouteReviewBody,
    replies: { 200: ReviewReply },
    with: [cli('task review route', { args: [REVIEW_ARG], view: item }), runsCode(false)],
    handle: async (self, { actor, params, body }) =>
      ok({ review: await self.reviews.route(whoOf(actor), params.id, body.session_id) }),
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
    ],
    handle: async (self, { actor, headers, params }) => {
      const { session, who } = self.caller(actor, headers)
      self.visible(who, self.reviews.show(params.id).task_id)
      return ok({ review: await self.reviews.start(who, params.id, session) })
    },
  }),
  route({
    method: 'POST',
    path: '/api/task-reviews/{id}/cancel',
    audited: false,
    summary: 'Cancel a review',
    essential: true,
    replies: { 200: ReviewReply },
    with: [cli('task review cancel', { args: [REVIEW_ARG], view: item }), runsCode(false)],
    handle: async (self, { actor, params }) => ok({ review: await self.reviews.cancel(whoOf(actor), params.id) }),
  }),
  route({
    method: 'POST',
    path: '/api/task-reviews/{id}/verdict',
    audited: false,
    with: [tool('task_review_verdict', ['tasks'])],
    summary: 'Record the verdict of a review',
    body: VerdictBody,
    headers,
    origins: [AGENT_SESSION],
    replies: { 200: VerdictReply },
    handle: async (self, { actor, headers, params, body }) => {
      const isAgent = sessionOf(actor) !== undefined || headers['x-service-session-id'] !== undefined
      const { session, who } = isAgent ? self.caller(actor, headers) : { session: undefined, who: whoOf(actor) }
      self.visible(who, self.reviews.show(params.id).task_id)
      return ok(await self.reviews.verdict(who, params.id, body, session))
    },
  }),
]
