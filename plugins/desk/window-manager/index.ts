import { cli, columnsOf, describe, runsCode, show, throws, tool } from '../../../kernel/kit/annotations/index.js'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import {
  created,
  definePlugin,
  noContent,
  ok,
  type Replies,
  routeOf,
  Settings,
  surfaceOf,
} from '../../../kernel/plugin.js'
import {
  AttachClientBody,
  DeleteLayoutProfileBody,
  LayoutDocument,
  LayoutProfileReply,
  ListLayoutProfilesReply,
  ListWindowClientsReply,
  PutLayoutBody,
  PutLayoutProfileBody,
  ValidateLayoutBody,
  ValidateLayoutReply,
  WindowClient,
  WindowCommandBody,
  WindowCommandReply,
  type WindowLayoutSpec,
  WindowManagerErrorBody,
  WindowManagerState,
  WindowPreviewReply,
  WindowStreamFrame,
  WindowStreamQuery,
} from '../../../schemas/window-manager.js'
import { Events } from '../../platform/events/api.js'
import { RECORD_DELETE_ERRORS, RECORD_PUT_ERRORS } from '../../platform/resources/api.js'
import { undo } from '../changes/api.js'
import { WorkspaceDeleted, Workspaces } from '../workspaces/api.js'
import { CommandApplied, happeningEvents, LayoutApplied, LayoutKind, WindowManager } from './api.js'
import { cliCommands } from './cli-table.js'
import { commandTools } from './command-tools.js'
import { MAX_LAYOUT_BYTES } from './layouts/kind.js'
import { needs } from './needs.js'
import { refusals, refuse } from './refusal.js'
import type { WindowManagerService } from './service.js'
import { settingsIn, WindowManagerSettings } from './settings.js'
import { migrations } from './store.js'

const route = routeOf<WindowManagerService>(describe('Window manager'))
const { tap } = surfaceOf<WindowManagerService>()
const BASE = '/api/workspaces/{workspace_id}/window-manager'
/** Larger than the largest layout, so that an oversized document is rejected by its own check. */
const LAYOUT_BODY = MAX_LAYOUT_BYTES + 1024 * 1024

/** Adds the possible refusals to the replies of a route. */
const orRefused = <R extends Replies>(replies: R) => ({ ...refused, ...replies }) as R & typeof refused
const refused = {
  404: WindowManagerErrorBody,
  409: WindowManagerErrorBody,
  422: WindowManagerErrorBody,
  503: WindowManagerErrorBody,
}

/** Refusals of a command of any kind. */
const ofCommand = refusals(
  'workspace_not_found',
  'revision_conflict',
  'invalid_command',
  'invalid_topology',
  'desktop_not_found',
  'window_not_found',
  'client_not_found',
  'destination_required',
  'final_desktop',
  'history_boundary',
  'layout_not_found',
  'unavailable',
)

/** The reply type covers records of any kind; these are layouts. */
const layoutColumns = columnsOf<
  Omit<ListLayoutProfilesReply['records'][number], 'spec'> & { readonly spec: WindowLayoutSpec }
>()([
  'id',
  { of: 'spec.display_name', header: 'Name' },
  'spec.aspect',
  'spec.overflow',
  { of: 'scope.kind', header: 'Scope' },
  'version',
  'updated_at~ago',
])

const workspaceArg = [
  { name: 'workspace_id', type: 'workspace', optional: true, summary: 'id, name or path of the workspace' },
] as const

