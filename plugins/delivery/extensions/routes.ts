import {
  type CliView,
  cli,
  columnsOf,
  describe,
  show,
  throws,
  tool,
  withTable,
} from '../../../kernel/kit/annotations/index.js'
import { created, ok, routeOf } from '../../../kernel/plugin.js'
import {
  DevExtensionReply,
  type Extension,
  ExtensionCommandsQuery,
  ExtensionCommandsReply,
  ExtensionInventoryReply,
  ExtensionLogsQuery,
  ExtensionLogsReply,
  ExtensionPreviewReply,
  ExtensionReply,
  ExtensionWorkspaceQuery,
  LinkExtensionBody,
  ListExtensionsReply,
  ProvenanceReply,
  ReloadExtensionBody,
} from '../../../schemas/extensions.js'
import { undo } from '../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../desk/workspaces/api.js'
import { BundleErrors } from '../bundles/api.js'
import { ExtensionErrors, NAMED_ERRORS } from './errors.js'
import { LOAD_ERRORS, PLAN_ERRORS, TREE_ERRORS } from './refusals.js'
import type { ExtensionsService } from './service.js'
import { inventoryOf } from './wire.js'

const route = routeOf<ExtensionsService>(describe('Extensions'))
const named = throws(...NAMED_ERRORS)

/** Fields of one extension. @param folder header of the linked folder */
const shown = (folder: string): CliView =>
  withTable(
    {
      item: 'extension',
      fields: [
        ...columnsOf<Extension>()([
          'name',
          'version',
          { of: 'folder_version', header: 'In its folder' },
          'type',
          'state',
          'health',
          { of: 'health_message', header: 'Why' },
          { of: 'last_error', header: 'Error' },
        ]),
        // Only the first diagnostic: the path points into a list.
        { header: 'Note', path: 'diagnostics.0.title' },
        { header: 'Next', path: 'diagnostics.0.suggested_command' },
        ...columnsOf<Extension>()([
          'enabled',
          { of: 'source', header: 'From' },
          { of: 'workspace_id', header: 'Workspace' },
          { of: 'origin_path', header: folder },
          { of: 'capabilities~list', header: 'Provides' },
          { of: 'missing_env~list', header: 'Lacks variables' },
          { of: 'pid', header: 'PID' },
        ]),
      ],
    },
    'items',
    columnsOf<ExtensionInventoryReply['items'][number]>()(['kind', { of: 'name', header: 'Brings' }, 'live']),
  )
const item = shown('Linked to')
/** The reply contains the folder of installed extensions too. */
const reloaded = shown('Folder')

