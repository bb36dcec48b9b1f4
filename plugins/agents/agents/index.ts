import { cli, describe, tool } from '../../../kernel/kit/annotations/index.js'
import { created, definePlugin, Host, maybe, ok, routeOf, surfaceOf } from '../../../kernel/plugin.js'
import {
  AgentCatalogQuery,
  AgentCatalogReply,
  AgentReply,
  CreateAgentBody,
  DeleteAgentReply,
  DuplicateAgentBody,
  ListAgentsQuery,
  ListAgentsReply,
  PutAgentBody,
} from '../../../schemas/agents.js'
import { Trust } from '../../access/trust/api.js'
import { ResourceFamilies } from '../../delivery/extensions/api.js'
import { undo } from '../../desk/changes/api.js'
import { Checks } from '../../desk/daemon/api.js'
import { WorkspaceDetailMembers, Workspaces } from '../../desk/workspaces/api.js'
import { Providers, ProviderUsers } from '../providers/api.js'
import { AgentActivities, AgentErrors, AgentKind, AgentSourceFolders, Agents } from './api.js'
import { modeTable } from './mode-change.js'
import type { AgentsService } from './service.js'
import { DefaultPermissions } from './settings.js'
import { ofCopy, ofCreation, ofRemoval, ofUpdate } from './undo.js'

const route = routeOf<AgentsService>(describe('Agents'))
const { contribute, reconciler, tap } = surfaceOf<AgentsService>()

/** Options of the commands that write a definition. */
const fields = [
  { name: 'prompt', type: 'text', summary: 'text of the definition' },
  { name: 'file', type: 'text', summary: 'file with that text; - reads standard input' },
  { name: 'provider', type: 'text', summary: 'name of a provider: svc provider list' },
  { name: 'command', type: 'text', summary: 'command line of an ACP program of your own' },
  { name: 'model', type: 'text', summary: 'name of the model at the provider' },
  { name: 'reasoning-effort', type: 'text', summary: 'none, minimal, low, medium, high, xhigh or max' },
  { name: 'permissions', type: 'text', summary: 'deny-all, approve-reads or approve-all' },
  { name: 'category', type: 'text', summary: 'category path with slashes: Engineering/Review' },
] as const
const inWorkspace = {
  name: 'workspace',
  type: 'workspace',
  summary: 'id, name or path; default: SVC_WORKSPACE, else the workspace of this folder, else none (global)',
} as const
const inOpened =
  'id, name or path; default: SVC_WORKSPACE, else that of this folder, else its git repository, else the folder'
const everywhere = {
  name: 'global',
  type: 'boolean',
  summary: 'use the global agent even inside a workspace',
} as const
const agentName = { name: 'name', summary: 'name of an agent' }

