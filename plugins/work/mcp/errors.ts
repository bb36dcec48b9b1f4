import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../kernel/plugin.js'

const LIST = command('mcp list')
const LOGIN = command('mcp auth login', placeholder('name'))

export const McpErrors = defineErrors({
  mcp_file_invalid: { status: 422, message: 'a file with MCP servers cannot be used', next: LIST },
  mcp_secret_forbidden: {
    status: 422,
    message: 'a file of a workspace references a secret of another owner',
  },
  mcp_server_required: {
    status: 409,
    message: 'a session needs this MCP server, which cannot start',
    next: command('mcp show', placeholder('name'), '--probe'),
  },
  mcp_server_not_found: { status: 404, message: 'no MCP server has this name', next: LIST },
  mcp_server_invalid: { status: 400, message: 'the declaration of this MCP server is not valid' },
  mcp_server_name_taken: {
    status: 409,
    message: 'the name of another MCP server leads to the same tool ids',
    next: LIST,
  },
  mcp_server_read_only: {
    status: 409,
    message: 'this MCP server is declared in a place that requests cannot change',
    next: LIST,
  },
  mcp_server_in_use: { status: 409, message: 'a tool of this MCP server is being called', next: LIST },
  mcp_unreachable: { status: 503, message: 'the MCP server does not answer', next: LIST },
  mcp_auth_unconfigured: {
    status: 409,
    message: 'this MCP server requires a login, but none is configured',
    next: command('mcp add', '--help'),
  },
  mcp_auth_required: {
    status: 409,
    message: 'this MCP server requires a login',
    next: LOGIN,
  },
  mcp_auth_expired: {
    status: 409,
    message: 'the login to this MCP server has expired',
    next: LOGIN,
  },
  mcp_auth_invalid: {
    status: 409,
    message: 'this MCP server no longer accepts its token',
    next: LOGIN,
  },
  mcp_auth_refresh_failed: {
    status: 409,
    message: 'the login to this MCP server could not be renewed',
    next: LOGIN,
  },
  mcp_auth_address_refused: { status: 400, message: 'the login uses an address that is not allowed' },
  mcp_auth_discovery_failed: {
    status: 503,
    message: 'the login server of this MCP server cannot be discovered',
    next: 'set auth.issuer_url and auth.client_id of the server',
  },
  mcp_auth_state_invalid: {
    status: 400,
    message: 'this login was not started here, has ended, or is older than ten minutes',
    next: `start it again: ${LOGIN}`,
  },
  mcp_auth_refused: {
    status: 400,
    message: 'the login was refused',
    next: `start it again: ${LOGIN}`,
  },
  mcp_auth_exchange_failed: {
    status: 400,
    message: 'the code was not accepted',
    next: `start it again: ${LOGIN}`,
  },
  mcp_auth_revocation_failed: {
    status: 503,
    message: 'the login was deleted here, but its authorization server did not accept the revocation',
    next: command('doctor', '--only', 'mcp'),
  },
  mcp_nonce_invalid: {
    status: 401,
    message: 'the nonce does not belong to this session, was already used, or is older than 30 s',
    next: 'start the session again',
  },
  mcp_tools_unavailable: {
    status: 503,
    message: 'the plugin that has the tools does not run',
    next: command('plugin list'),
  },
  mcp_connections_full: {
    status: 409,
    message: 'the maximum number of MCP clients is connected, and each has a request in progress',
  },
  mcp_connection_not_found: { status: 404, message: 'this caller has no such connection' },
  mcp_message_invalid: { status: 400, message: 'this is not a JSON-RPC 2.0 message' },
  mcp_tool_not_found: { status: 404, message: 'the MCP server has no such tool', next: command('tool list') },
  mcp_call_failed: { status: 502, message: 'the MCP server refused the call' },
  mcp_scope_invalid: { status: 400, message: 'this scope does not match this workspace' },
})
