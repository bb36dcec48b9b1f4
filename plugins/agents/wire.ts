import type { Agent, AgentDiagnostic } from '../../schemas/agents.js'
import { looksSecret } from '../providers/api.js'
import type { AgentDefinition } from './api.js'
import type { McpServerInput } from './frontmatter.js'
import { effectiveRuntime, type Resolution } from './runtime.js'

/** A definition as the contract has it; values that look like secrets stay behind. */
export function agentToWire(definition: AgentDefinition, resolution: Resolution): Agent {
  const diagnostics = diagnose(definition, resolution)
  return {
    name: definition.name,
    prompt: definition.prompt,
    provider: resolution.provider?.name ?? definition.provider ?? '',
    origin: definition.origin,
    definition_digest: definition.digest,
    ...(definition.workspaceId === undefined ? {} : { workspace_id: definition.workspaceId }),
    ...(definition.command === undefined ? {} : { command: definition.command }),
    ...(definition.model === undefined ? {} : { model: definition.model }),
    ...(definition.reasoningEffort === undefined
      ? {}
      : { reasoning_effort: definition.reasoningEffort as Agent['reasoning_effort'] }),
    ...(definition.permissions === undefined ? {} : { permissions: definition.permissions }),
    tools: [...definition.tools],
    toolsets: [...definition.toolsets],
    deny_tools: [...definition.denyTools],
    category_path: [...definition.categoryPath],
    skills: { disabled: [...definition.disabledSkills] },
    mcp_servers: definition.mcpServers.map(serverToWire),
    effective_runtime: effectiveRuntime(definition, resolution),
    ...(diagnostics.length > 0 ? { diagnostics } : {}),
  }
}

function diagnose(definition: AgentDefinition, resolution: Resolution): AgentDiagnostic[] {
  const path = definition.path ?? ''
  const all: AgentDiagnostic[] = []
  if (!resolution.provider) all.push({ error_kind: 'provider_unresolved', message: resolution.problem, path })
  if (definition.hooks.length > 0) {
    const names = definition.hooks.join(', ')
    all.push({ error_kind: 'hooks_not_run', message: `this daemon has no plugin that runs the hooks ${names}`, path })
  }
  return all
}

function serverToWire({ auth, env, ...server }: McpServerInput): NonNullable<Agent['mcp_servers']>[number] {
  const { client_secret_ref: secret, ...known } = auth ?? {}
  const shown = (name: string, value: string) => [name, looksSecret(name) ? '[redacted]' : value] as const
  return {
    ...server,
    ...(env ? { env: Object.fromEntries(Object.entries(env).map(([name, value]) => shown(name, value))) } : {}),
    ...(auth ? { auth: { ...known, client_secret_configured: secret !== undefined } } : {}),
  }
}
