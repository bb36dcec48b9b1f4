import type { CliColumn } from '../../../kernel/kit/annotations/index.js'
import { cli, describe, tool } from '../../../kernel/kit/annotations/index.js'
import { ok, routeOf } from '../../../kernel/plugin.js'
import {
  HookCatalogQuery,
  HookCatalogReply,
  HookEventsQuery,
  HookEventsReply,
  HookRunsQuery,
  HookRunsReply,
} from '../../../schemas/hooks/replies.js'
import type { HooksService } from './service.js'
import { eventEntries } from './wire.js'

const route = routeOf<HooksService>(describe('Hooks'))

const hookColumns: readonly CliColumn[] = [
  { header: 'EVENT', path: 'event' },
  { header: 'ORDER', path: 'order' },
  { header: 'NAME', path: 'name' },
  { header: 'SOURCE', path: 'source' },
  { header: 'OWNER', path: 'owner' },
  { header: 'MODE', path: 'mode' },
  { header: 'REQUIRED', path: 'required' },
  { header: 'ENABLED', path: 'enabled' },
  { header: 'COMMAND', path: 'command', below: true },
  { header: 'WARNINGS', path: 'warnings', as: 'list', below: true },
]
const eventColumns: readonly CliColumn[] = [
  { header: 'EVENT', path: 'event' },
  { header: 'SYNC', path: 'sync_eligible' },
  { header: 'EMITTED', path: 'emitted' },
  { header: 'PATCH FIELDS', path: 'patch_members', as: 'list', below: true },
]
const runColumns: readonly CliColumn[] = [
  { header: 'RECORDED', path: 'recorded_at', as: 'ago' },
  { header: 'EVENT', path: 'event' },
  { header: 'HOOK', path: 'hook_name' },
  { header: 'SOURCE', path: 'source' },
  { header: 'OUTCOME', path: 'outcome' },
  { header: 'MS', path: 'duration_ms' },
  { header: 'PATCH', path: 'patch_applied', below: true },
  { header: 'ERROR', path: 'error', below: true },
]

export const hookRoutes = [
  route({
    method: 'GET',
    path: '/api/hooks/catalog',
    summary: 'List hooks in execution order',
    query: HookCatalogQuery,
    replies: { 200: HookCatalogReply },
    with: [
      describe('Hooks', { errors: [410] }),
      cli('hooks list', {
        view: {
          rows: 'hooks',
          columns: hookColumns,
          empty: 'No hooks. Declare one: svc config set hooks.<name> <json>',
        },
      }),
      tool('hooks_list', ['hooks']),
    ],
    handle: async (self, { query }) => ok({ hooks: await self.catalog(query) }),
  }),
  route({
    method: 'GET',
    path: '/api/hooks/events',
    summary: 'List the events that hooks can subscribe to',
    query: HookEventsQuery,
    replies: { 200: HookEventsReply },
    with: [
      cli('hooks events', {
        view: { rows: 'events', columns: eventColumns, empty: 'No matching events. List all: svc hooks events' },
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
      describe('Hooks', { errors: [410] }),
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
        view: {
          rows: 'runs',
          columns: runColumns,
          empty: 'No hook runs. Runs without a session: svc hooks runs none',
        },
      }),
    ],
    handle: async (self, { params, query, actor }) =>
      ok({ runs: await self.runs.find(params.workspace_id, query, actor) }),
  }),
]
