import { cli, columnsOf, describe, runsCode, show, throws, withTable } from '../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../kernel/kit/collection.js'
import { definePlugin, ok, routeOf, surfaceOf } from '../../../kernel/plugin.js'
import {
  ChangeReply,
  ListChangesQuery,
  ListChangesReply,
  PlanBody,
  type PlannedMember,
  PlanReply,
  UndoBody,
  UndoReply,
} from '../../../schemas/daemon/changes.js'
import { Events } from '../../platform/events/api.js'
import { ChangeErrors, Changes } from './api.js'
import { needs } from './needs.js'
import type { ChangesService } from './service.js'
import { migrations } from './tables.js'

const about = describe('Changes')
const route = routeOf<ChangesService>(about)
const { tap } = surfaceOf<ChangesService>()
const id = { name: 'id', optional: true, default: 'last', summary: 'a change; default: the newest' } as const
const shown = [
  { of: 'id', header: 'Change' },
  { of: 'at~ago', header: 'When' },
  'action',
  { of: 'subject', below: true },
  { of: 'state', words: { kept: 'cannot be undone' } },
] as const

const change = collectionOf<ChangesService>(about)({
  path: '/api/changes',
  key: 'id',
  noun: 'change',
  one: [ChangeReply, 'change'],
  many: [ListChangesReply, 'changes'],
  show: [...shown, { of: 'reason', header: 'Why', below: true }],
  fields: [...shown, 'request', { of: 'actor.id', header: 'Actor' }, { of: 'reason', header: 'Why' }, 'undone_by'],
  argument: id,
  missing: ChangeErrors.change_not_found,
})

/** Plans of requests before they are sent, and undo of requests of the control plane. */
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
    published: service => service.published(),
    admit: (service, incoming, to) => service.admit(incoming, to),
    handled: (service, handled) => service.handled(handled),
    written: (service, t, written) => service.written(t, written),
  },
  taps: [
    tap(
      Events,
      events => events.written,
      service => (_, event) => service.onEvent(event),
    ),
  ],
  routes: [
    route({
      method: 'POST',
      path: '/api/changes/plan',
      summary: 'Show what a request would change; nothing is changed',
      audited: false,
      with: [throws(ChangeErrors.plan_refused), runsCode(false)],
      body: PlanBody,
      replies: { 200: PlanReply },
      handle: async (service, { body, actor }) => ok({ plan: await service.plan(body, actor) }),
    }),
    change.list({
      summary: 'List the last changes of the control plane, newest first, and which can be undone',
      query: ListChangesQuery,
      empty: 'nothing was changed',
      handle: (service, { query }) => ({ changes: service.list(query.limit) }),
    }),
    change.get({
      summary: 'Show what a change changed',
      cli: { view: withTable(change.view, 'members', columnsOf<PlannedMember>()(['member', 'before', 'after'])) },
      handle: (service, { params }) => ({ change: service.one(params.id) }),
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
          args: [id],
          view: show(
            UndoReply,
            '',
            [
              { of: 'change.action', header: 'Undone' },
              'change.subject',
              { of: 'request', header: 'By' },
              'made',
              { of: 'differs~list', header: 'Not as before' },
              { of: 'undone_by', header: 'Take back with' },
            ],
            { problems: 'notes' },
          ),
        }),
      ],
      body: UndoBody,
      bodyOptional: true,
      replies: { 200: UndoReply },
      handle: async (service, { params, body, actor }) =>
        ok(await service.undo(params.id, body?.force === true, actor)),
    }),
  ],
})
