import type { Agent, AgentDiagnostic, AgentInput } from '../../../schemas/agents.js'
import { looksSecret, type Provider, type ProvidersApi } from '../providers/api.js'
import { type AgentDefinition, type PermissionMode, unheldText } from './api.js'
import { splitCommand } from './definition/command.js'
import type { McpServerInput } from './definition/frontmatter.js'
import { effectiveRuntime, type Resolution } from './runtime.js'

/** Definitions as the contract has them, each made once: a list of thousands is asked for again and again. */
export class WireCache {
  readonly #made = new WeakMap<AgentDefinition, { readonly resolution: Resolution; readonly agent: Agent }>()

  /** @param permissions mode of a definition that sets none */
  constructor(
    private readonly permissions: PermissionMode,
    private readonly providers: Pick<ProvidersApi, 'programOf'>,
  ) {}

  agent(definition: AgentDefinition, resolution: Resolution): Agent {
    const made = this.#made.get(definition)
    if (made && isSame(made.resolution, resolution)) return made.agent
    const agent = agentToWire(definition, resolution, this.permissions, this.providers)
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
function agentToWire(
  definition: AgentDefinition,
  resolution: Resolution,
  permissions: PermissionMode,
  providers: Pick<ProvidersApi, 'programOf'>,
): Agent {
  const effective = definition.permissions ?? permissions
  const diagnostics = diagnose(definition, resolution, effective, providers)
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
    effective_permissions: effective,
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

/** Entries of a definition that cannot be used. */
export const leftOutOf = ({ leftOut = [], path = '' }: AgentDefinition): AgentDiagnostic[] =>
  leftOut.map(message => ({ error_kind: 'entry', message, path }))

function diagnose(
  definition: AgentDefinition,
  resolution: Resolution,
  permissions: PermissionMode,
  providers: Pick<ProvidersApi, 'programOf'>,
): AgentDiagnostic[] {
  const path = definition.path ?? ''
  const all: AgentDiagnostic[] = leftOutOf(definition)
  if (!resolution.provider) all.push({ error_kind: 'provider_unresolved', message: resolution.problem, path })
  const program = programOf(definition, resolution, providers)
  if (program?.neverAsks && permissions !== 'approve-all') {
    const message = unheldText(program.displayName, permissions)
    all.push({ error_kind: 'permissions_not_held', message, path })
  }
  return all
}

/** Whose program is started for a definition, where it is one of the catalog. */
function programOf(
  { command }: AgentDefinition,
  { provider }: Resolution,
  providers: Pick<ProvidersApi, 'programOf'>,
): Provider | undefined {
  if (command === undefined) return provider
  const words = splitCommand(command)
  return 'wrong' in words ? undefined : providers.programOf(words)
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
