import { cli, tool } from '../../../../kernel/kit/annotations/index.js'
import { ok, type Route, streamed } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { groupByTurn, openStream, readEvents, readTranscript } from '../read/reading.js'
import type { SessionsService } from '../service.js'
import { healthFields, statusFields } from '../views.js'
import { find, id, ONE, reading, route } from './place.js'

/** Routes that read one session in its workspace. */
export const readingRoutes: readonly Route<SessionsService>[] = [
  reading({
    method: 'GET',
    path: ONE,
    origins: ['agent_session'],
    with: [tool('session_info', ['sessions'])],
    summary: 'Show a session',
    query: schemas.GetSessionQuery,
    replies: { 200: schemas.SessionReply },
    handle: (self, { params, query }) =>
      ok({
        session: self.wire.session(self.find(params.session_id, params.workspace_id), query.include_health ?? false),
      }),
  }),
  reading({
    method: 'GET',
    path: `${ONE}/status`,
    origins: ['agent_session'],
    summary: 'Show the current status of a session',
    replies: { 200: schemas.SessionStatusReply },
    with: [
      cli('session status', { args: [id], find, view: { item: '', fields: statusFields } }),
      tool('session_status', ['sessions']),
    ],
    handle: (self, { params }) => {
      const health = self.wire.health(self.find(params.session_id, params.workspace_id))
      const { last_activity_at: _activity, last_presence_at: _presence, last_error: _error, ...status } = health
      return ok(status)
    },
  }),
  reading({
    method: 'GET',
    path: `${ONE}/health`,
    origins: ['agent_session'],
    summary: 'Show the health of a session and its agent',
    replies: { 200: schemas.SessionHealthReply },
    with: [
      cli('session health', { args: [id], find, view: { item: 'health', fields: healthFields } }),
      tool('session_health', ['sessions']),
    ],
    handle: (self, { params }) => ok({ health: self.wire.health(self.find(params.session_id, params.workspace_id)) }),
  }),
  route({
    method: 'GET',
    path: `${ONE}/events`,
    origins: ['agent_session'],
    with: [tool('session_events', ['sessions'])],
    summary: 'List stored events of a session: the newest matches in ascending order',
    query: schemas.ListSessionEventsQuery,
    replies: { 200: schemas.ListSessionEventsReply },
    handle: async (self, { params, query }) =>
      ok({ events: await readEvents(self.context, self.find(params.session_id, params.workspace_id), query) }),
  }),
  route({
    method: 'GET',
    path: `${ONE}/history`,
    origins: ['agent_session'],
    with: [tool('session_history', ['sessions'])],
    summary: 'List stored events grouped by turn',
    query: schemas.ListSessionEventsQuery,
    replies: { 200: schemas.SessionHistoryReply },
    handle: async (self, { params, query }) =>
      ok({
        history: groupByTurn(await readEvents(self.context, self.find(params.session_id, params.workspace_id), query)),
      }),
  }),
  route({
    method: 'GET',
    path: `${ONE}/transcript`,
    origins: ['agent_session'],
    with: [tool('session_transcript', ['sessions'])],
    summary: 'Read one page of the display transcript',
    query: schemas.TranscriptQuery,
    replies: { 200: schemas.TranscriptReply },
    handle: async (self, { params, query }) =>
      ok(await readTranscript(self.context, self.find(params.session_id, params.workspace_id), query)),
  }),
  route({
    method: 'GET',
    path: `${ONE}/stream`,
    origins: ['agent_session'],
    summary: 'Stream session events or transcript changes (server-sent events)',
    query: schemas.SessionStreamQuery,
    headers: { 'Last-Event-ID': { required: false } },
    replies: { 200: schemas.SessionStreamFrames },
    contentType: 'text/event-stream',
    frames: schemas.SessionStreamFrame,
    handle: async (self, { params, query, headers, signal }) => {
      const row = self.find(params.session_id, params.workspace_id)
      return streamed(await openStream(self.context, row, query, headers['last-event-id'], signal))
    },
  }),
]