export default definePlugin({
  name: 'window-manager',
  version: '0.1.0',
  requires: needs,
  provides: WindowManager,
  service: () => import('./service.js').then(module => module.WindowManagerService),
}).surface({
  kinds: [LayoutKind],
  tables: migrations,
  owned: [
    { by: Workspaces, table: 'window_manager_document', column: 'workspace_id' },
    { by: Workspaces, table: 'window_manager_history', column: 'workspace_id' },
  ],
  events: [CommandApplied, LayoutApplied, ...Object.values(happeningEvents)],
  commands: cliCommands,
  settings: settingsIn(WindowManagerSettings),
  taps: [
    ...settingsIn(WindowManagerSettings).map(entry =>
      tap(
        Settings,
        settings => settings.of(entry),
        service => () => service.live.settingsChanged(),
      ),
    ),
    tap(
      Events,
      events => events.of(CommandApplied),
      service =>
        ({ payload }) =>
          service.live.publish(payload),
    ),
    tap(
      Events,
      events => events.of(WorkspaceDeleted),
      service =>
        ({ payload }) =>
          service.forget(payload.id),
    ),
  ],
  routes: [
    route({
      method: 'GET',
      path: BASE,
      with: [tool('window_manager_state', ['window_manager']), refusals('workspace_not_found', 'unavailable')],
      summary: 'Show the desktops and windows of a workspace, with their history',
      replies: orRefused({ 200: WindowManagerState }),
      handle: (service, { params }) => service.answer(params.workspace_id, workspace => ok(service.read(workspace))),
    }),
    route({
      method: 'POST',
      path: `${BASE}/commands`,
      audited: false,
      with: [...commandTools, runsCode(false), ofCommand],
      summary: 'Run a command at a given revision',
      body: WindowCommandBody,
      bodyLimit: LAYOUT_BODY,
      replies: orRefused({ 200: WindowCommandReply }),
      handle: (service, { params, body, actor }) =>
        service.answer(params.workspace_id, async workspace => ok(await service.command(workspace, body, actor))),
    }),
    route({
      method: 'POST',
      path: `${BASE}/preview`,
      audited: false,
      with: [runsCode(false), ofCommand],
      summary: 'Show what a command would do, without doing it',
      body: WindowCommandBody,
      bodyLimit: LAYOUT_BODY,
      replies: orRefused({ 200: WindowPreviewReply }),
      handle: (service, { params, body, actor }) =>
        service.answer(params.workspace_id, workspace => ok(service.preview(workspace, body, actor))),
    }),
    route({
      method: 'GET',
      path: `${BASE}/layout`,
      with: [tool('layout_get', ['window_manager']), refusals('workspace_not_found', 'unavailable')],
      summary: 'Export the current arrangement as a layout document',
      replies: orRefused({ 200: LayoutDocument }),
      handle: (service, { params }) =>
        service.answer(params.workspace_id, workspace => ok(service.document(workspace))),
    }),
    route({
      method: 'PUT',
      path: `${BASE}/layout`,
      audited: false,
      with: [
        tool('layout_apply', ['window_manager']),
        runsCode(false),
        refusals('workspace_not_found', 'revision_conflict', 'invalid_command', 'invalid_topology', 'client_not_found'),
      ],
      summary: 'Replace the arrangement with a layout document',
      body: PutLayoutBody,
      bodyLimit: LAYOUT_BODY,
      replies: orRefused({ 200: WindowCommandReply }),
      handle: (service, { params, body: { document, ...head }, actor }) =>
        service.answer(params.workspace_id, async workspace =>
          ok(await service.command(workspace, { ...head, command_id: 'layout.replace', payload: { document } }, actor)),
        ),
    }),
    route({
      method: 'POST',
      path: `${BASE}/layout/validate`,
      audited: false,
      with: [
        tool('layout_validate', ['window_manager'], { risk: 'read' }),
        runsCode(false),
        refusals('workspace_not_found', 'invalid_command'),
      ],
      summary: 'Validate a layout document and list all errors',
      body: ValidateLayoutBody,
      bodyLimit: LAYOUT_BODY,
      replies: orRefused({ 200: ValidateLayoutReply }),
      handle: (service, { params, body: { document, workspace_id } }) =>
        service.answer(params.workspace_id, workspace => {
          if (workspace_id !== undefined && workspace_id !== workspace.id)
            refuse('invalid_command', `workspace_id differs from the workspace in the path, ${workspace.id}`)
          const diagnostics = service.diagnose(workspace, document)
          return ok({ valid: diagnostics.length === 0, workspace_id: workspace.id, diagnostics })
        }),
    }),
    route({
      method: 'GET',
      path: `${BASE}/clients`,
      summary: 'List the screens that show the workspace',
      replies: orRefused({ 200: ListWindowClientsReply }),
      with: [
        refusals('workspace_not_found', 'unavailable'),
        cli('desktop clients', {
          args: workspaceArg,
          workspace: 'workspace_id',
          view: show(
            ListWindowClientsReply,
            'clients',
            [
              { of: 'client_id', header: 'ID' },
              { of: 'active_desktop_id', header: 'Desktop' },
              { of: 'focused_window_id', header: 'Focus' },
              'connected_at~ago',
            ],
            { empty: 'no screen shows this workspace now' },
          ),
        }),
      ],
      handle: (service, { params }) =>
        service.answer(params.workspace_id, workspace =>
          ok({ clients: service.clients(workspace), workspace_id: workspace.id }),
        ),
    }),
    route({
      method: 'POST',
      path: `${BASE}/clients`,
      audited: false,
      with: [runsCode(false), refusals('workspace_not_found', 'invalid_command', 'desktop_not_found', 'unavailable')],
      summary: 'Attach or refresh a client; without a stream it expires after five minutes',
      body: AttachClientBody,
      replies: orRefused({ 201: WindowClient }),
      handle: (service, { params, body }) =>
        service.answer(params.workspace_id, workspace => {
          if (body.workspace_id !== undefined && body.workspace_id !== workspace.id)
            refuse('invalid_command', `workspace_id differs from the workspace in the path, ${workspace.id}`)
          return created(service.attach(workspace, body))
        }),
    }),
    route({
      method: 'DELETE',
      path: `${BASE}/clients/{client_id}`,
      audited: false,
      with: [runsCode(false), refusals('workspace_not_found', 'client_not_found')],
      summary: 'Detach a client',
      essential: true,
      replies: orRefused({ 204: null }),
      handle: (service, { params }) =>
        service.answer(params.workspace_id, workspace => {
          service.detach(workspace, params.client_id)
          return noContent()
        }),
    }),
    route({
      method: 'GET',
      path: `${BASE}/layout-profiles`,
      summary: 'List saved layouts that the workspace can apply',
      replies: orRefused({ 200: ListLayoutProfilesReply }),
      with: [
        refusals('workspace_not_found'),
        cli('layout list', {
          args: workspaceArg,
          workspace: 'workspace_id',
          view: {
            rows: 'records',
            columns: layoutColumns,
            empty: `no saved layouts; save this one: ${command('layout export', '--save', placeholder('id'))}`,
          },
        }),
        tool('layout_profiles_list', ['window_manager']),
      ],
      handle: (service, { params, actor }) =>
        service.answer(params.workspace_id, workspace => ok({ records: service.layouts.list(workspace, actor) })),
    }),
    route({
      method: 'PUT',
      path: `${BASE}/layout-profiles/{profile_id}`,
      with: [
        undo({ by: 'never', why: 'the former layout is not kept; save it again' }),
        tool('layout_profile_save', ['window_manager']),
        runsCode(false),
        refusals('workspace_not_found'),
        throws(...RECORD_PUT_ERRORS),
      ],
      summary: 'Save a layout',
      body: PutLayoutProfileBody,
      bodyLimit: LAYOUT_BODY,
      replies: orRefused({ 200: LayoutProfileReply, 201: LayoutProfileReply }),
      handle: (service, { params, body, actor }) =>
        service.answer(params.workspace_id, async workspace => {
          const saved = await service.layouts.save(workspace, params.profile_id, body, actor)
          return saved.created ? created({ record: saved.record }) : ok({ record: saved.record })
        }),
    }),
    route({
      method: 'DELETE',
      path: `${BASE}/layout-profiles/{profile_id}`,
      with: [
        undo({ by: 'never', why: 'a deleted layout is not kept; save it again' }),
        tool('layout_profile_delete', ['window_manager']),
        runsCode(false),
        refusals('workspace_not_found'),
        throws(...RECORD_DELETE_ERRORS),
      ],
      summary: 'Delete a saved layout at its current version',
      essential: true,
      body: DeleteLayoutProfileBody,
      replies: orRefused({ 204: null }),
      handle: (service, { params, body, actor }) =>
        service.answer(params.workspace_id, async workspace => {
          await service.layouts.delete(workspace, params.profile_id, body.expected_version, actor)
          return noContent()
        }),
    }),
    route({
      method: 'GET',
      path: `${BASE}/stream`,
      with: [refusals('workspace_not_found', 'client_not_found', 'unavailable')],
      summary: 'Stream changes over a WebSocket, from a known revision on',
      query: WindowStreamQuery,
      replies: orRefused({ 101: WindowStreamFrame }),
      handle: (service, { params, query, signal }) =>
        service.answer(params.workspace_id, workspace => service.stream(workspace, query, signal)),
    }),
  ],
})
