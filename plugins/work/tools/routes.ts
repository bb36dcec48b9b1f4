import { cli, columnsOf, describe, runsCode, show, throws, tool } from '../../../kernel/kit/annotations/index.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { ok, type Route, routeOf } from '../../../kernel/plugin.js'
import {
  ArtifactQuery,
  ArtifactReply,
  InvokeToolBody,
  InvokeToolReply,
  ListToolsetsReply,
  ListToolsQuery,
  ListToolsReply,
  MAX_INPUT_BYTES,
  SearchToolsBody,
  SessionToolsQuery,
  ToolErrorBody,
  ToolPlaceQuery,
  ToolReply,
  type Toolset,
  ToolsetReply,
} from '../../../schemas/tools.js'
import { AGENT_SESSION } from '../../access/identity/api.js'
import { AgentErrors } from '../../agents/agents/api.js'
import { REFERENCE_ERRORS } from '../../desk/workspaces/api.js'
import { ToolErrors } from './faults.js'
import { invoke } from './invoke.js'
import type { ToolsService } from './service.js'
import { errorToWire } from './wire.js'

/** Errors of a request that names a workspace, an agent or a session which is missing or invalid. */
export const PLACE_ERRORS = [
  ToolErrors.tool_denied,
  AgentErrors.agent_not_found,
  AgentErrors.agent_invalid,
  ...REFERENCE_ERRORS,
]
/** Errors of a call. A tool of the daemon adds those of its own route, which cannot be listed here. */
const CALL_ERRORS = [
  ToolErrors.tool_not_found,
  ToolErrors.tool_conflict,
  ToolErrors.tool_unavailable,
  ToolErrors.tool_approval_required,
  ToolErrors.tool_invalid_input,
  ToolErrors.tool_result_too_large,
  ToolErrors.tool_result_persistence_failed,
  ToolErrors.tool_backend_failed,
  ToolErrors.tool_canceled,
  ToolErrors.tool_timed_out,
]
const area = 'Tools and approvals'
const route = routeOf<ToolsService>(describe(area), throws(...PLACE_ERRORS))
const calling = routeOf<ToolsService>()
const faults = { reply: ToolErrorBody, body: errorToWire } as const
const origins = [AGENT_SESSION]

const columns = [
  { of: 'descriptor.tool_id', header: 'Tool' },
  'descriptor.risk',
  'decision.callable',
  { of: 'descriptor.description', below: true },
  { of: 'decision.reason_codes~list', header: 'Why not', below: true },
] as const
const shownPlace = { session_id: 'session', agent_name: 'agent' }
const scopeOptions = { workspace_id: 'workspace', session_id: 'session', agent_name: 'agent' }

/** The tools of a source, with a note about others. */
function ofSource(tools: ListToolsReply['tools'], source: NonNullable<ListToolsQuery['source']>): ListToolsReply {
  if (source === 'all') return { tools }
  const isNative = ({ descriptor }: (typeof tools)[number]) => descriptor.backend.kind === 'native_go'
  const found = tools.filter(tool => isNative(tool) === (source === 'native'))
  const others = tools.length - found.length
  const [what, next] =
    source === 'native'
      ? ['of MCP servers and extensions', command('tool list', 'external')]
      : ['of the daemon itself', command('tool list', 'native')]
  const none = found.length === 0 ? 'no MCP server or extension has tools here; ' : ''
  return { tools: found, ...(others > 0 && { notes: [`${none}${others} tools ${what}: ${next}`] }) }
}

