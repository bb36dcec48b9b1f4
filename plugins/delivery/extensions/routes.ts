import { cli, describe, tool } from '../../../kernel/kit/annotations/index.js'
import { created, ok, routeOf } from '../../../kernel/plugin.js'
import {
  DevExtensionReply,
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
import type { ExtensionsService } from './service.js'
import { inventoryOf } from './wire.js'

const route = routeOf<ExtensionsService>(describe('Extensions'))

const item = {
  item: 'extension',
  fields: [
    { header: 'Name', path: 'name' },
    { header: 'Version', path: 'version' },
    { header: 'In its folder', path: 'folder_version' },
    { header: 'Type', path: 'type' },
    { header: 'State', path: 'state' },
    { header: 'Health', path: 'health' },
    { header: 'Why', path: 'health_message' },
    { header: 'Error', path: 'last_error' },
    { header: 'Note', path: 'diagnostics.0.title' },
    { header: 'Next', path: 'diagnostics.0.suggested_command' },
    { header: 'Enabled', path: 'enabled' },
    { header: 'From', path: 'source' },
    { header: 'Workspace', path: 'workspace_id' },
    { header: 'Linked to', path: 'origin_path' },
    { header: 'Provides', path: 'capabilities', as: 'list' },
    { header: 'Lacks variables', path: 'missing_env', as: 'list' },
    { header: 'PID', path: 'pid' },
  ],
  table: {
    path: 'items',
    columns: [
      { header: 'Kind', path: 'kind' },
      { header: 'Brings', path: 'name' },
      { header: 'Live', path: 'live' },
    ],
  },
} as const

/** The reply names the folder also of what is not linked. */
const reloaded = {
  ...item,
  fields: item.fields.map(field => (field.path === 'origin_path' ? { ...field, header: 'Folder' } : field)),
}

/** Extensions of the home and of workspaces; installing them has routes of its own. */
export const extensionRoutes = [
  route({
    method: 'GET',
    path: '/api/extensions',
    summary: 'List extensions and their status',
    recovery: true,
    replies: { 200: ListExtensionsReply },
    with: [
      cli('extension list', {
        view: {
          rows: 'extensions',
          columns: [
            { header: 'Name', path: 'name' },
            { header: 'Version', path: 'version' },
            { header: 'Type', path: 'type' },
            { header: 'State', path: 'state' },
            { header: 'Health', path: 'health' },
            { header: 'From', path: 'source' },
            { header: 'Workspace', path: 'workspace_id' },
            { header: 'Error', path: 'last_error', below: true },
            { header: 'Why', path: 'health_message', below: true },
          ],
          empty: 'no extensions; write one: svc extension init <name>',
        },
      }),
      tool('extensions_list', ['extensions']),
    ],
    handle: async (self, { actor }) => {
      await self.settled()
      return ok({ extensions: self.views.list(actor) })
    },
  }),
  route({
    method: 'GET',
    path: '/api/extensions/commands',
    summary: 'List the commands that extensions add',
    query: ExtensionCommandsQuery,
    replies: { 200: ExtensionCommandsReply },
    with: [
      cli('extension commands', {
        view: {
          rows: 'commands',
          columns: [
            { header: 'Extension', path: 'extension' },
            { header: 'Verb', path: 'verb' },
            { header: 'Tool', path: 'tool_id' },
            { header: 'Risk', path: 'risk_class' },
            { header: 'Summary', path: 'summary' },
          ],
          empty: 'no extension brings commands of tools; svc extension list shows what is there',
        },
      }),
    ],
    handle: async (self, { query }) => ok(await self.views.commands(query)),
  }),
  route({
    method: 'POST',
    path: '/api/extensions/dev',
    with: [
      undo({ by: 'never', why: 'end it with the extension: svc extension remove' }),
      describe('Extensions', { errors: [410] }),
    ],
    summary: 'Run a build from its own folder',
    query: ExtensionWorkspaceQuery,
    body: LinkExtensionBody,
    replies: { 201: DevExtensionReply },
    privileged: true,
    handle: async (self, { query, body, actor }) =>
      created({ extension: await self.views.linkBuild(body, query.workspace, actor) }),
  }),
  route({
    method: 'GET',
    path: '/api/extensions/{name}',
    summary: 'Show an extension',
    recovery: true,
    query: ExtensionWorkspaceQuery,
    replies: { 200: ExtensionReply },
    with: [cli('extension info', { view: item }), tool('extensions_info', ['extensions'])],
    handle: async (self, { actor, params, query }) =>
      ok({ extension: self.views.one(await self.choose(params.name, query.workspace, actor)) }),
  }),
  route({
    method: 'POST',
    path: '/api/extensions/{name}/enable',
    summary: 'Enable an extension',
    query: ExtensionWorkspaceQuery,
    replies: { 200: ExtensionReply },
    privileged: true,
    with: [
      undo({ by: 'action', path: '/api/extensions/{name}/disable' }),
      cli('extension enable', { view: item }),
      tool('extensions_enable', ['extensions']),
    ],
    handle: async (self, { params, query, actor }) =>
      ok({ extension: self.views.toWire(await self.enable(await self.choose(params.name, query.workspace), actor)) }),
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
      undo({ by: 'action', path: '/api/extensions/{name}/enable' }),
      cli('extension disable', { view: item }),
      tool('extensions_disable', ['extensions']),
    ],
    handle: async (self, { params, query, actor }) =>
      ok({
        extension: await self.views.disable(await self.choose(params.name, query.workspace), actor),
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
    ],
    handle: async (self, { params, query, body }) =>
      ok({ extension: await self.views.reloadBuild(await self.choose(params.name, query.workspace), body) }),
  }),
  route({
    method: 'GET',
    path: '/api/extensions/{name}/preview',
    summary: 'Show what enabling an extension would change',
    query: ExtensionWorkspaceQuery,
    replies: { 200: ExtensionPreviewReply },
    with: [
      cli('extension preview', {
        view: {
          rows: 'changes',
          columns: [
            { header: 'Change', path: 'change' },
            { header: 'Kind', path: 'kind' },
            { header: 'Name', path: 'name' },
          ],
          empty: 'it changes nothing',
        },
      }),
    ],
    handle: async (self, { params, query }) =>
      ok(await self.views.preview(await self.choose(params.name, query.workspace))),
  }),
  route({
    method: 'GET',
    path: '/api/extensions/{name}/provenance',
    summary: 'Show where an extension came from',
    query: ExtensionWorkspaceQuery,
    replies: { 200: ProvenanceReply },
    with: [
      cli('extension provenance', {
        view: {
          item: 'provenance',
          fields: [
            { header: 'From', path: 'installed_from' },
            { header: 'Tier', path: 'registry_tier' },
            { header: 'Source', path: 'source_url' },
            { header: 'Installed', path: 'installed_at', as: 'time' },
            { header: 'By', path: 'installed_by' },
            { header: 'SHA-256', path: 'checksum_sha256' },
            { header: 'SHA-256 of archive', path: 'archive_digest_sha256' },
            { header: 'Verified', path: 'checksum_verified' },
            { header: 'Trust', path: 'trust.decision' },
            { header: 'Permissions', path: 'permissions', as: 'list' },
          ],
        },
      }),
      tool('extensions_provenance', ['extensions']),
    ],
    handle: async (self, { actor, params, query }) =>
      ok({ provenance: await self.views.provenance(await self.choose(params.name, query.workspace, actor)) }),
  }),
  route({
    method: 'GET',
    path: '/api/extensions/{name}/inventory',
    summary: 'Show what an extension ships, and which parts are in use',
    query: ExtensionWorkspaceQuery,
    replies: { 200: ExtensionInventoryReply },
    with: [
      cli('extension inventory', {
        view: {
          rows: 'items',
          columns: [
            { header: 'Kind', path: 'kind' },
            { header: 'Name', path: 'name' },
            { header: 'Live', path: 'live' },
          ],
          empty: 'it ships nothing',
        },
      }),
      tool('extensions_inventory', ['extensions']),
    ],
    handle: async (self, { actor, params, query }) =>
      ok(inventoryOf(await self.choose(params.name, query.workspace, actor))),
  }),
  route({
    method: 'GET',
    path: '/api/extensions/{name}/logs',
    summary: 'Show the log of an extension and its load history',
    recovery: true,
    query: ExtensionLogsQuery,
    replies: { 200: ExtensionLogsReply },
    handle: async (self, { params, query, signal }) =>
      ok(await self.views.logs(await self.choose(params.name, query.workspace), query, signal)),
  }),
]
