import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../../kernel/kit/canonical.js'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { iso } from '../../../../kernel/plugin.js'
import type { McpAuthStatus } from '../../../../schemas/settings/mcp-servers.js'
import { McpErrors } from '../errors.js'
import type { Declared, Login, Server } from '../sources/declaration.js'
import type { LoginRow } from './login-table.js'

/** Identity of a login: the declaring place of a server, its address and its login settings. */
export const bindingOf = ({ source, declaration }: Declared): string =>
  createHash('sha256')
    .update(
      canonicalJson([
        source.kind,
        source.workspaceId ?? '',
        source.where,
        declaration.name,
        declaration.url ?? '',
        declaration.auth ?? null,
      ]),
    )
    .digest('hex')

/** Login settings of a server. @throws Fault `mcp_auth_unconfigured` */
export function loginOf(server: Server): Login {
  const { auth, url } = server.declaration
  if (url === undefined)
    throw McpErrors.mcp_auth_unconfigured(`${server.name} is started by a command: it has no login`)
  return auth ?? {}
}

export const clientIdOf = ({ client }: LoginRow) =>
  String((JSON.parse(client) as { client_id?: unknown }).client_id ?? '')

/** The command that starts a login. */
export function nextOf({ name, source }: Server): string {
  const workspaceOption = source.workspaceId === undefined ? [] : ['--workspace', source.workspaceId]
  return command('mcp auth login', name, ...workspaceOption)
}

/** Status of a login. @param row undefined without a login; @param now epoch milliseconds */
export function statusOf(server: Server, row: LoginRow | undefined, now: number): McpAuthStatus {
  const { name, source, declaration } = server
  const { auth, url } = declaration
  return {
    ...(auth && { auth_type: 'oauth' }),
    ...(row && { issuer: row.issuer, scopes: row.scopes.split(' ').filter(Boolean), client_id: clientIdOf(row) }),
    ...(auth?.issuer_url && !row && { issuer: auth.issuer_url }),
    expires_at: row?.expires_at == null ? null : iso(row.expires_at),
    refreshable: row?.refreshable === 1,
    ...(url !== undefined && { remote_url: url }),
    scope: source.scope,
    server_name: name,
    status: auth ? wordOf(row, now) : 'unconfigured',
    token_present: row !== undefined,
    updated_at: row ? iso(row.updated_at) : null,
    ...(source.workspaceId !== undefined && { workspace_id: source.workspaceId }),
  }
}

/** Status of the login to a removed server. */
export const revokedStatus = (name: string, workspaceId: string | undefined): McpAuthStatus => ({
  expires_at: null,
  refreshable: false,
  scope: workspaceId === undefined ? 'global' : 'workspace',
  server_name: name,
  status: 'revoked',
  token_present: false,
  updated_at: null,
  ...(workspaceId !== undefined && { workspace_id: workspaceId }),
})

function wordOf(row: LoginRow | undefined, now: number): string {
  if (!row) return 'required'
  if (row.problem !== null) return row.problem.replace('mcp_auth_', '')
  const isExpired = row.expires_at !== null && row.expires_at <= now
  return isExpired && row.refreshable === 0 ? 'expired' : 'authenticated'
}