export const toolRoutes: readonly Route<ToolsService>[] = [
  route({
    method: 'GET',
    path: '/api/tools',
    faults,
    summary: 'List tools and whether they can be called',
    query: ListToolsQuery,
    replies: { 200: ListToolsReply },
    with: [
      cli('tool list', {
        args: [{ name: 'source', optional: true, default: 'external' }],
        options: shownPlace,
        workspace: 'workspace',
        view: show(ListToolsReply, 'tools', columns, {
          empty: 'no tools; extensions can add some: svc extension list',
          problems: 'notes',
        }),
      }),
    ],
    handle: async (service, { actor, query: { source = 'all', ...request } }) =>
      ok(ofSource(await service.listed(request, actor), source)),
  }),
  route({
    method: 'POST',
    path: '/api/tools/search',
    audited: false,
    faults,
    summary: 'Search tools, best match first',
    body: SearchToolsBody,
    replies: { 200: ListToolsReply },
    with: [
      cli('tool search', {
        args: [{ name: 'query', summary: 'words, such as "list sessions"' }],
        options: scopeOptions,
        workspace: 'workspace_id',
        view: show(ListToolsReply, 'tools', columns, { empty: 'no matching tools; list all: svc tool list' }),
      }),
      runsCode(false),
    ],
    handle: async (service, { actor, body }) =>
      ok({ tools: await service.listed(body, actor, body.query, body.limit) }),
  }),
  route({
    method: 'GET',
    path: '/api/tools/{id}',
    faults,
    summary: 'Show a tool, its input schema, and why it cannot be called',
    query: ToolPlaceQuery,
    replies: { 200: ToolReply },
    with: [
      cli('tool show', {
        options: shownPlace,
        workspace: 'workspace',
        view: show(ToolReply, 'tool', [
          { of: 'descriptor.tool_id', header: 'Tool' },
          'descriptor.description',
          'descriptor.risk',
          { of: 'descriptor.source.owner', header: 'Source' },
          'availability.available',
          'decision.callable',
          { of: 'decision.approval_required', header: 'Asks a person' },
          { of: 'decision.reason_codes~list', header: 'Why not' },
          'availability.detail',
          { of: 'descriptor.input_schema', header: 'Input' },
          'descriptor.toolsets~list',
        ]),
      }),
      tool('tool_info', ['bootstrap', 'catalog'], {
        description: 'Show a tool: its input schema, its risk, and why it cannot be called.',
      }),
      throws(ToolErrors.tool_not_found, ...PLACE_ERRORS),
    ],
    handle: async (service, { actor, params, query }) => ok({ tool: await service.shown(query, actor, params.id) }),
  }),
  calling({
    method: 'POST',
    path: '/api/tools/{id}/invoke',
    audited: false,
    with: [
      describe(area, { errors: [502] }),
      throws(...CALL_ERRORS, ...PLACE_ERRORS),
      tool('tool_call', ['bootstrap', 'catalog'], {
        description:
          'Call a tool by its id with an input that matches its schema. Policies and approvals apply as for a direct call.',
        inside: 'judged',
      }),
    ],
    faults,
    origins,
    summary: 'Call a tool',
    body: InvokeToolBody,
    bodyLimit: MAX_INPUT_BYTES + 64 * 1024,
    replies: { 200: InvokeToolReply, 202: ToolErrorBody },
    handle: async (service, { actor, params, body, signal }) =>
      ok(await invoke(service, params.id, body, actor, signal)),
  }),
  route({
    method: 'GET',
    path: '/api/workspaces/{workspace_id}/sessions/{session_id}/tools',
    with: [describe('Sessions'), tool('tool_list', ['catalog'])],
    faults,
    origins,
    summary: 'List the tools of a session',
    query: SessionToolsQuery,
    replies: { 200: ListToolsReply },
    handle: async (service, { actor, params, query }) =>
      ok({ tools: await service.listed({ ...params, ...query }, actor) }),
  }),
  route({
    method: 'POST',
    path: '/api/workspaces/{workspace_id}/sessions/{session_id}/tools/search',
    audited: false,
    faults,
    origins,
    with: [
      describe('Sessions'),
      runsCode(false),
      tool('tool_search', ['bootstrap', 'catalog'], {
        description: 'Find tools by words. Then read the input of one with tool_info, and call it with tool_call.',
        risk: 'read',
      }),
    ],
    summary: 'Search the tools of a session, best match first',
    body: SearchToolsBody,
    replies: { 200: ListToolsReply },
    handle: async (service, { actor, params, body }) =>
      ok({ tools: await service.listed({ ...body, ...params }, actor, body.query, body.limit) }),
  }),
  route({
    method: 'GET',
    path: '/api/workspaces/{workspace_id}/tool-artifacts/{artifact_id}',
    with: [
      tool('tool_artifact_read', ['tool_artifacts']),
      throws(ToolErrors.tool_not_found, ToolErrors.tool_backend_failed),
    ],
    faults,
    summary: 'Read a large tool result in pages',
    query: ArtifactQuery,
    replies: { 200: ArtifactReply },
    handle: async (service, { params, query }) =>
      ok(await service.artifacts.page(params.workspace_id, params.artifact_id, query)),
  }),
]

const inSets = columnsOf<Toolset>()
const toolsetColumns = [
  ...inSets([{ of: 'id', header: 'Toolset' }, 'status']),
  { header: 'Tools', path: 'expanded_tools.length' },
  ...inSets([{ of: 'reason_codes~list', header: 'Why' }]),
]

export const toolsetRoutes: readonly Route<ToolsService>[] = [
  route({
    method: 'GET',
    path: '/api/toolsets',
    faults,
    summary: 'List toolsets',
    query: ToolPlaceQuery,
    replies: { 200: ListToolsetsReply },
    with: [
      describe('Toolsets'),
      cli('toolset list', {
        options: shownPlace,
        workspace: 'workspace',
        view: { rows: 'toolsets', columns: toolsetColumns },
      }),
      tool('toolset_list', ['catalog']),
    ],
    handle: async (service, { actor, query }) => ok({ toolsets: await service.toolsets(query, actor) }),
  }),
  route({
    method: 'GET',
    path: '/api/toolsets/{id}',
    faults,
    summary: 'Show a toolset and its tools',
    query: ToolPlaceQuery,
    replies: { 200: ToolsetReply },
    with: [
      describe('Toolsets'),
      cli('toolset show', {
        options: shownPlace,
        workspace: 'workspace',
        view: show(ToolsetReply, 'toolset', [
          { of: 'id', header: 'Toolset' },
          'status',
          { of: 'reason_codes~list', header: 'Why' },
          'toolsets~list',
          { of: 'expanded_tools~list', header: 'Tools' },
        ]),
      }),
      tool('toolset_info', ['catalog']),
      throws(ToolErrors.tool_not_found, ...PLACE_ERRORS),
    ],
    handle: async (service, { actor, params, query }) =>
      ok({ toolset: await service.toolset(query, actor, params.id) }),
  }),
]
