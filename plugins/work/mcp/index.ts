import { definePlugin, surfaceOf } from '../../../kernel/plugin.js'
import { SecretOwners } from '../../access/vault/api.js'
import { ExtensionRemoved, ResourceFamilies, type ResourceFamily } from '../../delivery/extensions/api.js'
import { Checks, StatusMembers } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events, isGap } from '../../platform/events/api.js'
import { SessionMcpServers, Sessions } from '../sessions/api.js'
import { ToolBackends } from '../tools/api.js'
import { Mcp, McpServerKind, McpServerSources } from './api.js'
import { keptListsTable } from './client/kept-lists.js'
import { commands } from './command-list.js'
import { McpErrors } from './errors.js'
import { connectionRoutes } from './hosted/routes.js'
import { needs } from './needs.js'
import { farewellTable, retryColumns } from './oauth/farewells.js'
import { loginTable } from './oauth/login-table.js'
import { authRoutes } from './oauth/routes.js'
import { workspaceSecrets } from './servers/own-secrets.js'
import { serverRoutes } from './servers/routes.js'
import { seenTable } from './servers/seen-table.js'
import type { McpService } from './service.js'
import { Hosting, McpServers } from './settings.js'

const { contribute, tap } = surfaceOf<McpService>()

/** The family that reads MCP servers of extensions. */
const family: ResourceFamily = {
  name: 'mcp_servers',
  kinds: [McpServerKind],
  load: async extension => (await import('./shipped.js')).readServers(extension),
}

/** MCP servers: declared in ten places, managed by the daemon, and provided to sessions. */
export default definePlugin({
  name: 'mcp',
  version: '0.1.0',
  requires: needs,
  provides: Mcp,
  service: () => import('./service.js').then(module => module.McpService),
}).surface({
  kinds: [McpServerKind],
  errors: [McpErrors],
  settings: [McpServers, Hosting],
  tables: [
    { id: '001-tool-list', sql: keptListsTable },
    { id: '002-login', sql: loginTable },
    { id: '003-farewell', sql: farewellTable },
    { id: '004-farewell-retry', sql: retryColumns },
    { id: '005-seen', sql: seenTable },
  ],
  // Logins are revoked first, then all secrets of the workspace are deleted.
  owned: [
    {
      ...{ by: Workspaces, table: 'mcp_login', column: 'workspace_id' },
      forget: (service, { binding }) => service.logins.forget(`${binding}`),
    },
    { by: Workspaces, table: 'mcp_seen', column: 'workspace_id' },
    { by: Workspaces, ended: (service, id) => service.logins.forgetSecrets(id) },
  ],
  declares: [McpServerSources],
  services: [{ name: 'forget', run: (service, signal) => service.forget(signal) }],
  registries: [
    contribute(SecretOwners, () => [workspaceSecrets]),
    contribute(ResourceFamilies, () => [family]),
    contribute(SessionMcpServers, service => [{ read: (...about) => service.handed(...about) }]),
    contribute(ToolBackends, service => [service.tools]),
    contribute(Checks, service => [
      { id: 'mcp.revocations', category: 'mcp', run: async () => service.revocationItems() },
      {
        id: 'mcp.servers',
        category: 'mcp',
        run: () => service.serverItems(),
        probe: signal => service.probeItems(signal),
      },
    ]),
    contribute(StatusMembers, service => [{ path: 'mcp_servers', read: () => service.status() }]),
  ],
  taps: [
    tap(
      Events,
      events => events.of({ cursor: 'extension-removed', type: ExtensionRemoved }),
      service => async event => {
        if (!isGap(event) && event.payload.purged) await service.forgetExtension(event.payload.name)
      },
    ),
    tap(
      Sessions,
      sessions => sessions.prepare,
      service => (start, session) => service.hosting.prepare(start, session),
    ),
    tap(
      Sessions,
      sessions => sessions.points.agentSpawned,
      service => session => service.hosting.started(session),
    ),
    tap(
      Sessions,
      sessions => sessions.stopped,
      service => session => service.sessionStopped(session),
    ),
  ],
  commands,
  routes: [...serverRoutes, ...authRoutes, ...connectionRoutes],
})
