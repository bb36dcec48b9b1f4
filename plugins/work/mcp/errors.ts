import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../kernel/plugin.js'

const LIST = command('mcp list')
const LOGIN = command('mcp auth login', placeholder('name'))

export const McpErrors = defineErrors({
  mcp_file_invalid: { status: 422, message: 'a file with MCP servers cannot be used', next: LIST },
  mcp_secret_forbidden: {
    status: 422,
    message: 'a file of a workspace names a secret that is not of that workspace',
  },
  mcp_server_required: {
    status: 409,
    message: 'a session needs this MCP server, which cannot start',
    next: command('mcp show', placeholder('name'), '--probe'),
  },
  mcp_server_not_found: { status: 404, message: 'there is no MCP server of this name', next: LIST },
  mcp_server_invalid: { status: 400, message: 'this MCP server cannot be used as it is declared' },
  mcp_server_name_taken: {
    status: 409,
    message: 'another MCP server has a name that comes to the same ids of tools',
    next: LIST,
  },
  mcp_server_read_only: {
    status: 409,
    message: 'this MCP server is declared where no request writes',
    next: LIST,
  },
  mcp_server_in_use: { status: 409, message: 'a tool of this MCP server is being called', next: LIST },
  mcp_unreachable: { status: 503, message: 'the MCP server does not answer', next: LIST },
  mcp_auth_unconfigured: {
    status: 409,
    message: 'this MCP server wants a login, and none is configured for it',
    next: command('mcp add', '--help'),
  },
  mcp_auth_required: {
    status: 409,
    message: 'this MCP server wants a login',
    next: LOGIN,
  },
  mcp_auth_expired: {
    status: 409,
    message: 'the login to this MCP server has expired',
    next: LOGIN,
  },
  mcp_auth_invalid: {
    status: 409,
    message: 'this MCP server does not take its token any more',
    next: LOGIN,
  },
  mcp_auth_refresh_failed: {
    status: 409,
    message: 'the login to this MCP server could not be renewed',
    next: LOGIN,
  },
  mcp_auth_address_refused: { status: 400, message: 'a login must not lead to this address' },
  mcp_auth_discovery_failed: {
    status: 503,
    message: 'nothing tells how one logs in to this MCP server',
    next: 'set auth.issuer_url and auth.client_id of the server',
  },
  mcp_auth_state_invalid: {
    status: 400,
    message: 'this login was not begun here, has ended, or is older than ten minutes',
    next: `begin it again: ${LOGIN}`,
  },
  mcp_auth_refused: {
    status: 400,
    message: 'the login was refused',
    next: `begin it again: ${LOGIN}`,
  },
  mcp_auth_exchange_failed: {
    status: 400,
    message: 'the code was not taken',
    next: `begin it again: ${LOGIN}`,
  },
  mcp_auth_revocation_failed: {
    status: 503,
    message: 'the login is gone here, and its authorization server did not take the revocation',
    next: command('doctor', '--only', 'mcp'),
  },
  mcp_nonce_invalid: {
    status: 401,
    message: 'this is not the nonce that the session was started with, or it was used, or 30 s have passed',
    next: 'start the session again',
  },
  mcp_tools_unavailable: {
    status: 503,
    message: 'the plugin that has the tools does not run',
    next: command('plugin list'),
  },
  mcp_connections_full: {
    status: 409,
    message: 'there are as many MCP clients as are served, and each has a request under way',
  },
  mcp_connection_not_found: { status: 404, message: 'there is no such connection of this caller' },
  mcp_message_invalid: { status: 400, message: 'this is no message of JSON-RPC 2.0' },
  mcp_tool_not_found: { status: 404, message: 'the MCP server has no such tool', next: command('tool list') },
  mcp_call_failed: { status: 502, message: 'the MCP server refused the call' },
  mcp_scope_invalid: { status: 400, message: 'this scope does not go together with this workspace' },
})
