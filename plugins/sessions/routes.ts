// Over 300 lines: one table of all routes of the plugin, which reads best in one piece.
import { accepted, created, noContent, ok, type Route, routeOf, streamed } from '../../kernel/plugin.js'
import * as schemas from '../../schemas/sessions.js'
import { promptStream, UI_STREAM_HEADERS } from './read/ui-stream.js'
import type { SessionsService } from './service.js'
import type { PromptAnswer } from './turn/prompting.js'

const route = routeOf<SessionsService>()
const area = 'Sessions'
/** The path of one session in its workspace. */
export const ONE = '/api/workspaces/{workspace_id}/sessions/{session_id}'

/** The workspace of a session is found, never typed. */
export const find = { workspace_id: { path: '/api/sessions/{session_id}/owner', pick: 'workspace_id' } } as const
export const id = { name: 'session_id', in: 'path' } as const

const fields = [
  { header: 'ID', path: 'id' },
  { header: 'Name', path: 'name' },
  { header: 'Agent', path: 'agent_name' },
  { header: 'Workspace', path: 'workspace_path' },
  { header: 'State', path: 'state' },
  { header: 'Badge', path: 'badge' },
  { header: 'Stopped because', path: 'stop_reason' },
  { header: 'Detail', path: 'stop_detail' },
  { header: 'Failure', path: 'failure.summary' },
  { header: 'Crash bundle', path: 'failure.crash_bundle_path' },
  { header: 'Model', path: 'model' },
  { header: 'Doing', path: 'activity.last_activity_kind' },
  { header: 'Tool', path: 'activity.current_tool' },
  { header: 'Created', path: 'created_at', as: 'time' },
  { header: 'Updated', path: 'updated_at', as: 'ago' },
] as const

/** Routes over all sessions, and over one by its id alone. */
const catalog = [
  route({
    method: 'GET',
    path: '/api/sessions',
    area,
    summary: 'Session catalog with filters and paging',
    query: schemas.ListSessionsQuery,
    replies: { 200: schemas.ListSessionsReply },
    errors: [400, 404, 410, 500, 503],
    cli: {
      path: 'session list',
      view: {
        rows: 'sessions',
        columns: [
          { header: 'ID', path: 'id' },
          { header: 'Name', path: 'name' },
          { header: 'Agent', path: 'agent_name' },
          { header: 'State', path: 'state' },
          { header: 'Badge', path: 'badge' },
          { header: 'Reason', path: 'stop_reason' },
          { header: 'Workspace', path: 'workspace_path', below: true },
          { header: 'Updated', path: 'updated_at', as: 'ago' },
        ],
        empty: 'no sessions; start one: svc session new --agent report',
      },
    },
    handle: async (self, { query, actor }) => ok(await self.list(query, actor)),
  }),
  route({
    method: 'POST',
    path: '/api/sessions',
    area,
    summary: 'Start a session',
    body: schemas.CreateSessionBody,
    replies: { 201: schemas.SessionReply },
    errors: [400, 404, 409, 500, 503],
    handle: async (self, { body, actor, id: cause }) =>
      created({ session: await self.createFrom(body, { ...actor, cause: actor.cause ?? cause }) }),
  }),
  route({
    method: 'GET',
    path: '/api/sessions/{session_id}',
    area,
    summary: 'Find a session without its workspace',
    query: schemas.GetSessionQuery,
    replies: { 200: schemas.SessionReply },
    errors: [404, 500],
    cli: { path: 'session info', args: [id], view: { item: 'session', fields } },
    handle: (self, { params, query }) =>
      ok({ session: self.wire(self.find(params.session_id), query.include_health ?? false) }),
  }),
  route({
    method: 'GET',
    path: '/api/sessions/{session_id}/owner',
    area,
    summary: 'Which workspace owns a session',
    replies: { 200: schemas.SessionOwnerReply },
    errors: [404, 500],
    handle: (self, { params }) => {
      const row = self.find(params.session_id)
      return ok({
        session_id: row.id,
        workspace_id: row.workspace_id,
        workspace_name: self.workspaceName(row.workspace_id),
      })
    },
  }),
]

