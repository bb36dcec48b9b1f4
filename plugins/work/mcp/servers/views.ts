import type { EffectiveSource } from '../../../../schemas/settings/hooks.js'
import type { McpAuthStatus, McpServerView } from '../../../../schemas/settings/mcp-servers.js'
import type { SettingsWriteTarget } from '../../../../schemas/settings.js'
import type { Connection } from '../client/connection.js'
import { asWritten, isWritable, type Server, type Source } from '../sources/declaration.js'

/** Targets of a change, by scope. */
export const targetsOf = {
  global: { config: 'global-config', sidecar: 'global-mcp-sidecar' },
  workspace: { config: 'workspace-config', sidecar: 'workspace-mcp-sidecar' },
} as const satisfies Record<string, Record<string, SettingsWriteTarget>>

/** A server for display: with names of variables, never their values. */
export function viewOf(
  server: Server,
  connection: Connection | undefined,
  auth: McpAuthStatus | undefined,
): McpServerView {
  const { declaration, source, shadowed, name } = server
  const { command, args, url, env, sandbox, secret_env, headers, secret_headers, catalog_entry, catalog_version } =
    asWritten(declaration)
  const scope = source.scope === 'workspace' ? 'workspace' : 'global'
  const failure = connection?.failure
  return {
    name,
    scope: source.scope,
    ...(source.workspaceId && { workspace_id: source.workspaceId }),
    transport: url === undefined ? 'stdio' : 'http',
    ...(command !== undefined && { command, args: [...(args ?? [])] }),
    ...(sandbox !== undefined && { sandbox }),
    ...(declaration.required !== undefined && { required: declaration.required }),
    ...(declaration.start_timeout !== undefined && { start_timeout: declaration.start_timeout }),
    ...(declaration.call_timeout !== undefined && { call_timeout: declaration.call_timeout }),
    ...(url !== undefined && { url }),
    ...keysAs('env_keys', env),
    ...keysAs('secret_env_keys', secret_env),
    ...keysAs('header_keys', headers),
    ...keysAs('secret_header_keys', secret_headers),
    ...authAs(declaration.auth),
    ...(auth && { auth_status: auth }),
    ...(catalog_entry !== undefined && { catalog_entry }),
    ...(catalog_version !== undefined && { catalog_version }),
    runtime_status: {
      configured: true,
      initialized: connection?.state === 'ready',
      probe: connection === undefined ? 'not_asked' : failure ? 'failed' : 'ok',
      state: connection?.state ?? 'idle',
      tool_count: connection?.known?.tools.length ?? 0,
      ...(failure && { reason: failure.reason, diagnostic: failure.why }),
    },
    declared_in: source.where,
    source_metadata: {
      available_targets: isWritable(source.kind) ? Object.values(targetsOf[scope]) : [],
      effective_source: sourceView(source),
      ...(shadowed.length > 0 && { shadowed_sources: shadowed.map(sourceView) }),
    },
  }
}

const keysAs = (member: string, values: object | undefined) =>
  values && Object.keys(values).length > 0 ? { [member]: Object.keys(values) } : {}

function authAs(auth: Server['declaration']['auth']): Pick<McpServerView, 'auth'> {
  if (!auth) return {}
  const { client_secret_ref: secret, registration: _, ...rest } = auth
  return { auth: { ...rest, client_secret_configured: secret !== undefined } }
}

/**
 * The contract knows only files and built-in servers: all other sources count as built-in, and `declared_in` names
 * them.
 */
function sourceView({ kind, scope, workspaceId, where }: Source): EffectiveSource {
  const workspace = workspaceId === undefined ? {} : { workspace_id: workspaceId }
  if (isWritable(kind)) return { kind, scope, ...workspace }
  if (scope !== 'agent') return { kind: 'builtin-provider', scope, ...workspace }
  const file = workspaceId === undefined ? 'global-agent-file' : 'workspace-agent-file'
  return { kind: file, scope, agent_name: where.replace(/^agent /, ''), ...workspace }
}
