import { describe, tool } from '../../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../../kernel/kit/collection.js'
import { ok, type Route } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { undo } from '../../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { SessionErrors } from '../api.js'
import { createFromBody, listSessions } from '../lifecycle/catalog.js'
import { CREATE_ERRORS, GOAL_ERRORS, PARTICIPATION_ERRORS, TURN_ERRORS } from '../refusals.js'
import type { SessionsService } from '../service.js'
import { about, FIELDS, reading } from './common.js'

const session = collectionOf<SessionsService>(about)({
  path: '/api/sessions',
  key: 'session_id',
  noun: 'session',
  one: [schemas.SessionReply, 'session'],
  many: [schemas.ListSessionsReply, 'sessions'],
  show: [
    'id',
    'name',
    { of: 'agent_name', header: 'Agent' },
    'state',
    'badge',
    { of: 'stop_reason', header: 'Reason' },
    { of: 'workspace_path', header: 'Workspace', below: true },
    'updated_at~ago',
  ],
  fields: FIELDS,
  missing: SessionErrors.session_not_found,
})

/** Routes for the session list, and for one session by its ID alone. */
export const catalogRoutes: readonly Route<SessionsService>[] = [
  session.list({
    summary: 'List sessions, filtered and in pages',
    query: schemas.ListSessionsQuery,
    with: [tool('session_list', ['sessions'])],
    throws: [SessionErrors.session_cursor_invalid, ...REFERENCE_ERRORS],
    empty: 'no sessions; start one: svc session new --agent report',
    handle: (service, { query, actor }) => listSessions(service.context, query, actor, service.open),
  }),
  session.create({
    summary: 'Start a session',
    command: false,
    with: [
      undo({ by: 'never', why: 'the effects of the session are not undone; stop it: svc session stop' }),
      describe('Sessions', { errors: [410] }),
      tool('session_create', ['sessions']),
    ],
    throws: [
      ...REFERENCE_ERRORS,
      ...CREATE_ERRORS,
      ...PARTICIPATION_ERRORS,
      SessionErrors.workspace_choice,
      SessionErrors.provider_fixed,
      SessionErrors.sandbox_unavailable,
      // Of its first prompt.
      ...TURN_ERRORS,
      ...GOAL_ERRORS,
      SessionErrors.prompt_text_missing,
    ],
    body: schemas.CreateSessionBody,
    handle: async (service, { body, actor, id: cause }) => {
      const by = { ...actor, cause: actor.cause ?? cause }
      const { id } = await createFromBody(service.context, body, by)
      if (body.prompt !== undefined) await service.prompting.submit(id, { text: body.prompt }, by)
      return { session: service.wire.session(service.find(id)) }
    },
  }),
  session.get({
    summary: 'Find a session without its workspace',
    command: 'session info',
    origins: ['agent_session'],
    query: schemas.GetSessionQuery,
    handle: (service, { params, query }) => ({
      session: service.wire.session(service.find(params.session_id), query.include_health ?? false),
    }),
  }),
  reading({
    method: 'GET',
    path: '/api/sessions/{session_id}/owner',
    origins: ['agent_session'],
    summary: 'Show which workspace owns a session',
    replies: { 200: schemas.SessionOwnerReply },
    handle: (service, { params }) => {
      const row = service.find(params.session_id)
      return ok({
        session_id: row.id,
        workspace_id: row.workspace_id,
        workspace_name: service.context.kernel.needs.workspaces.get(row.workspace_id)?.name ?? row.workspace_id,
      })
    },
  }),
]
