import { cli, columnsOf, runsCode, show, throws, tool, withTable } from '../../../../kernel/kit/annotations/index.js'
import { noContent, ok, type Route, streamed } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { undo } from '../../../desk/changes/api.js'
import { SessionErrors } from '../api.js'
import { archive, unarchive } from '../attach/archive.js'
import { attach } from '../attach/lease.js'
import { attentionSummary, markSeen } from '../attention/attention.js'
import type { SessionsService } from '../service.js'
import { fields, find, id, ONE, route } from './common.js'
import { archiveUndo } from './undo.js'

const COUNTS = [
  { of: 'needs_you', header: 'Wait for you' },
  { of: 'finished', header: 'Finished unseen' },
] as const
const view = { item: 'session', fields: fields.slice(0, 6) } as const

/** Routes for holding, viewing, attention and archive of sessions. */
export const attentionRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'GET',
    path: '/api/sessions/attention-summary',
    summary: 'Count the sessions that wait for you or finished unseen',
    replies: { 200: schemas.AttentionSummaryReply },
    with: [
      cli('session attention', {
        view: withTable(
          show(schemas.AttentionSummaryReply, '', COUNTS),
          'by_workspace',
          columnsOf<schemas.AttentionSummaryReply['by_workspace'][number]>()([
            { of: 'workspace_id', header: 'Workspace' },
            ...COUNTS,
          ]),
        ),
      }),
    ],
    handle: service => ok(attentionSummary(service.context, service.open.all)),
  }),
  route({
    method: 'GET',
    path: '/api/sessions/catalog-stream',
    summary: 'Stream changes of the session list (server-sent events)',
    headers: { 'Last-Event-ID': { required: false } },
    replies: { 200: schemas.CatalogChange },
    contentType: 'text/event-stream',
    frames: schemas.CatalogFrame,
    handle: (service, { headers, signal }) =>
      streamed(service.context.catalog.frames(headers['last-event-id'], signal)),
  }),
  route({
    method: 'POST',
    path: `${ONE}/attach`,
    audited: false,
    with: [
      runsCode(false),
      throws(
        SessionErrors.session_not_found,
        SessionErrors.attach_invalid,
        SessionErrors.session_not_attachable,
        SessionErrors.session_attached,
      ),
    ],
    summary: 'Lock a session for a time, or extend the lock',
    body: schemas.AttachSessionBody,
    bodyOptional: true,
    replies: { 200: schemas.AttachSessionReply },
    handle: async (service, { params, body, actor }) => {
      const { id: session } = service.find(params.session_id, params.workspace_id)
      const held = await attach(service.context, session, body ?? {}, actor)
      await markSeen(service.context, session)
      return ok({ attach: held, session: service.wire.session(service.find(session)) })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/presence`,
    audited: false,
    with: [
      runsCode(false),
      throws(SessionErrors.session_not_found, SessionErrors.presence_lost, SessionErrors.presence_full),
    ],
    summary: 'Report that a viewer opened or left a session',
    body: schemas.PresenceBody,
    replies: { 200: schemas.PresenceReply, 204: null },
    handle: async (service, { params, body }) => {
      const { id: session } = service.find(params.session_id, params.workspace_id)
      const lease_id = service.context.presence.report(session, body)
      if (lease_id === undefined) return noContent()
      await markSeen(service.context, session)
      return ok({ lease_id })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/archive`,
    summary: 'Archive a stopped session: lists omit it and prompts do not start it',
    replies: { 200: schemas.SessionDetailReply },
    with: [
      undo(archiveUndo('unarchive')),
      cli('session archive', { args: [id], find, view }),
      tool('session_archive', ['sessions']),
      throws(SessionErrors.session_not_found, SessionErrors.session_not_stopped),
      runsCode(false),
    ],
    handle: async (service, { params }) => {
      const { id: session } = service.find(params.session_id, params.workspace_id)
      await archive(service.context, session)
      return ok({ session: service.wire.detail(service.find(session)) })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/unarchive`,
    summary: 'Restore an archived session',
    replies: { 200: schemas.SessionDetailReply },
    with: [
      undo(archiveUndo('archive')),
      cli('session unarchive', { args: [id], find, view }),
      tool('session_unarchive', ['sessions']),
      throws(SessionErrors.session_not_found),
      runsCode(false),
    ],
    handle: async (service, { params }) => {
      const { id: session } = service.find(params.session_id, params.workspace_id)
      await unarchive(service.context, session)
      return ok({ session: service.wire.detail(service.find(session)) })
    },
  }),
]
