import { cli, describe, runsCode, tool } from '../../../../kernel/kit/annotations/index.js'
import { noContent, ok, type Route, routeOf, streamed } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { undo } from '../../../desk/changes/api.js'
import { archive, unarchive } from '../attach/archive.js'
import { attach } from '../attach/lease.js'
import { attentionSummary, markSeen } from '../attention/attention.js'
import type { SessionsService } from '../service.js'
import { area, fields, find, id, ONE } from './place.js'
import { archiveUndo } from './undo.js'

const route = routeOf<SessionsService>()
const view = { item: 'session', fields: fields.slice(0, 6) } as const

/** Routes over who holds sessions, who looks at them, what wants to be looked at, and what is put away. */
export const attentionRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'GET',
    path: '/api/sessions/attention-summary',
    summary: 'Count the sessions that wait for you or finished unseen',
    replies: { 200: schemas.AttentionSummaryReply },
    with: [
      describe(area),
      cli('session attention', {
        view: {
          item: '',
          fields: [
            { header: 'Wait for you', path: 'needs_you' },
            { header: 'Finished unseen', path: 'finished' },
          ],
          table: {
            path: 'by_workspace',
            columns: [
              { header: 'WORKSPACE', path: 'workspace_id' },
              { header: 'WAIT FOR YOU', path: 'needs_you' },
              { header: 'FINISHED UNSEEN', path: 'finished' },
            ],
          },
        },
      }),
    ],
    handle: self => ok(attentionSummary(self.context, self.allLive())),
  }),
  route({
    method: 'GET',
    path: '/api/sessions/catalog-stream',
    with: [describe(area)],
    summary: 'Stream changes of the session list (server-sent events)',
    headers: { 'Last-Event-ID': { required: false } },
    replies: { 200: schemas.CatalogChange },
    contentType: 'text/event-stream',
    frames: schemas.CatalogFrame,
    handle: (self, { headers, signal }) => streamed(self.context.catalog.frames(headers['last-event-id'], signal)),
  }),
  route({
    method: 'POST',
    path: `${ONE}/attach`,
    audited: false,
    with: [describe(area), runsCode(false)],
    summary: 'Lock a session for a time, or extend the lock',
    body: schemas.AttachSessionBody,
    bodyOptional: true,
    replies: { 200: schemas.AttachSessionReply },
    handle: async (self, { params, body, actor }) => {
      const { id: session } = self.find(params.session_id, params.workspace_id)
      const held = await attach(self.context, session, body ?? {}, actor)
      await markSeen(self.context, session)
      return ok({ attach: held, session: self.wire(self.find(session)) })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/presence`,
    audited: false,
    with: [describe(area), runsCode(false)],
    summary: 'Report that a viewer opened or left a session',
    body: schemas.PresenceBody,
    replies: { 200: schemas.PresenceReply, 204: null },
    handle: async (self, { params, body }) => {
      const { id: session } = self.find(params.session_id, params.workspace_id)
      const lease_id = self.context.presence.report(session, body)
      if (lease_id === undefined) return noContent()
      await markSeen(self.context, session)
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
      describe(area),
      cli('session archive', { args: [id], find, view }),
      tool('session_archive', ['sessions']),
      runsCode(false),
    ],
    handle: async (self, { params }) => {
      const { id: session } = self.find(params.session_id, params.workspace_id)
      await archive(self.context, session)
      return ok({ session: self.detail(self.find(session)) })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/unarchive`,
    summary: 'Restore an archived session',
    replies: { 200: schemas.SessionDetailReply },
    with: [
      undo(archiveUndo('archive')),
      describe(area),
      cli('session unarchive', { args: [id], find, view }),
      tool('session_unarchive', ['sessions']),
      runsCode(false),
    ],
    handle: async (self, { params }) => {
      const { id: session } = self.find(params.session_id, params.workspace_id)
      await unarchive(self.context, session)
      return ok({ session: self.detail(self.find(session)) })
    },
  }),
]
