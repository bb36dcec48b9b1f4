import { command as commandLine } from '../../../kernel/kit/commands/command-line.js'
import { parseSecretRef } from '../../../kernel/kit/secret-ref.js'
import { shown } from '../../../kernel/kit/text.js'
import type { TrustApi } from '../../access/trust/api.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import { type AgentDefinition, AgentErrors } from './api.js'

/**
 * Refuses to start a definition that came with the files of a workspace and runs code of its own, until somebody trusted these
 * files; one that names a secret of somebody else is refused in any case.
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
      `agent ${name} names ${shown(String(foreign))}; a definition of a workspace may name only vault:mcp/ws/${workspace.id}/… and vault:hooks/ws/${workspace.id}/…`,
      { next: commandLine('agent info', name, '--workspace', workspace.id) },
    )
  const runs = [
    ...(command === undefined ? [] : ['a command']),
    ...(hooks.length > 0 ? ['hooks'] : []),
    ...(mcpServers.length > 0 ? ['MCP servers'] : []),
    // With it the prompt alone decides what is run.
    ...(permissions === 'approve-all' ? ['permissions approve-all'] : []),
  ]
  if (runs.length === 0 || (await trust.allows(workspace))) return
  throw AgentErrors.agent_untrusted(
    `agent ${name} brings ${runs.join(' and ')}, and workspace ${workspace.name} is not trusted or was changed since`,
    { next: commandLine('workspace trust', workspace.id) },
  )
}

/** Who answers where nobody can be asked: a daemon whose plugin for it does not run trusts no workspace. */
export const nobodyTrusted: Pick<TrustApi, 'allows'> = { allows: async () => false }

/** The environment of the daemon and the secrets of others are not for files that came with a repository. */
function isOwn(reference: string, workspaceId: string): boolean {
  const { scheme, rest } = parseSecretRef(reference) ?? {}
  return scheme === 'vault' && ['mcp', 'hooks'].some(space => rest?.startsWith(`${space}/ws/${workspaceId}/`))
}
