import { cli, describe, show, throws, tool } from '../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../kernel/kit/collection.js'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { created, definePlugin, ok, routeOf, surfaceOf } from '../../../kernel/plugin.js'
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
import { TrustErrors } from '../../access/trust/api.js'
import { ResourceFamilies } from '../../delivery/extensions/api.js'
import { undo } from '../../desk/changes/api.js'
import { Checks } from '../../desk/daemon/api.js'
import { REFERENCE_ERRORS, WorkspaceDetailMembers, Workspaces } from '../../desk/workspaces/api.js'
import { ProviderUsers } from '../providers/api.js'
import { AgentActivities, AgentErrors, AgentKind, AgentSourceFolders, Agents } from './api.js'
import { modeTable } from './mode-change.js'
import { needs } from './needs.js'
import type { AgentsService } from './service.js'
import { DefaultPermissions } from './settings.js'
import { ofCopy, ofCreation, ofRemoval, ofUpdate } from './undo.js'

const about = describe('Agents')
const route = routeOf<AgentsService>(about)
const { contribute, reconciler, tap } = surfaceOf<AgentsService>()

/** Options of the commands that write a definition. */
const fields = [
  { name: 'prompt', type: 'text', summary: 'text of the definition' },
  { name: 'file', type: 'text', summary: 'file with that text; - reads standard input' },
  { name: 'provider', type: 'text', summary: `name of a provider: ${command('provider list')}` },
  { name: 'command', type: 'text', summary: 'command line of your own ACP program' },
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

const written = [
  AgentErrors.agent_invalid,
  AgentErrors.agent_unwritable,
  TrustErrors.trust_unreadable,
  ...REFERENCE_ERRORS,
] as const
const made = [AgentErrors.agent_exists, AgentErrors.agent_workspace_missing, ...written]

const agent = collectionOf<AgentsService>(about)({
  path: '/api/agents',
  key: 'name',
  noun: 'agent',
  one: [AgentReply, 'agent'],
  many: [ListAgentsReply, 'agents'],
  show: [
    'name',
    'origin',
    'effective_runtime.provider',
    'effective_runtime.model',
    { of: 'effective_permissions', header: 'Permissions' },
    'command',
  ],
  fields: [
    'name',
    'origin',
    { of: 'workspace_id', header: 'Workspace' },
    'effective_runtime.provider',
    { of: 'effective_runtime.sources.provider', header: 'Provider chosen by' },
    'effective_runtime.model',
    { of: 'reasoning_effort', header: 'Effort' },
    { of: 'effective_permissions', header: 'Permissions' },
    'command',
    'tools~list',
    'toolsets~list',
    { of: 'category_path~list', header: 'Category' },
    { of: 'definition_digest', header: 'Digest' },
    { of: 'diagnostics~list', header: 'Warnings' },
    'prompt',
  ],
  argument: { summary: agentName.summary },
  missing: AgentErrors.agent_not_found,
})

export default definePlugin({
  name: 'agents',
  version: '0.1.0',
  requires: needs,
  provides: Agents,
  service: () => import('./service.js').then(m => m.AgentsService),
}).surface({
  declares: [AgentSourceFolders, AgentActivities],
  errors: [AgentErrors],
  settings: [DefaultPermissions],
  kinds: [AgentKind],
  // No number prefix: the former version of the daemon must still start on a home with this table.
  tables: [{ id: 'default-mode', sql: modeTable }],
  reconcilers: [reconciler({ kind: AgentKind, run: (service, batch) => service.reconcile(batch) })],
  services: [{ name: 'read', run: (service, signal) => service.warm(signal) }],
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
    agent.list({
      summary: 'List the agents visible in a workspace, or all agents',
      query: ListAgentsQuery,
      cli: { workspace: 'workspace' },
      with: [tool('agent_list', ['catalog'])],
      throws: REFERENCE_ERRORS,
      empty: `no agents; write one: ${command('agent create', placeholder('name'), '--prompt', placeholder('text'))}`,
      problems: 'diagnostics',
      handle: async (service, { query }) => service.wireList(await service.workspace(query.workspace)),
    }),
    agent.create({
      summary: 'Create an agent in a workspace or in the home',
      command: false,
      with: [undo(ofCreation), tool('agent_create', ['catalog'])],
      throws: made,
      body: CreateAgentBody,
      handle: async (service, { body }) => ({ agent: await service.editing.create(body) }),
    }),
    route({
      method: 'GET',
      path: '/api/agents/catalog',
      with: [throws(AgentErrors.agent_cursor_invalid, AgentErrors.agent_activity_unavailable, ...REFERENCE_ERRORS)],
      summary: 'Search the agents of a workspace, with counts, in pages',
      query: AgentCatalogQuery,
      replies: { 200: AgentCatalogReply },
      handle: async (service, { query, actor }) => ok(await service.catalog(query, actor)),
    }),
    agent.get({
      query: ListAgentsQuery,
      command: 'agent info',
      cli: { workspace: 'workspace' },
      with: [tool('agent_info', ['catalog'])],
      throws: [AgentErrors.agent_invalid, ...REFERENCE_ERRORS],
      handle: async (service, { params, query }) => {
        const definition = await service.find(params.name, await service.workspace(query.workspace))
        return { agent: await service.wire(definition) }
      },
    }),
    agent.update({
      method: 'PUT',
      summary: 'Replace the fields of an agent; expected_digest is its definition_digest',
      command: false,
      with: [undo(ofUpdate), tool('agent_update', ['catalog'])],
      throws: [AgentErrors.agent_changed, AgentErrors.agent_read_only, ...written],
      body: PutAgentBody,
      handle: async (service, { params, body }) => ({ agent: await service.editing.update(params.name, body) }),
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
        // Other plugins can refuse a deletion with their own errors, which cannot be listed here.
        describe('Agents', { errors: [410] }),
        throws(AgentErrors.agent_not_found, AgentErrors.agent_read_only, ...written, ...REFERENCE_ERRORS),
        cli('agent delete', {
          args: [agentName],
          workspace: 'workspace',
          view: show(DeleteAgentReply, '', [
            { of: 'name', header: 'Deleted' },
            'origin',
            { of: 'unshadowed_origin', header: 'In force now' },
          ]),
        }),
        tool('agent_delete', ['catalog']),
      ],
      handle: async (service, { params, query }) =>
        ok(await service.editing.remove(params.name, await service.workspace(query.workspace))),
    }),
    route({
      method: 'POST',
      path: '/api/agents/{name}/duplicate',
      with: [undo(ofCopy), throws(AgentErrors.agent_not_found, ...made), tool('agent_duplicate', ['catalog'])],
      summary: 'Copy an agent under another name',
      body: DuplicateAgentBody,
      replies: { 201: AgentReply },
      handle: async (service, { params, body }) =>
        created({ agent: await service.editing.duplicate(params.name, body) }),
    }),
  ],
  taps: [
    tap(
      Workspaces,
      workspaces => workspaces.saving,
      service => workspace => service.judgeWorkspace(workspace),
    ),
  ],
  registries: [
    contribute(AgentSourceFolders, service => [service.packaged]),
    contribute(ResourceFamilies, service => [service.packaged.family(() => service.list())]),
    contribute(Checks, service => [{ id: 'agents', category: 'agents', run: () => service.check() }]),
    contribute(ProviderUsers, service => [{ read: () => service.uses() }]),
    contribute(WorkspaceDetailMembers, service => [
      { member: 'agents' as const, read: async workspace => (await service.wireList(workspace)).agents },
    ]),
  ],
})
