import { definePlugin, surfaceOf } from '../../../kernel/plugin.js'
import { Events } from '../../platform/events/api.js'
import { CuratedCatalogs, ExtensionRemoved } from '../extensions/api.js'
import { MarketplaceErrors, SkillManaged } from './api.js'
import { needs } from './needs.js'
import { marketplaceRoutes } from './routes.js'
import type { MarketplaceService } from './service.js'
import { CatalogTimeout } from './settings.js'
import { pinTable } from './signatures.js'

const { contribute, tap } = surfaceOf<MarketplaceService>()

const load = () => import('./commands.js')
const query = [{ name: 'query', optional: true, summary: 'words to search for' }] as const

/** The marketplace: a catalog of skills, extensions and MCP servers, and the skills that are installed from it. */
export default definePlugin({
  name: 'marketplace',
  version: '0.1.0',
  requires: needs,
  service: () => import('./service.js').then(module => module.MarketplaceService),
}).surface({
  events: [SkillManaged],
  errors: [MarketplaceErrors],
  settings: [CatalogTimeout],
  tables: [{ id: '001-pin', sql: pinTable }],
  routes: marketplaceRoutes,
  registries: [
    contribute(CuratedCatalogs, service => [{ find: (slug, authorOf) => service.extensionArchive(slug, authorOf) }]),
  ],
  taps: [
    tap(
      Events,
      events => events.of(ExtensionRemoved),
      service =>
        ({ payload }) =>
          service.forgetExtension(payload.name),
    ),
  ],
  hooks: { running: service => service.recover() },
  commands: [
    {
      path: 'marketplace search',
      summary: 'Search skills, extensions, MCP servers and bundles',
      args: query,
      load: () => load().then(module => ({ run: module.searchAll })),
    },
    {
      path: 'mcp install',
      summary: 'Install an MCP server from the marketplace',
      args: [{ name: 'entry', summary: 'id of an entry: svc marketplace list mcp' }],
      options: [
        { name: 'name', type: 'text', summary: 'name of the server; default: the name of the entry' },
        { name: 'workspace', type: 'text', summary: 'workspace that gets the server; default: as the entry says' },
        { name: 'global', type: 'boolean', summary: 'install for all workspaces' },
        { name: 'env', type: 'list', summary: 'variable of the entry as NAME=value; secrets are stored in the vault' },
        { name: 'secret', type: 'list', summary: 'secret as NAME (prompts for the value) or NAME=vault:mcp/…' },
      ],
      load: () => load().then(module => ({ run: module.installServer })),
    },
    {
      path: 'extension search',
      summary: 'Search the marketplace for extensions',
      args: query,
      load: () => load().then(module => ({ run: module.searchExtensions })),
    },
    {
      path: 'skill search',
      summary: 'Search the marketplace for skills',
      args: query,
      load: () => load().then(module => ({ run: module.searchSkills })),
    },
  ],
})