/** Routes over one session in its workspace that read. */
const reading = [
  route({
    method: 'GET',
    path: ONE,
    area,
    summary: 'One session',
    query: schemas.GetSessionQuery,
    replies: { 200: schemas.SessionReply },
    errors: [404, 500],
    handle: (self, { params, query }) =>
      ok({ session: self.wire(self.find(params.session_id, params.workspace_id), query.include_health ?? false) }),
  }),
  route({
    method: 'GET',
    path: `${ONE}/status`,
    area,
    summary: 'Compact session status',
    replies: { 200: schemas.SessionStatusReply },
    errors: [403, 404, 500],
    cli: {
      path: 'session status',
      args: [id],
      find,
      view: {
        item: '',
        fields: [
          { header: 'ID', path: 'session_id' },
          { header: 'Agent', path: 'agent_name' },
          { header: 'State', path: 'state' },
          { header: 'Health', path: 'health' },
          { header: 'Prompt running', path: 'active_prompt' },
          { header: 'Not to be woken', path: 'ineligibility_reason' },
          { header: 'Updated', path: 'updated_at', as: 'ago' },
        ],
      },
    },
    handle: (self, { params }) => {
      const health = self.health(self.find(params.session_id, params.workspace_id))
      const { last_activity_at: _activity, last_presence_at: _presence, last_error: _error, ...status } = health
      return ok(status)
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/health`,
    area,
    summary: 'Session health',
    replies: { 200: schemas.SessionHealthReply },
    errors: [403, 404, 500],
    cli: {
      path: 'session health',
      args: [id],
      find,
      view: {
        item: 'health',
        fields: [
          { header: 'ID', path: 'session_id' },
          { header: 'Agent', path: 'agent_name' },
          { header: 'State', path: 'state' },
          { header: 'Health', path: 'health' },
          { header: 'Prompt running', path: 'active_prompt' },
          { header: 'Can be attached', path: 'attachable' },
          { header: 'Can be woken', path: 'eligible_for_wake' },
          { header: 'Why not', path: 'ineligibility_reason' },
          { header: 'Last error', path: 'last_error' },
          { header: 'Last activity', path: 'last_activity_at', as: 'ago' },
          { header: 'Updated', path: 'updated_at', as: 'ago' },
        ],
      },
    },
    handle: (self, { params }) => ok({ health: self.health(self.find(params.session_id, params.workspace_id)) }),
  }),
  route({
    method: 'GET',
    path: `${ONE}/events`,
    area,
    summary: 'Stored session events: the newest that match, ascending',
    query: schemas.ListSessionEventsQuery,
    replies: { 200: schemas.ListSessionEventsReply },
    errors: [400, 404, 500],
    handle: async (self, { params, query }) =>
      ok({ events: await self.events(self.find(params.session_id, params.workspace_id), query) }),
  }),
  route({
    method: 'GET',
    path: `${ONE}/history`,
    area,
    summary: 'Stored events grouped by turn',
    query: schemas.ListSessionEventsQuery,
    replies: { 200: schemas.SessionHistoryReply },
    errors: [400, 404, 500],
    handle: async (self, { params, query }) =>
      ok({ history: await self.history(self.find(params.session_id, params.workspace_id), query) }),
  }),
  route({
    method: 'GET',
    path: `${ONE}/transcript`,
    area,
    summary: 'One page of the display transcript',
    query: schemas.TranscriptQuery,
    replies: { 200: schemas.TranscriptReply },
    errors: [400, 404, 500, 503],
    handle: async (self, { params, query }) =>
      ok(await self.transcript(self.find(params.session_id, params.workspace_id), query)),
  }),
  route({
    method: 'GET',
    path: `${ONE}/stream`,
    area,
    summary: 'Live session events or transcript changes (server-sent events)',
    query: schemas.SessionStreamQuery,
    headers: { 'Last-Event-ID': { required: false } },
    replies: { 200: schemas.SessionStreamFrames },
    contentType: 'text/event-stream',
    frames: schemas.SessionStreamFrame,
    errors: [400, 404, 500, 503],
    handle: async (self, { params, query, headers, signal }) => {
      const row = self.find(params.session_id, params.workspace_id)
      return streamed(await self.stream(row, query, headers['last-event-id'], signal))
    },
  }),
]

/** Routes over one session in its workspace that change it. */
const changing = [
  route({
    method: 'PATCH',
    path: ONE,
    area,
    summary: 'Rename a session',
    body: schemas.PatchSessionBody,
    replies: { 200: schemas.SessionDetailReply },
    errors: [400, 404, 500, 503],
    cli: {
      path: 'session rename',
      args: [id, { name: 'name', in: 'body' }],
      find,
      view: { item: 'session', fields: fields.slice(0, 5) },
    },
    handle: async (self, { params, body }) =>
      ok({ session: await self.rename(self.find(params.session_id, params.workspace_id), body.name) }),
  }),
  route({
    method: 'DELETE',
    path: ONE,
    area,
    summary: 'Delete a session: it is stopped first, its history goes',
    essential: true,
    replies: { 204: null },
    errors: [404, 500],
    cli: { path: 'session remove', args: [id], find, done: 'removed {session_id}' },
    handle: async (self, { params }) => {
      await self.remove(self.find(params.session_id, params.workspace_id))
      return noContent()
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/prompt`,
    area,
    summary: 'Send, queue, interrupt with, or steer by a prompt; answered by a stream where one is accepted',
    body: schemas.PromptBody,
    headers: { 'Idempotency-Key': { required: false }, Accept: { required: false } },
    replies: { 200: schemas.PromptReply, 202: schemas.PromptReply },
    frames: schemas.UiStreamFrame,
    errors: [400, 404, 409, 413, 422, 500, 503],
    handle: async (self, { params, body, headers, actor, signal }) => {
      const row = self.find(params.session_id, params.workspace_id)
      const key = body.idempotency_key ?? headers['idempotency-key']
      const request = { ...body, ...(key !== undefined && { idempotency_key: key }) }
      const submit = () => self.prompting.submit(row.id, request, actor)
      if (!headers.accept?.includes('text/event-stream')) return answered(await submit())
      const { answer, frames } = await promptStream(self.context, row, submit, signal)
      return frames ? streamed(frames, UI_STREAM_HEADERS) : answered(answer)
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/prompt/cancel`,
    area,
    summary: 'Cancel the running prompt',
    essential: true,
    replies: { 200: schemas.CancelPromptReply },
    errors: [404, 500],
    cli: { path: 'session cancel', args: [id], find, view: { text: 'outcome' } },
    handle: async (self, { params }) => ok(await self.cancel(self.find(params.session_id, params.workspace_id))),
  }),
  route({
    method: 'POST',
    path: `${ONE}/approve`,
    area,
    summary: 'Answer a permission request',
    essential: true,
    body: schemas.ApproveBody,
    replies: { 200: schemas.ApproveReply },
    errors: [400, 404, 500],
    handle: async (self, { params, body }) => {
      const row = self.find(params.session_id, params.workspace_id)
      const allowed = await self.answer(row, body.request_id, body.turn_id, body.decision)
      return ok({ status: allowed ? 'allowed' : 'rejected' })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/stop`,
    area,
    summary: 'Stop a session',
    essential: true,
    replies: { 204: null },
    errors: [404, 500],
    cli: { path: 'session stop', args: [id], find, done: '{session_id} is stopped' },
    handle: async (self, { params, actor }) => {
      const row = self.find(params.session_id, params.workspace_id)
      await self.stop(row.id, { reason: 'user_canceled', cause: actor.cause })
      return noContent()
    },
  }),
]

const answered = ({ status, prompt }: PromptAnswer) => (status === 200 ? ok({ prompt }) : accepted({ prompt }))

/** All routes of sessions. */
export const sessionRoutes: readonly Route<SessionsService>[] = [...catalog, ...reading, ...changing]
