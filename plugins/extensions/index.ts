// Longer than 300 lines for its one table of routes: the whole surface reads here.
import { created, definePlugin, maybe, noContent, ok, routeOf, type Setting, surfaceOf } from '../../kernel/plugin.js'
import {
  DevExtensionReply,
  ExtensionCommandsQuery,
  ExtensionCommandsReply,
  ExtensionInventoryReply,
  ExtensionLogsQuery,
  ExtensionLogsReply,
  ExtensionPreviewReply,
  ExtensionReply,
  ExtensionSecretsReply,
  ExtensionWorkspaceQuery,
  LinkExtensionBody,
  ListExtensionsReply,
  ProvenanceReply,
  PutExtensionSecretsBody,
  ReloadExtensionBody,
} from '../../schemas/extensions.js'
import { Checks, Daemon, KnownNames } from '../daemon/api.js'
import { Events, PluginLoaded, PluginUnloaded } from '../events/api.js'
import { Processes } from '../processes/api.js'
import { Workspaces } from '../workspaces/api.js'
import {
  ExtensionDevLinked,
  ExtensionDevUnlinked,
  ExtensionDisabled,
  ExtensionEnabled,
  ExtensionErrors,
  ExtensionReloaded,
  ExtensionReloadFailed,
  Extensions,
  ResourceFamilies,
} from './api.js'
import { authoringCommands } from './authoring/surface.js'
import { InstallErrors } from './install/errors.js'
import { installEvents } from './install/events.js'
import { installMigrations } from './install/provenance.js'
import { installCommands, installRoutes } from './install/surface.js'
import { AllowUnverified } from './install/trust.js'
import { BegunCodes } from './load/begun.js'
import type { ExtensionsService } from './service.js'
import { ExtensionCrashLoop } from './subprocess/events.js'
import { SubprocessSettings } from './subprocess/settings.js'
import { migrations } from './tables.js'
import { inventoryOf } from './wire.js'

const route = routeOf<ExtensionsService>()
const { contribute, tap } = surfaceOf<ExtensionsService>()
const area = 'Extensions'

