import { definePlugin, maybe, Requests, surfaceOf } from '../../kernel/plugin.js'
import { Configuration } from '../configuration/api.js'
import { Events } from '../events/api.js'
import { CuratedCatalogs, ExtensionInstalled, ExtensionRemoved, Extensions } from '../extensions/api.js'
import { Mcp } from '../mcp/api.js'
import { Skills } from '../skills/api.js'
import { NativeTools } from '../tools/api.js'
import { MarketplaceErrors, SkillManaged } from './api.js'
import { nativeTools } from './native-tools.js'
import { marketplaceRoutes } from './routes.js'
import type { MarketplaceService } from './service.js'
import { CatalogTimeout } from './settings.js'
import { pinTable } from './signatures.js'

const { contribute, tap } = surfaceOf<MarketplaceService>()

const load = () => import('./commands.js')
const query = [{ name: 'query', optional: true, summary: 'words that an entry has to have' }] as const

/** The marketplace: a catalog of skills, extensions and MCP servers, and the skills that are installed from it. */
export default definePlugin({
  name: 'marketplace',
  version: '0.1.0',
  requires: {
    configuration: maybe(Configuration),
    events: Events,
    extensions: maybe(Extensions),
    mcp: maybe(Mcp),
    request: Requests,
    skills: Skills,
  },
  service: () => import('./service.js').then(module => module.MarketplaceService),
}).surface({
  events: [SkillManaged],
  errors: [MarketplaceErrors],
  settings: [CatalogTimeout],
  tables: [{ id: '001-pin', sql: pinTable }],
  routes: marketplaceRoutes,
  registries: [
    contribute(CuratedCatalogs, self => [{ find: slug => self.extensionArchive(slug) }]),
    contribute(NativeTools, () => nativeTools),
  ],
  taps: [
    tap(
      Events,
      events => events.of(ExtensionInstalled),
      self =>
        async ({ payload }) => {
          if (payload.installed_from === 'curated') await self.pinExtension(payload.name)
        },
    ),
    tap(
      Events,
      events => events.of(ExtensionRemoved),
      self =>
        ({ payload }) =>
          self.forgetExtension(payload.name),
    ),
  ],
  hooks: { running: self => self.recover() },
  commands: [
    {
      path: 'marketplace search',
      summary: 'Search skills, extensions, MCP servers and bundles',
      args: query,
      load: () => load().then(module => ({ run: module.searchAll })),
    },
    {
      path: 'mcp install',
      summary: 'Install an MCP server of the marketplace',
      args: [{ name: 'entry', summary: 'id of an entry: svc marketplace list mcp' }],
      options: [
        { name: 'name', type: 'text', summary: 'what to call it; default: the name of the entry' },
        { name: 'workspace', type: 'text', summary: 'only for this workspace; default: as the entry says' },
        { name: 'global', type: 'boolean', summary: 'for all workspaces, whatever the entry says' },
        { name: 'env', type: 'list', summary: 'NAME=value of a variable of the entry; a secret goes into the vault' },
        { name: 'secret', type: 'list', summary: 'NAME of a secret that is typed unseen, or NAME=vault:mcp/…' },
      ],
      load: () => load().then(module => ({ run: module.installServer })),
    },
    {
      path: 'extension search',
      summary: 'Search extensions of the marketplace',
      args: query,
      load: () => load().then(module => ({ run: module.searchExtensions })),
    },
    {
      path: 'skill search',
      summary: 'Search skills of the marketplace',
      args: query,
      load: () => load().then(module => ({ run: module.searchSkills })),
    },
  ],
})
