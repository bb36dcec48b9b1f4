import { cli, columnsOf, describe, throws, tool, withTable } from '../../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../../kernel/kit/collection.js'
import { ok, type Route, routeOf } from '../../../../kernel/plugin.js'
import {
  ListMcpServersReply,
  McpPlaceQuery,
  McpServerReply,
  type McpServerTool,
  McpTargetQuery,
  PutMcpServerBody,
  ShowMcpServerQuery,
} from '../../../../schemas/settings/mcp-servers.js'
import { ApplyOutcome } from '../../../../schemas/settings.js'
import { undo } from '../../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { DECLARE_ERRORS } from '../api.js'
import { McpErrors } from '../errors.js'
import type { McpService } from '../service.js'
import { serverUndo } from './undo.js'

const about = describe('Settings')
const route = routeOf<McpService>(about)
const scopeOptions = { options: { workspace_id: 'workspace' }, workspace: 'workspace_id' }
/** Errors of the place in a request. */
const misplaced = [McpErrors.mcp_scope_invalid, ...REFERENCE_ERRORS]

const server = collectionOf<McpService>(about)({
  path: '/api/settings/mcp-servers',
  key: 'name',
  noun: 'mcp',
  one: [McpServerReply, 'mcp_server'],
  many: [ListMcpServersReply, 'mcp_servers'],
  show: [
    'name',
    'transport',
    'runtime_status.state',
    { of: 'runtime_status.tool_count', header: 'Tools' },
    { of: 'auth_status.status', header: 'Login' },
    'declared_in',
    { of: 'runtime_status.diagnostic', header: 'Problem', below: true },
  ],
  fields: [
    'name',
    'scope',
    'declared_in',
    'transport',
    'command',
    'sandbox',
    'required',
    'start_timeout',
    'call_timeout',
    { of: 'args~list', header: 'Arguments' },
    'url',
    { of: 'env_keys~list', header: 'Variables' },
    { of: 'secret_env_keys~list', header: 'Secrets' },
    { of: 'auth_status.status', header: 'Login' },
    'runtime_status.state',
    'runtime_status.reason',
    { of: 'runtime_status.diagnostic', header: 'Problem' },
    'refused_tools~list',
  ],
  missing: McpErrors.mcp_server_not_found,
})
const tools = columnsOf<McpServerTool>()([{ of: 'id', header: 'Tool' }, 'title'])

/** Servers of the home and of workspaces, over HTTP and on the command line. */
export const serverRoutes: readonly Route<McpService>[] = [
  server.list({
    summary: 'List MCP servers and their status',
    query: McpPlaceQuery,
    with: [tool('mcp_list', ['mcp'], { visibility: 'operator' })],
    throws: misplaced,
    cli: scopeOptions,
    empty: 'no MCP servers; add one: svc mcp add --help',
    problems: 'problems',
    handle: (service, { query }) => service.list(query),
  }),
  server.get({
    summary: 'Show an MCP server and its tools',
    query: ShowMcpServerQuery,
    with: [tool('mcp_info', ['mcp'], { visibility: 'operator' })],
    throws: misplaced,
    cli: { ...scopeOptions, view: withTable(server.view, 'tools', tools) },
    handle: async (service, { params, query }) => ({ mcp_server: await service.show(params.name, query) }),
  }),
  route({
    method: 'PUT',
    path: '/api/settings/mcp-servers/{name}',
    with: [undo(serverUndo), throws(...DECLARE_ERRORS)],
    summary: 'Create or replace an MCP server',
    query: McpTargetQuery,
    body: PutMcpServerBody,
    privileged: true,
    replies: { 200: ApplyOutcome },
    handle: async (service, { params, query, body, actor }) => ok(await service.put(params.name, query, body, actor)),
  }),
  route({
    method: 'DELETE',
    path: '/api/settings/mcp-servers/{name}',
    summary: 'Remove an MCP server',
    query: McpTargetQuery,
    privileged: true,
    replies: { 200: ApplyOutcome },
    with: [
      undo(serverUndo),
      throws(McpErrors.mcp_server_not_found, McpErrors.mcp_server_read_only, ...DECLARE_ERRORS),
      cli('mcp remove', { options: { workspace_id: 'workspace' }, done: 'removed MCP server {name}' }),
    ],
    handle: async (service, { params, query, actor }) => ok(await service.remove(params.name, query, actor)),
  }),
]