export default definePlugin({
  name: 'agents',
  version: '0.1.0',
  requires: { workspaces: Workspaces, providers: Providers, trust: maybe(Trust), host: Host },
  provides: Agents,
  service: () => import('./service.js').then(m => m.AgentsService),
}).surface({
  declares: [AgentSourceFolders, AgentActivities],
  errors: [AgentErrors],
  settings: [DefaultPermissions],
  kinds: [AgentKind],
  // Without a number: the version before starts on a home that has it.
  tables: [{ id: 'default-mode', sql: modeTable }],
  reconcilers: [reconciler({ kind: AgentKind, run: (self, batch) => self.reconcile(batch) })],
  services: [{ name: 'read', run: (self, signal) => self.warm(signal) }],
  commands: [
    {
      path: 'agent create',
      summary: 'Create an agent',
      args: [agentName],
      options: [...fields, { ...inWorkspace, opens: true, summary: inOpened }, everywhere],
      load: () => import('./commands.js').then(module => ({ run: module.runCreate })),
    },
    {
      path: 'agent update',
      summary: 'Change fields of an agent; fails if it changed meanwhile',
      args: [agentName],
      options: [...fields, inWorkspace, everywhere],
      load: () => import('./commands.js').then(module => ({ run: module.runUpdate })),
    },
    {
      path: 'agent duplicate',
      summary: 'Copy an agent under another name; options override fields of the copy',
      args: [agentName, { name: 'new_name', summary: 'name of the copy' }],
      options: [
        ...fields,
        inWorkspace,
        everywhere,
        { name: 'scope', type: 'text', summary: 'workspace or global; default: as the original' },
      ],
      load: () => import('./commands.js').then(module => ({ run: module.runDuplicate })),
    },
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/agents',
      summary: 'List the agents that a workspace sees, or all',
      query: ListAgentsQuery,
      replies: { 200: ListAgentsReply },
      with: [
        describe('Agents', { errors: [410] }),
        cli('agent list', {
          workspace: 'workspace',
          view: {
            rows: 'agents',
            columns: [
              { header: 'NAME', path: 'name' },
              { header: 'ORIGIN', path: 'origin' },
              { header: 'PROVIDER', path: 'effective_runtime.provider' },
              { header: 'MODEL', path: 'effective_runtime.model' },
              { header: 'PERMISSIONS', path: 'effective_permissions' },
              { header: 'COMMAND', path: 'command' },
            ],
            empty: 'no agents; write one: svc agent create <name> --prompt <text>',
          },
        }),
        tool('agent_list', ['catalog']),
      ],
      handle: async (self, request) => ok(await self.wireList(await self.workspace(request.query.workspace))),
    }),
    route({
      method: 'POST',
      path: '/api/agents',
      with: [undo(ofCreation), describe('Agents', { errors: [410] }), tool('agent_create', ['catalog'])],
      summary: 'Create an agent in a workspace or in the home',
      body: CreateAgentBody,
      replies: { 201: AgentReply },
      handle: async (self, { body }) => created({ agent: await self.editing.create(body) }),
    }),
    route({
      method: 'GET',
      path: '/api/agents/catalog',
      with: [describe('Agents', { errors: [410] })],
      summary: 'Search the agents of a workspace, with counts, in pages',
      query: AgentCatalogQuery,
      replies: { 200: AgentCatalogReply },
      handle: async (self, { query, actor }) => ok(await self.catalog(query, actor)),
    }),
    route({
      method: 'GET',
      path: '/api/agents/{name}',
      summary: 'Show an agent',
      query: ListAgentsQuery,
      replies: { 200: AgentReply },
      with: [
        describe('Agents', { errors: [410] }),
        cli('agent info', {
          workspace: 'workspace',
          view: {
            item: 'agent',
            fields: [
              { header: 'Name', path: 'name' },
              { header: 'Origin', path: 'origin' },
              { header: 'Workspace', path: 'workspace_id' },
              { header: 'Provider', path: 'effective_runtime.provider' },
              { header: 'Provider chosen by', path: 'effective_runtime.sources.provider' },
              { header: 'Model', path: 'effective_runtime.model' },
              { header: 'Effort', path: 'reasoning_effort' },
              { header: 'Permissions', path: 'effective_permissions' },
              { header: 'Command', path: 'command' },
              { header: 'Tools', path: 'tools', as: 'list' },
              { header: 'Toolsets', path: 'toolsets', as: 'list' },
              { header: 'Category', path: 'category_path', as: 'list' },
              { header: 'Digest', path: 'definition_digest' },
              { header: 'Warnings', path: 'diagnostics', as: 'list' },
              { header: 'Prompt', path: 'prompt' },
            ],
          },
        }),
        tool('agent_info', ['catalog']),
      ],
      handle: async (self, request) => {
        const definition = await self.find(request.params.name, await self.workspace(request.query.workspace))
        return ok({ agent: await self.wire(definition) })
      },
    }),
    route({
      method: 'PUT',
      path: '/api/agents/{name}',
      with: [undo(ofUpdate), describe('Agents', { errors: [410] }), tool('agent_update', ['catalog'])],
      summary: 'Replace the fields of an agent; expected_digest is its definition_digest',
      body: PutAgentBody,
      replies: { 200: AgentReply },
      handle: async (self, { params, body }) => ok({ agent: await self.editing.update(params.name, body) }),
    }),
    route({
      method: 'DELETE',
      path: '/api/agents/{name}',
      summary: 'Delete the definition of an agent; its other files are kept',
      query: ListAgentsQuery,
      essential: true,
      replies: { 200: DeleteAgentReply },
      with: [
        undo(ofRemoval),
        describe('Agents', { errors: [410] }),
        cli('agent delete', {
          args: [agentName],
          workspace: 'workspace',
          view: {
            item: '',
            fields: [
              { header: 'Deleted', path: 'name' },
              { header: 'Origin', path: 'origin' },
              { header: 'In force now', path: 'unshadowed_origin' },
            ],
          },
        }),
        tool('agent_delete', ['catalog']),
      ],
      handle: async (self, { params, query }) =>
        ok(await self.editing.remove(params.name, await self.workspace(query.workspace))),
    }),
    route({
      method: 'POST',
      path: '/api/agents/{name}/duplicate',
      with: [undo(ofCopy), describe('Agents', { errors: [410] }), tool('agent_duplicate', ['catalog'])],
      summary: 'Copy an agent under another name',
      body: DuplicateAgentBody,
      replies: { 201: AgentReply },
      handle: async (self, { params, body }) => created({ agent: await self.editing.duplicate(params.name, body) }),
    }),
  ],
  taps: [
    tap(
      Workspaces,
      workspaces => workspaces.saving,
      self => workspace => self.judgeWorkspace(workspace),
    ),
  ],
  registries: [
    contribute(AgentSourceFolders, self => [self.packaged]),
    contribute(ResourceFamilies, self => [self.packaged.family(() => self.list())]),
    contribute(Checks, self => [{ id: 'agents', category: 'agents', run: () => self.check() }]),
    contribute(ProviderUsers, self => [{ read: () => self.uses() }]),
    contribute(WorkspaceDetailMembers, self => [
      { member: 'agents' as const, read: async workspace => (await self.wireList(workspace)).agents },
    ]),
  ],
})
