import { cli, describe, show, throws, tool } from '../../../kernel/kit/annotations/index.js'
import { ok, type Route, routeOf } from '../../../kernel/plugin.js'
import {
  HookCatalogQuery,
  HookCatalogReply,
  HookEventsQuery,
  HookEventsReply,
  HookRunsQuery,
  HookRunsReply,
} from '../../../schemas/hooks/replies.js'
import { REFERENCE_ERRORS } from '../../desk/workspaces/api.js'
import { SessionErrors } from '../sessions/api.js'
import type { HooksService } from './service.js'
import { eventEntries } from './wire.js'

const route = routeOf<HooksService>(describe('Hooks'))

export const hookRoutes: readonly Route<HooksService>[] = [
  route({
    method: 'GET',
    path: '/api/hooks/catalog',
    summary: 'List hooks in execution order',
    query: HookCatalogQuery,
    replies: { 200: HookCatalogReply },
    with: [
      cli('hooks list', {
        view: show(
          HookCatalogReply,
          'hooks',
          [
            'event',
            'order',
            'name',
            'source',
            'owner',
            'mode',
            'required',
            'enabled',
            { of: 'command', below: true },
            { of: 'warnings~list', below: true },
          ],
          { empty: 'No hooks. Declare one: svc config set hooks.<name> <json>' },
        ),
      }),
      tool('hooks_list', ['hooks']),
      throws(...REFERENCE_ERRORS),
    ],
    handle: async (service, { query }) => ok({ hooks: await service.catalog(query) }),
  }),
  route({
    method: 'GET',
    path: '/api/hooks/events',
    summary: 'List the events that hooks can subscribe to',
    query: HookEventsQuery,
    replies: { 200: HookEventsReply },
    with: [
      cli('hooks events', {
        view: show(
          HookEventsReply,
          'events',
          [
            'event',
            { of: 'sync_eligible', header: 'Sync' },
            'emitted',
            { of: 'patch_members~list', header: 'Patch fields', below: true },
          ],
          { empty: 'No matching events. List all: svc hooks events' },
        ),
      }),
      tool('hooks_events', ['hooks']),
    ],
    handle: async (_, { query: { family, sync_only: syncOnly } }) =>
      ok({
        events: eventEntries().filter(
          entry => (family ?? entry.family) === entry.family && (!syncOnly || entry.sync_eligible),
        ),
      }),
  }),
  route({
    method: 'GET',
    path: '/api/workspaces/{workspace_id}/hooks/runs',
    summary: 'List the hook runs of a session, oldest first',
    query: HookRunsQuery,
    replies: { 200: HookRunsReply },
    with: [
      cli('hooks runs', {
        args: [
          {
            name: 'session',
            in: 'query',
            summary: 'id of a session, or none for runs without a session, such as session.pre_create',
          },
          { name: 'workspace_id', type: 'workspace', optional: true },
        ],
        workspace: 'workspace_id',
        view: show(
          HookRunsReply,
          'runs',
          [
            'recorded_at~ago',
            'event',
            { of: 'hook_name', header: 'Hook' },
            'source',
            'outcome',
            { of: 'duration_ms', header: 'ms' },
            { of: 'patch_applied', header: 'Patch', below: true },
            { of: 'error', below: true },
          ],
          { empty: 'No hook runs. The runs are listed by session; name none for those without a session.' },
        ),
      }),
      throws(SessionErrors.session_not_found, ...REFERENCE_ERRORS),
    ],
    handle: async (service, { params, query, actor }) =>
      ok({ runs: await service.runs.find(params.workspace_id, query, actor) }),
  }),
]