const item = {
  item: 'extension',
  fields: [
    { header: 'Name', path: 'name' },
    { header: 'Version', path: 'version' },
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

export default definePlugin({
  name: 'extensions',
  version: '0.1.0',
  requires: { daemon: Daemon, events: Events, processes: Processes, workspaces: maybe(Workspaces) },
  provides: Extensions,
  service: () => import('./service.js').then(module => module.ExtensionsService),
}).surface({
  declares: [ResourceFamilies, BegunCodes],
  tables: [...migrations, ...installMigrations],
  errors: [ExtensionErrors, InstallErrors],
  commands: [...authoringCommands, ...installCommands],
  events: [
    ExtensionEnabled,
    ExtensionDisabled,
    ExtensionReloaded,
    ExtensionReloadFailed,
    ExtensionDevLinked,
    ExtensionDevUnlinked,
    ...installEvents,
    ExtensionCrashLoop,
  ],
  settings: [AllowUnverified, ...Object.values(SubprocessSettings)] as Setting[],
  services: [{ name: 'follow', run: (self, signal) => self.follow(signal) }],
  taps: [PluginLoaded, PluginUnloaded].map(type =>
    tap(
      Events,
      events => events.of(type),
      self =>
        ({ payload }) =>
          self.refit(payload.name),
    ),
  ),
  unrouted: [(self, path) => self.unrouted(path)],
  quiesce: [{ phase: 'dropins', run: self => self.quiesce() }],
  registries: [contribute(Checks, self => self.checks()), contribute(KnownNames, self => [() => self.names()])],
  routes: [
    ...installRoutes,
    route({
      method: 'GET',
      path: '/api/extensions',
      area,
      summary: 'Extensions and how they are',
      replies: { 200: ListExtensionsReply },
      errors: [500, 503],
      cli: {
        path: 'extension list',
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
      },
      handle: async self => {
        await self.settled()
        return ok({ extensions: self.views.list() })
      },
    }),
    route({
      method: 'GET',
      path: '/api/extensions/commands',
      area,
      summary: 'Commands that tools of extensions bring',
      query: ExtensionCommandsQuery,
      replies: { 200: ExtensionCommandsReply },
      errors: [403, 503],
      cli: {
        path: 'extension commands',
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
      },
      handle: async (self, { query }) => ok(await self.views.commands(query)),
    }),
    route({
      method: 'POST',
      path: '/api/extensions/dev',
      area,
      summary: 'Run a build from its own folder',
      query: ExtensionWorkspaceQuery,
      body: LinkExtensionBody,
      replies: { 201: DevExtensionReply },
      errors: [400, 403, 404, 409, 410, 422, 503],
      privileged: true,
      handle: async (self, { query, body, actor }) =>
        created({ extension: await self.views.linkBuild(body, query.workspace, actor) }),
    }),
    route({
      method: 'GET',
      path: '/api/extensions/{name}',
      area,
      summary: 'One extension',
      query: ExtensionWorkspaceQuery,
      replies: { 200: ExtensionReply },
      errors: [404, 409, 500, 503],
      cli: { path: 'extension info', view: item },
      handle: async (self, { params, query }) =>
        ok({ extension: self.views.one(await self.choose(params.name, query.workspace)) }),
    }),
    route({
      method: 'POST',
      path: '/api/extensions/{name}/enable',
      area,
      summary: 'Switch an extension on',
      query: ExtensionWorkspaceQuery,
      replies: { 200: ExtensionReply },
      errors: [403, 404, 409, 500, 503],
      privileged: true,
      cli: { path: 'extension enable', view: item },
      handle: async (self, { params, query, actor }) =>
        ok({ extension: self.views.toWire(await self.enable(await self.choose(params.name, query.workspace), actor)) }),
    }),
    route({
      method: 'POST',
      path: '/api/extensions/{name}/disable',
      area,
      summary: 'Switch an extension off; its files, records and tables stay',
      essential: true,
      query: ExtensionWorkspaceQuery,
      replies: { 200: ExtensionReply },
      errors: [403, 404, 409, 500, 503],
      privileged: true,
      cli: { path: 'extension disable', view: item },
      handle: async (self, { params, query, actor }) =>
        ok({
          extension: await self.views.disable(await self.choose(params.name, query.workspace), actor),
        }),
    }),
    route({
      method: 'POST',
      path: '/api/extensions/{name}/reload',
      area,
      summary: 'Read an extension again and start it again',
      query: ExtensionWorkspaceQuery,
      body: ReloadExtensionBody,
      bodyOptional: true,
      replies: { 200: DevExtensionReply },
      errors: [400, 403, 404, 409, 422, 503],
      privileged: true,
      cli: {
        path: 'extension reload',
        args: [{ name: 'name', in: 'path' }],
        view: reloaded,
      },
      handle: async (self, { params, query, body }) =>
        ok({ extension: await self.views.reloadBuild(await self.choose(params.name, query.workspace), body) }),
    }),
    route({
      method: 'GET',
      path: '/api/extensions/{name}/preview',
      area,
      summary: 'What enabling an extension changes',
      query: ExtensionWorkspaceQuery,
      replies: { 200: ExtensionPreviewReply },
      errors: [404, 409, 422, 503],
      cli: {
        path: 'extension preview',
        view: {
          rows: 'changes',
          columns: [
            { header: 'Change', path: 'change' },
            { header: 'Kind', path: 'kind' },
            { header: 'Name', path: 'name' },
          ],
          empty: 'it changes nothing',
        },
      },
      handle: async (self, { params, query }) =>
        ok(await self.views.preview(await self.choose(params.name, query.workspace))),
    }),
    route({
      method: 'GET',
      path: '/api/extensions/{name}/provenance',
      area,
      summary: 'Where an extension came from',
      query: ExtensionWorkspaceQuery,
      replies: { 200: ProvenanceReply },
      errors: [404, 409, 500, 503],
      cli: {
        path: 'extension provenance',
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
      },
      handle: async (self, { params, query }) =>
        ok({ provenance: await self.views.provenance(await self.choose(params.name, query.workspace)) }),
    }),
    route({
      method: 'GET',
      path: '/api/extensions/{name}/inventory',
      area,
      summary: 'What an extension ships, and what of it is in use',
      query: ExtensionWorkspaceQuery,
      replies: { 200: ExtensionInventoryReply },
      errors: [404, 409, 503],
      cli: {
        path: 'extension inventory',
        view: {
          rows: 'items',
          columns: [
            { header: 'Kind', path: 'kind' },
            { header: 'Name', path: 'name' },
            { header: 'Live', path: 'live' },
          ],
          empty: 'it ships nothing',
        },
      },
      handle: async (self, { params, query }) => ok(inventoryOf(await self.choose(params.name, query.workspace))),
    }),
    route({
      method: 'GET',
      path: '/api/extensions/{name}/logs',
      area,
      summary: 'What an extension wrote for people, and what happened to it',
      query: ExtensionLogsQuery,
      replies: { 200: ExtensionLogsReply },
      errors: [400, 403, 404, 409, 503],
      handle: async (self, { params, query, signal }) =>
        ok(await self.views.logs(await self.choose(params.name, query.workspace), query, signal)),
    }),
    route({
      method: 'GET',
      path: '/api/extensions/{name}/secrets',
      area,
      summary: 'Variables that an extension declares, and whether they are there; never a value',
      query: ExtensionWorkspaceQuery,
      replies: { 200: ExtensionSecretsReply },
      errors: [403, 404, 409],
      privileged: true,
      handle: async (self, { params, query }) => ok(self.secrets.list(await self.choose(params.name, query.workspace))),
    }),
    route({
      method: 'PUT',
      path: '/api/extensions/{name}/secrets',
      area,
      summary: 'Say where variables of an extension come from',
      query: ExtensionWorkspaceQuery,
      body: PutExtensionSecretsBody,
      replies: { 200: ExtensionSecretsReply },
      errors: [400, 403, 404, 503],
      privileged: true,
      handle: async (self, { params, query, body }) =>
        ok(await self.secrets.put(await self.choose(params.name, query.workspace), body)),
    }),
    route({
      method: 'DELETE',
      path: '/api/extensions/{name}/secrets/{env_name}',
      area,
      summary: 'Forget where a variable of an extension comes from',
      query: ExtensionWorkspaceQuery,
      replies: { 204: null },
      errors: [400, 403, 404],
      privileged: true,
      handle: async (self, { params, query }) => {
        await self.secrets.drop(await self.choose(params.name, query.workspace), params.env_name)
        return noContent()
      },
    }),
  ],
})
