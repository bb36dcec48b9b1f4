import { cli, tool } from '../../../../kernel/kit/annotations/index.js'
import { ok, type Route, streamed } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { groupByTurn, openStream, readEvents, readTranscript } from '../read/reading.js'
import type { SessionsService } from '../service.js'
import { healthFields, statusFields } from '../views.js'
import { find, id, ONE, reading, readingJournal } from './common.js'

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
    handle: (service, { params, query }) =>
      ok({
        session: service.wire.session(
          service.find(params.session_id, params.workspace_id),
          query.include_health ?? false,
        ),
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
    handle: (service, { params }) => {
      const health = service.wire.health(service.find(params.session_id, params.workspace_id))
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
    handle: (service, { params }) =>
      ok({ health: service.wire.health(service.find(params.session_id, params.workspace_id)) }),
  }),
  readingJournal({
    method: 'GET',
    path: `${ONE}/events`,
    origins: ['agent_session'],
    with: [tool('session_events', ['sessions'])],
    summary: 'List stored events of a session: the newest matches in ascending order',
    query: schemas.ListSessionEventsQuery,
    replies: { 200: schemas.ListSessionEventsReply },
    handle: async (service, { params, query }) =>
      ok({ events: await readEvents(service.context, service.find(params.session_id, params.workspace_id), query) }),
  }),
  readingJournal({
    method: 'GET',
    path: `${ONE}/history`,
    origins: ['agent_session'],
    with: [tool('session_history', ['sessions'])],
    summary: 'List stored events grouped by turn',
    query: schemas.ListSessionEventsQuery,
    replies: { 200: schemas.SessionHistoryReply },
    handle: async (service, { params, query }) =>
      ok({
        history: groupByTurn(
          await readEvents(service.context, service.find(params.session_id, params.workspace_id), query),
        ),
      }),
  }),
  readingJournal({
    method: 'GET',
    path: `${ONE}/transcript`,
    origins: ['agent_session'],
    with: [tool('session_transcript', ['sessions'])],
    summary: 'Read one page of the display transcript',
    query: schemas.TranscriptQuery,
    replies: { 200: schemas.TranscriptReply },
    handle: async (service, { params, query }) =>
      ok(await readTranscript(service.context, service.find(params.session_id, params.workspace_id), query)),
  }),
  readingJournal({
    method: 'GET',
    path: `${ONE}/stream`,
    origins: ['agent_session'],
    summary: 'Stream session events or transcript changes (server-sent events)',
    query: schemas.SessionStreamQuery,
    headers: { 'Last-Event-ID': { required: false } },
    replies: { 200: schemas.SessionStreamFrames },
    contentType: 'text/event-stream',
    frames: schemas.SessionStreamFrame,
    handle: async (service, { params, query, headers, signal }) => {
      const row = service.find(params.session_id, params.workspace_id)
      return streamed(await openStream(service.context, row, query, headers['last-event-id'], signal))
    },
  }),
]
