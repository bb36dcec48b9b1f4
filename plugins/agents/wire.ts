import type { Agent, AgentDiagnostic, AgentInput } from '../../schemas/agents.js'
import { looksSecret } from '../providers/api.js'
import type { AgentDefinition } from './api.js'
import type { McpServerInput } from './definition/frontmatter.js'
import { effectiveRuntime, type Resolution } from './runtime.js'

/** Definitions as the contract has them, each made once: a list of thousands is asked for again and again. */
export class WireCache {
  readonly #made = new WeakMap<AgentDefinition, { readonly resolution: Resolution; readonly agent: Agent }>()

  agent(definition: AgentDefinition, resolution: Resolution): Agent {
    const made = this.#made.get(definition)
    if (made && isSame(made.resolution, resolution)) return made.agent
    const agent = agentToWire(definition, resolution)
    this.#made.set(definition, { resolution, agent })
    return agent
  }
}

function isSame(a: Resolution, b: Resolution): boolean {
  if (a.provider && b.provider) return a.provider === b.provider && a.source === b.source
  return !a.provider && !b.provider && a.problem === b.problem
}

/** The fields of a definition that a request may write. */
export function agentToInput(definition: AgentDefinition): AgentInput {
  const { name, prompt, command, provider, model, reasoningEffort, permissions, disabledSkills } = definition
  const list = (texts: readonly string[]) => (texts.length > 0 ? [...texts] : undefined)
  return withoutUndefined({
    name,
    prompt,
    command,
    provider,
    model,
    reasoning_effort: reasoningEffort as AgentInput['reasoning_effort'],
    permissions,
    tools: list(definition.tools),
    toolsets: list(definition.toolsets),
    deny_tools: list(definition.denyTools),
    category_path: list(definition.categoryPath),
    skills: disabledSkills.length > 0 ? { disabled: [...disabledSkills] } : undefined,
  })
}

const withoutUndefined = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T

/** A definition as the contract has it; values that look like secrets stay behind. */
function agentToWire(definition: AgentDefinition, resolution: Resolution): Agent {
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
    const names = definition.hooks.map(hook => hook.name).join(', ')
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
