import { command as commandLine } from '../../../kernel/kit/commands/command-line.js'
import { parseSecretRef } from '../../../kernel/kit/secret-ref.js'
import { shown } from '../../../kernel/kit/text.js'
import type { TrustApi } from '../../access/trust/api.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import { type AgentDefinition, AgentErrors } from './api.js'

/**
 * Refuses to start a definition from a workspace's files that runs code, until a person trusts these files; one that
 * refers to foreign secrets is always refused.
 * @throws Fault `agent_untrusted`, `agent_reference_forbidden`
 */
export async function checkTrusted(
  definition: AgentDefinition,
  workspace: Workspace | undefined,
  trust: Pick<TrustApi, 'allows'> | undefined,
): Promise<void> {
  if (definition.source !== 'workspace' || !workspace || !trust) return
  const { name, command, hooks, mcpServers, permissions } = definition
  const foreign = [...hooks, ...mcpServers]
    .flatMap(({ secret_env: secrets }) => Object.values((secrets ?? {}) as Readonly<Record<string, unknown>>))
    .find(reference => !isOwn(String(reference), workspace.id))
  if (foreign !== undefined)
    throw AgentErrors.agent_reference_forbidden(
      `agent ${name} names ${shown(String(foreign))}; a definition in a workspace may reference only vault:mcp/ws/${workspace.id}/… and vault:hooks/ws/${workspace.id}/…`,
      { next: commandLine('agent info', name, '--workspace', workspace.id) },
    )
  const runs = [
    ...(command === undefined ? [] : ['a command']),
    ...(hooks.length > 0 ? ['hooks'] : []),
    ...(mcpServers.length > 0 ? ['MCP servers'] : []),
    // In this mode no person approves the commands that the prompt requests.
    ...(permissions === 'approve-all' ? ['permissions approve-all'] : []),
  ]
  if (runs.length === 0 || (await trust.allows(workspace))) return
  throw AgentErrors.agent_untrusted(
    `agent ${name} has ${runs.join(' and ')}, but workspace ${workspace.name} is not trusted or has changed since`,
    { next: commandLine('workspace trust', workspace.id) },
  )
}

/** The default without a running trust plugin: no workspace is trusted. */
export const nobodyTrusted: Pick<TrustApi, 'allows'> = { allows: async () => false }

/**
 * Whether a reference is a secret of the workspace: files from a repository must not use the daemon's environment or
 * foreign secrets.
 */
function isOwn(reference: string, workspaceId: string): boolean {
  const { scheme, rest } = parseSecretRef(reference) ?? {}
  return scheme === 'vault' && ['mcp', 'hooks'].some(space => rest?.startsWith(`${space}/ws/${workspaceId}/`))
}
