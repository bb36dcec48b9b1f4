import { cli, describe, tool } from '../../../../kernel/kit/annotations/index.js'
import { ok, routeOf } from '../../../../kernel/plugin.js'
import {
  ListMcpServersReply,
  McpPlaceQuery,
  McpServerReply,
  McpTargetQuery,
  PutMcpServerBody,
  ShowMcpServerQuery,
} from '../../../../schemas/settings/mcp-servers.js'
import { ApplyOutcome } from '../../../../schemas/settings.js'
import { undo } from '../../../desk/changes/api.js'
import type { McpService } from '../service.js'
import { serverUndo } from './undo.js'

const route = routeOf<McpService>(describe('Settings'))

/** Servers of the home and of workspaces, over HTTP and on the command line. */
export const serverRoutes = [
  route({
    method: 'GET',
    path: '/api/settings/mcp-servers',
    summary: 'List MCP servers and their status',
    query: McpPlaceQuery,
    replies: { 200: ListMcpServersReply },
    with: [
      cli('mcp list', {
        options: { workspace_id: 'workspace' },
        workspace: 'workspace_id',
        view: {
          rows: 'mcp_servers',
          columns: [
            { header: 'NAME', path: 'name' },
            { header: 'TRANSPORT', path: 'transport' },
            { header: 'STATE', path: 'runtime_status.state' },
            { header: 'TOOLS', path: 'runtime_status.tool_count' },
            { header: 'LOGIN', path: 'auth_status.status' },
            { header: 'DECLARED IN', path: 'declared_in' },
            { header: 'PROBLEM', path: 'runtime_status.diagnostic', below: true },
          ],
          empty: 'no MCP servers; add one: svc mcp add --help',
          problems: 'problems',
        },
      }),
      tool('mcp_list', ['mcp'], { visibility: 'operator' }),
    ],
    handle: async (self, { query }) => ok(await self.list(query)),
  }),
  route({
    method: 'GET',
    path: '/api/settings/mcp-servers/{name}',
    summary: 'Show an MCP server and its tools',
    query: ShowMcpServerQuery,
    replies: { 200: McpServerReply },
    with: [
      cli('mcp show', {
        options: { workspace_id: 'workspace' },
        workspace: 'workspace_id',
        view: {
          item: 'mcp_server',
          fields: [
            { header: 'Name', path: 'name' },
            { header: 'Scope', path: 'scope' },
            { header: 'Declared in', path: 'declared_in' },
            { header: 'Transport', path: 'transport' },
            { header: 'Command', path: 'command' },
            { header: 'Sandbox', path: 'sandbox' },
            { header: 'Required', path: 'required' },
            { header: 'Start timeout', path: 'start_timeout' },
            { header: 'Call timeout', path: 'call_timeout' },
            { header: 'Arguments', path: 'args', as: 'list' },
            { header: 'URL', path: 'url' },
            { header: 'Variables', path: 'env_keys', as: 'list' },
            { header: 'Secrets', path: 'secret_env_keys', as: 'list' },
            { header: 'Login', path: 'auth_status.status' },
            { header: 'State', path: 'runtime_status.state' },
            { header: 'Reason', path: 'runtime_status.reason' },
            { header: 'Problem', path: 'runtime_status.diagnostic' },
            { header: 'Refused tools', path: 'refused_tools', as: 'list' },
          ],
          table: {
            path: 'tools',
            columns: [
              { header: 'TOOL', path: 'id' },
              { header: 'TITLE', path: 'title' },
            ],
          },
        },
      }),
      tool('mcp_info', ['mcp'], { visibility: 'operator' }),
    ],
    handle: async (self, { params, query }) => ok({ mcp_server: await self.show(params.name, query) }),
  }),
  route({
    method: 'PUT',
    path: '/api/settings/mcp-servers/{name}',
    with: [undo(serverUndo)],
    summary: 'Create or replace an MCP server',
    query: McpTargetQuery,
    body: PutMcpServerBody,
    privileged: true,
    replies: { 200: ApplyOutcome },
    handle: async (self, { params, query, body, actor }) => ok(await self.put(params.name, query, body, actor)),
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
      cli('mcp remove', { options: { workspace_id: 'workspace' }, done: 'removed MCP server {name}' }),
    ],
    handle: async (self, { params, query, actor }) => ok(await self.remove(params.name, query, actor)),
  }),
]