/** Routes of installed and linked extensions; the install routes are separate. */
export const extensionRoutes = [
  route({
    method: 'GET',
    path: '/api/extensions',
    summary: 'List extensions and their status',
    recovery: true,
    replies: { 200: ListExtensionsReply },
    with: [
      cli('extension list', {
        view: show(
          ListExtensionsReply,
          'extensions',
          [
            'name',
            'version',
            'type',
            'state',
            'health',
            { of: 'source', header: 'From' },
            { of: 'workspace_id', header: 'Workspace' },
            { of: 'last_error', header: 'Error', below: true },
            { of: 'health_message', header: 'Why', below: true },
          ],
          { empty: 'no extensions; write one: svc extension init <name>', problems: 'diagnostics' },
        ),
      }),
      tool('extensions_list', ['extensions']),
    ],
    handle: async (service, { actor }) => {
      await service.settled()
      return ok(service.views.list(actor))
    },
  }),
  route({
    method: 'GET',
    path: '/api/extensions/commands',
    summary: 'List the commands that extensions add',
    query: ExtensionCommandsQuery,
    replies: { 200: ExtensionCommandsReply },
    with: [
      throws(ExtensionErrors.extension_dev_invalid, ...REFERENCE_ERRORS),
      cli('extension commands', {
        view: show(
          ExtensionCommandsReply,
          'commands',
          ['extension', 'verb', { of: 'tool_id', header: 'Tool' }, { of: 'risk_class', header: 'Risk' }, 'summary'],
          { empty: 'no extension adds commands; list extensions: svc extension list' },
        ),
      }),
    ],
    handle: async (service, { query }) => ok(await service.views.commands(query)),
  }),
  route({
    method: 'POST',
    path: '/api/extensions/dev',
    with: [
      undo({ by: 'never', why: 'remove the link: svc extension remove' }),
      describe('Extensions', { errors: [410] }),
      throws(ExtensionErrors.extension_dev_invalid, ...LOAD_ERRORS, ...REFERENCE_ERRORS),
    ],
    summary: 'Run a build from its own folder',
    query: ExtensionWorkspaceQuery,
    body: LinkExtensionBody,
    replies: { 201: DevExtensionReply },
    privileged: true,
    handle: async (service, { query, body, actor }) =>
      created({ extension: await service.views.linkBuild(body, query.workspace, actor) }),
  }),
  route({
    method: 'GET',
    path: '/api/extensions/{name}',
    summary: 'Show an extension',
    recovery: true,
    query: ExtensionWorkspaceQuery,
    replies: { 200: ExtensionReply },
    with: [cli('extension info', { view: item }), tool('extensions_info', ['extensions']), named],
    handle: async (service, { actor, params, query }) =>
      ok({ extension: service.views.one(await service.choose(params.name, query.workspace, actor)) }),
  }),
  route({
    method: 'POST',
    path: '/api/extensions/{name}/enable',
    summary: 'Enable an extension',
    query: ExtensionWorkspaceQuery,
    replies: { 200: ExtensionReply },
    privileged: true,
    with: [
      undo({ by: 'action', verb: 'disable' }),
      cli('extension enable', { view: item }),
      tool('extensions_enable', ['extensions']),
      named,
    ],
    handle: async (service, { params, query, actor }) =>
      ok({
        extension: service.views.toWire(
          await service.enable(await service.choose(params.name, query.workspace), actor),
        ),
      }),
  }),
  route({
    method: 'POST',
    path: '/api/extensions/{name}/disable',
    summary: 'Disable an extension; its files, records and tables are kept',
    recovery: true,
    essential: true,
    query: ExtensionWorkspaceQuery,
    replies: { 200: ExtensionReply },
    privileged: true,
    with: [
      undo({ by: 'action', verb: 'enable' }),
      cli('extension disable', { view: item }),
      tool('extensions_disable', ['extensions']),
      named,
      throws(BundleErrors.bundle_in_use),
    ],
    handle: async (service, { params, query, actor }) =>
      ok({
        extension: await service.views.disable(await service.choose(params.name, query.workspace), actor),
      }),
  }),
  route({
    method: 'POST',
    path: '/api/extensions/{name}/reload',
    summary: 'Reload an extension',
    recovery: true,
    query: ExtensionWorkspaceQuery,
    body: ReloadExtensionBody,
    bodyOptional: true,
    replies: { 200: DevExtensionReply },
    privileged: true,
    with: [
      undo({ by: 'never', why: 'it changes no setting' }),
      cli('extension reload', { args: [{ name: 'name', in: 'path' }], view: reloaded }),
      tool('extensions_reload', ['extensions']),
      named,
      throws(
        ExtensionErrors.extension_disabled,
        ExtensionErrors.extension_generation_stale,
        ExtensionErrors.extension_not_loaded,
        ...LOAD_ERRORS,
      ),
    ],
    handle: async (service, { params, query, body }) =>
      ok({ extension: await service.views.reloadBuild(await service.choose(params.name, query.workspace), body) }),
  }),
  route({
    method: 'GET',
    path: '/api/extensions/{name}/preview',
    summary: 'Show what enabling an extension would change',
    query: ExtensionWorkspaceQuery,
    replies: { 200: ExtensionPreviewReply },
    with: [
      named,
      throws(...PLAN_ERRORS),
      cli('extension preview', {
        view: show(ExtensionPreviewReply, 'changes', ['change', 'kind', 'name'], { empty: 'it changes nothing' }),
      }),
    ],
    handle: async (service, { params, query }) =>
      ok(await service.views.preview(await service.choose(params.name, query.workspace))),
  }),
  route({
    method: 'GET',
    path: '/api/extensions/{name}/provenance',
    summary: 'Show where an extension came from',
    query: ExtensionWorkspaceQuery,
    replies: { 200: ProvenanceReply },
    with: [
      named,
      throws(...TREE_ERRORS),
      cli('extension provenance', {
        view: show(ProvenanceReply, 'provenance', [
          { of: 'installed_from', header: 'From' },
          { of: 'registry_tier', header: 'Tier' },
          { of: 'source_url', header: 'Source' },
          'installed_at~time',
          { of: 'installed_by', header: 'By' },
          { of: 'checksum_sha256', header: 'SHA-256' },
          { of: 'archive_digest_sha256', header: 'SHA-256 of archive' },
          { of: 'checksum_verified', header: 'Verified' },
          { of: 'trust.decision', header: 'Trust' },
          'permissions~list',
        ]),
      }),
      tool('extensions_provenance', ['extensions']),
    ],
    handle: async (service, { actor, params, query }) =>
      ok({ provenance: await service.views.provenance(await service.choose(params.name, query.workspace, actor)) }),
  }),
  route({
    method: 'GET',
    path: '/api/extensions/{name}/inventory',
    summary: 'Show what an extension ships, and which parts are in use',
    query: ExtensionWorkspaceQuery,
    replies: { 200: ExtensionInventoryReply },
    with: [
      named,
      cli('extension inventory', {
        view: show(ExtensionInventoryReply, 'items', ['kind', 'name', 'live'], { empty: 'it ships nothing' }),
      }),
      tool('extensions_inventory', ['extensions']),
    ],
    handle: async (service, { actor, params, query }) =>
      ok(inventoryOf(await service.choose(params.name, query.workspace, actor))),
  }),
  route({
    method: 'GET',
    path: '/api/extensions/{name}/logs',
    with: [named],
    summary: 'Show the log of an extension and its load history',
    recovery: true,
    query: ExtensionLogsQuery,
    replies: { 200: ExtensionLogsReply },
    handle: async (service, { params, query, signal }) =>
      ok(await service.views.logs(await service.choose(params.name, query.workspace), query, signal)),
  }),
]
