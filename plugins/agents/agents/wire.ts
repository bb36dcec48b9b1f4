import type { Agent, AgentDiagnostic, AgentInput } from '../../../schemas/agents.js'
import { looksSecret, type Provider, type ProvidersApi } from '../providers/api.js'
import { type AgentDefinition, type PermissionMode, unheldText } from './api.js'
import { splitCommand } from './definition/command.js'
import type { McpServerInput } from './definition/frontmatter.js'
import { effectiveRuntime, type Resolution } from './runtime.js'

/** Wire forms of definitions, cached because lists of thousands are requested repeatedly. */
export class WireCache {
  readonly #made = new WeakMap<AgentDefinition, { readonly resolution: Resolution; readonly agent: Agent }>()
  readonly #texts = new WeakMap<Agent, string>()

  /** @param permissions default mode */
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

  /** The JSON of {@link agent}: most of the time of a page is for it. */
  text(definition: AgentDefinition, resolution: Resolution): string {
    const agent = this.agent(definition, resolution)
    const known = this.#texts.get(agent)
    if (known !== undefined) return known
    const text = JSON.stringify(agent)
    this.#texts.set(agent, text)
    return text
  }
}

function isSame(a: Resolution, b: Resolution): boolean {
  if (a.provider && b.provider) return a.provider === b.provider && a.source === b.source
  return !a.provider && !b.provider && a.problem === b.problem
}

/** The writable fields of a definition. */
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

/** Wire form of a definition; values that look like secrets are omitted. */
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

/** Unusable entries of a definition. */
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

/** The provider whose program a definition starts, if it is in the catalog. */
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
