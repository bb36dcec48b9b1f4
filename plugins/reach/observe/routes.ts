import { describe, throws } from '../../../kernel/kit/annotations/index.js'
import { ok, routeOf, streamed } from '../../../kernel/plugin.js'
import { LogEvent, LogsFrame, LogsQuery, LogsReply, LogsStreamQuery } from '../../../schemas/daemon/logs.js'
import { OverviewQuery, OverviewReply } from '../../../schemas/observe.js'
import { REFERENCE_ERRORS } from '../../desk/workspaces/api.js'
import type { ObserveService } from './service.js'

const route = routeOf<ObserveService>(describe('Overview', { errors: [410] }))
const logs = routeOf<ObserveService>(describe('Logs'), throws(...REFERENCE_ERRORS))

export const routes = [
  route({
    method: 'GET',
    path: '/api/observe/overview',
    summary: 'Show items that need attention, recent runs and their usage',
    query: OverviewQuery,
    invalid: 422,
    replies: { 200: OverviewReply },
    with: [throws(...REFERENCE_ERRORS)],
    handle: async (service, { actor, query }) => ok({ overview: await service.overview(actor, query) }),
  }),
  logs({
    method: 'GET',
    path: '/api/logs',
    summary: 'List events of the daemon by type, session, actor and time',
    query: LogsQuery,
    replies: { 200: LogsReply },
    handle: async (service, { query }) => ok(await service.logs(query)),
  }),
  logs({
    method: 'GET',
    path: '/api/logs/stream',
    summary: 'Follow events of the daemon',
    query: LogsStreamQuery,
    headers: { 'Last-Event-ID': { required: false } },
    contentType: 'text/event-stream',
    replies: { 200: LogEvent },
    frames: LogsFrame,
    handle: async (service, { query, headers, signal }) =>
      streamed(await service.logStream(query, headers['last-event-id'], signal)),
  }),
]
