import { cli, describe, runsCode, throws } from '../../../kernel/kit/annotations/index.js'
import { definePlugin, ok, routeOf } from '../../../kernel/plugin.js'
import {
  ChangeReply,
  ListChangesQuery,
  ListChangesReply,
  PlanBody,
  PlanReply,
  UndoBody,
  UndoReply,
} from '../../../schemas/daemon/changes.js'
import { ChangeErrors, Changes } from './api.js'
import { needs } from './needs.js'
import type { ChangesService } from './service.js'
import { migrations } from './tables.js'

const route = routeOf<ChangesService>(describe('Changes'))
const change = [
  { header: 'Change', path: 'id' },
  { header: 'When', path: 'at', as: 'ago' },
  { header: 'Action', path: 'action' },
  { header: 'Subject', path: 'subject', below: true },
  { header: 'State', path: 'state', words: { kept: 'cannot be undone' } },
] as const

/** What a request would change before it is sent, and the way back from requests of the control plane. */
export default definePlugin({
  name: 'changes',
  version: '0.1.0',
  requires: needs,
  provides: Changes,
  service: () => import('./service.js').then(module => module.ChangesService),
}).surface({
  tables: migrations,
  errors: [ChangeErrors],
  hooks: {
    published: self => self.published(),
    admit: (self, incoming, to) => self.admit(incoming, to),
    handled: (self, handled) => self.handled(handled),
    written: (self, t, written) => self.written(t, written),
  },
  routes: [
    route({
      method: 'POST',
      path: '/api/changes/plan',
      summary: 'Show what a request would change; nothing is changed',
      audited: false,
      with: [throws(ChangeErrors.plan_refused), runsCode(false)],
      body: PlanBody,
      replies: { 200: PlanReply },
      handle: async (self, { body, actor }) => ok({ plan: await self.plan(body, actor) }),
    }),
    route({
      method: 'GET',
      path: '/api/changes',
      summary: 'List the last changes of the control plane, newest first, and which can be undone',
      query: ListChangesQuery,
      replies: { 200: ListChangesReply },
      with: [
        cli('change list', {
          view: {
            rows: 'changes',
            columns: [...change, { header: 'Why', path: 'reason', below: true }],
            empty: 'nothing was changed',
          },
        }),
      ],
      handle: (self, { query }) => ok({ changes: self.list(query.limit) }),
    }),
    route({
      method: 'GET',
      path: '/api/changes/{id}',
      summary: 'Show what a change changed',
      replies: { 200: ChangeReply },
      with: [
        throws(ChangeErrors.change_not_found),
        cli('change show', {
          args: [{ name: 'id', optional: true, default: 'last', summary: 'a change; default: the newest' }],
          view: {
            item: 'change',
            fields: [
              ...change,
              { header: 'Request', path: 'request' },
              { header: 'Actor', path: 'actor.id' },
              { header: 'Why', path: 'reason' },
              { header: 'Undone by', path: 'undone_by' },
            ],
            table: {
              path: 'members',
              columns: [
                { header: 'Member', path: 'member' },
                { header: 'Before', path: 'before' },
                { header: 'After', path: 'after' },
              ],
            },
          },
        }),
      ],
      handle: (self, { params }) => ok({ change: self.one(params.id) }),
    }),
    route({
      method: 'POST',
      path: '/api/changes/{id}/undo',
      summary: 'Undo a change of the control plane',
      privileged: true,
      audited: false,
      with: [
        throws(
          ChangeErrors.change_not_found,
          ChangeErrors.undo_impossible,
          ChangeErrors.undo_refused,
          ChangeErrors.undo_outdated,
        ),
        cli('undo', {
          args: [{ name: 'id', optional: true, default: 'last', summary: 'a change; default: the newest' }],
          view: {
            item: '',
            fields: [
              { header: 'Undone', path: 'change.action' },
              { header: 'Subject', path: 'change.subject' },
              { header: 'By', path: 'request' },
              { header: 'Made', path: 'made' },
              { header: 'Not as before', path: 'differs', as: 'list' },
              { header: 'Take back with', path: 'undone_by' },
            ],
          },
        }),
      ],
      body: UndoBody,
      bodyOptional: true,
      replies: { 200: UndoReply },
      handle: async (self, { params, body, actor }) => ok(await self.undo(params.id, body?.force === true, actor)),
    }),
  ],
})
