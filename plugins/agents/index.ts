import { definePlugin, ok, routeOf, surfaceOf } from '../../kernel/plugin.js'
import { AgentReply, ListAgentsQuery, ListAgentsReply } from '../../schemas/agents.js'
import { Checks } from '../daemon/api.js'
import { Providers, ProviderUsers } from '../providers/api.js'
import { WorkspaceDetailMembers, Workspaces } from '../workspaces/api.js'
import { AgentErrors, Agents } from './api.js'
import type { AgentsService } from './service.js'
import { DefaultPermissions } from './settings.js'

const route = routeOf<AgentsService>()
const { contribute } = surfaceOf<AgentsService>()

export default definePlugin({
  name: 'agents',
  version: '0.1.0',
  requires: { workspaces: Workspaces, providers: Providers },
  provides: Agents,
  service: () => import('./service.js').then(m => m.AgentsService),
}).surface({
  errors: [AgentErrors],
  settings: [DefaultPermissions],
  routes: [
    route({
      method: 'GET',
      path: '/api/agents',
      area: 'Agents',
      summary: 'Agents that are visible from a workspace, or from everywhere',
      query: ListAgentsQuery,
      replies: { 200: ListAgentsReply },
      errors: [400, 404, 410, 500],
      cli: {
        path: 'agent list',
        view: {
          rows: 'agents',
          columns: [
            { header: 'NAME', path: 'name' },
            { header: 'ORIGIN', path: 'origin' },
            { header: 'PROVIDER', path: 'effective_runtime.provider' },
            { header: 'MODEL', path: 'effective_runtime.model' },
            { header: 'PERMISSIONS', path: 'permissions' },
            { header: 'COMMAND', path: 'command' },
          ],
          empty: 'no agents',
        },
      },
      handle: async (self, request) =>
        ok({ agents: await self.wireList(await self.workspace(request.query.workspace)) }),
    }),
    route({
      method: 'GET',
      path: '/api/agents/{name}',
      area: 'Agents',
      summary: 'One agent',
      query: ListAgentsQuery,
      replies: { 200: AgentReply },
      errors: [400, 404, 410, 422, 500],
      cli: {
        path: 'agent info',
        view: {
          item: 'agent',
          fields: [
            { header: 'Name', path: 'name' },
            { header: 'Origin', path: 'origin' },
            { header: 'Workspace', path: 'workspace_id' },
            { header: 'Provider', path: 'effective_runtime.provider' },
            { header: 'Because of', path: 'effective_runtime.sources.provider' },
            { header: 'Model', path: 'effective_runtime.model' },
            { header: 'Effort', path: 'reasoning_effort' },
            { header: 'Permissions', path: 'permissions' },
            { header: 'Command', path: 'command' },
            { header: 'Tools', path: 'tools', as: 'list' },
            { header: 'Toolsets', path: 'toolsets', as: 'list' },
            { header: 'Category', path: 'category_path', as: 'list' },
            { header: 'Digest', path: 'definition_digest' },
            { header: 'Prompt', path: 'prompt' },
          ],
        },
      },
      handle: async (self, request) => {
        const definition = await self.find(request.params.name, await self.workspace(request.query.workspace))
        return ok({ agent: await self.wire(definition) })
      },
    }),
  ],
  registries: [
    contribute(Checks, self => [{ id: 'agents', category: 'agents', run: () => self.check() }]),
    contribute(ProviderUsers, self => [{ read: () => self.uses() }]),
    contribute(WorkspaceDetailMembers, self => [
      { member: 'agents' as const, read: workspace => self.wireList(workspace) },
    ]),
  ],
})
