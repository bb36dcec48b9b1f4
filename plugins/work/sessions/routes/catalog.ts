import { cli, describe, tool } from '../../../../kernel/kit/annotations/index.js'
import { created, ok, type Route, routeOf } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { undo } from '../../../desk/changes/api.js'
import type { SessionsService } from '../service.js'
import { area, fields, id } from './place.js'

const route = routeOf<SessionsService>()

/** Routes over all sessions, and over one by its id alone. */
export const catalogRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'GET',
    path: '/api/sessions',
    summary: 'List sessions, filtered and in pages',
    query: schemas.ListSessionsQuery,
    replies: { 200: schemas.ListSessionsReply },
    with: [
      describe(area, { errors: [410] }),
      cli('session list', {
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
      }),
      tool('session_list', ['sessions']),
    ],
    handle: async (self, { query, actor }) => ok(await self.list(query, actor)),
  }),
  route({
    method: 'POST',
    path: '/api/sessions',
    with: [
      undo({ by: 'never', why: 'what a session has done stays done; stop it: svc session stop' }),
      describe(area, { errors: [410] }),
      tool('session_create', ['sessions']),
    ],
    summary: 'Start a session',
    body: schemas.CreateSessionBody,
    replies: { 201: schemas.SessionReply },
    handle: async (self, { body, actor, id: cause }) =>
      created({ session: await self.createFrom(body, { ...actor, cause: actor.cause ?? cause }) }),
  }),
  route({
    method: 'GET',
    path: '/api/sessions/{session_id}',
    origins: ['agent_session'],
    summary: 'Find a session without its workspace',
    query: schemas.GetSessionQuery,
    replies: { 200: schemas.SessionReply },
    with: [describe(area), cli('session info', { args: [id], view: { item: 'session', fields } })],
    handle: (self, { params, query }) =>
      ok({ session: self.wire(self.find(params.session_id), query.include_health ?? false) }),
  }),
  route({
    method: 'GET',
    path: '/api/sessions/{session_id}/owner',
    origins: ['agent_session'],
    with: [describe(area)],
    summary: 'Show which workspace owns a session',
    replies: { 200: schemas.SessionOwnerReply },
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
