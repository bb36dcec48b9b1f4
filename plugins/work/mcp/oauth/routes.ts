import * as v from 'valibot'
import { cli, describe, show, throws } from '../../../../kernel/kit/annotations/index.js'
import { SecretErrors } from '../../../../kernel/kit/secret-ref.js'
import { Fault, ok, type Route, routeOf } from '../../../../kernel/plugin.js'
import {
  BeginMcpAuthBody,
  BeginMcpAuthReply,
  ExchangeMcpAuthBody,
  McpAuthQuery,
  McpAuthStatus,
} from '../../../../schemas/settings/mcp-servers.js'
import { WRITE_ERRORS } from '../../../access/vault/api.js'
import { undo } from '../../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { McpErrors } from '../errors.js'
import type { McpService } from '../service.js'
import { PAGE_HEADERS, page } from './page.js'

const route = routeOf<McpService>(describe('Settings'))
const HTML = { as: 'bytes', types: ['text/html; charset=utf-8'] } as const
const at = '/api/settings/mcp-servers/{name}/auth' as const
const statusView = show(McpAuthStatus, '', [
  { of: 'server_name', header: 'Server' },
  { of: 'status', header: 'Login' },
  'issuer',
  { of: 'client_id', header: 'Client' },
  'scopes~list',
  { of: 'expires_at~time', header: 'Expires' },
  { of: 'refreshable', header: 'Renewed by itself' },
])
/** Errors of an unknown server. */
const unfound = [McpErrors.mcp_server_not_found, McpErrors.mcp_scope_invalid, ...REFERENCE_ERRORS]
const ofServer = {
  options: { workspace_id: 'workspace' },
  scoped: { scope: 'scope', workspace: 'workspace_id' },
} as const

/** Routes for logging in to servers. */
export const authRoutes: readonly Route<McpService>[] = [
  route({
    method: 'GET',
    path: '/api/mcp/oauth/callback',
    summary: 'Complete a login to an MCP server; the browser is redirected here',
    query: v.object({
      state: v.optional(v.pipe(v.string(), v.maxLength(512)), ''),
      code: v.optional(v.pipe(v.string(), v.maxLength(8192))),
      error: v.optional(v.pipe(v.string(), v.maxLength(512))),
      error_description: v.optional(v.pipe(v.string(), v.maxLength(4096))),
      iss: v.optional(v.pipe(v.string(), v.maxLength(2048))),
    }),
    headers: { 'Sec-Purpose': { required: false } },
    public: true,
    navigation: true,
    replies: { 200: HTML, 400: HTML, 503: HTML },
    handle: async (service, { query, headers }) => {
      // A prefetching browser must not use up the login, which is valid once.
      if (headers['sec-purpose']?.includes('prefetch'))
        return { status: 503, body: page('Not yet', 'Open this page to complete the login.'), headers: PAGE_HEADERS }
      try {
        const { name } = await service.logins.callback(query)
        const text = `The MCP server ${name} can be used now. You can close this page.`
        return ok(page('You are logged in', text), PAGE_HEADERS)
      } catch (error) {
        // Shown as a page, because a person is at the browser.
        if (!(error instanceof Fault)) throw error
        const { message, next, status } = error
        const body = page('The login failed', next === undefined ? message : `${message}. ${next}`)
        return { status: status === 503 ? (503 as const) : (400 as const), body, headers: PAGE_HEADERS }
      }
    },
  }),
  route({
    method: 'GET',
    path: `${at}/status`,
    summary: 'Show whether the daemon is logged in to an MCP server',
    query: McpAuthQuery,
    replies: { 200: McpAuthStatus },
    with: [cli('mcp auth status', { ...ofServer, view: statusView }), throws(...unfound)],
    handle: async (service, { params, query }) => ok(service.logins.status(await service.findAt(params.name, query))),
  }),
  route({
    method: 'POST',
    path: `${at}/begin`,
    audited: false,
    with: [
      throws(
        McpErrors.mcp_auth_unconfigured,
        McpErrors.mcp_auth_discovery_failed,
        McpErrors.mcp_auth_address_refused,
        SecretErrors.secret_ref_invalid,
        SecretErrors.secret_resolver_missing,
        SecretErrors.secret_resolver_conflict,
        SecretErrors.secret_missing,
        ...unfound,
      ),
    ],
    summary: 'Start a login to an MCP server',
    query: McpAuthQuery,
    body: BeginMcpAuthBody,
    privileged: true,
    replies: { 200: BeginMcpAuthReply },
    handle: async (service, { params, query }) =>
      ok(await service.logins.begin(await service.findAt(params.name, query))),
  }),
  route({
    method: 'POST',
    path: `${at}/exchange`,
    with: [
      undo({ by: 'never', why: 'end the login: svc mcp auth logout' }),
      throws(
        McpErrors.mcp_auth_state_invalid,
        McpErrors.mcp_auth_refused,
        McpErrors.mcp_auth_exchange_failed,
        McpErrors.mcp_auth_address_refused,
        McpErrors.mcp_auth_unconfigured,
        ...WRITE_ERRORS,
        ...unfound,
      ),
    ],
    summary: 'Complete a login to an MCP server with the code or the redirect URL',
    query: McpAuthQuery,
    body: ExchangeMcpAuthBody,
    privileged: true,
    replies: { 200: McpAuthStatus },
    handle: async (service, { params, query, body, actor }) => {
      const server = await service.findAt(params.name, query)
      await service.logins.exchange(server, body, actor)
      return ok(service.logins.status(server))
    },
  }),
  route({
    method: 'POST',
    path: `${at}/logout`,
    summary: 'Log out of an MCP server',
    query: McpAuthQuery,
    privileged: true,
    replies: { 200: McpAuthStatus },
    with: [
      undo({ by: 'never', why: 'a login is not kept; log in again: svc mcp auth login' }),
      cli('mcp auth logout', { ...ofServer, view: statusView }),
      throws(McpErrors.mcp_auth_revocation_failed, ...unfound),
    ],
    handle: async (service, { params, query, actor }) => ok(await service.logout(params.name, query, actor)),
  }),
]
