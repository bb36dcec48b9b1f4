import path from 'node:path'
import type { PluginKernel } from '../../kernel/plugin.js'
import type { Agent } from '../../schemas/agents.js'
import type { DiagnosticItem } from '../../schemas/kernel/diagnostic.js'
import type { Providers, ProviderUse } from '../providers/api.js'
import type { Workspace, Workspaces } from '../workspaces/api.js'
import { type AgentDefinition, AgentErrors, type AgentsApi, type LaunchPlan } from './api.js'
import { splitCommand } from './command.js'
import { digestOf } from './definition.js'
import { type AgentFolder, DefinitionFiles, type Found } from './files.js'
import { AGENT_NAME } from './frontmatter.js'
import { resolveProvider } from './runtime.js'
import { DefaultPermissions } from './settings.js'
import { agentToWire } from './wire.js'

const GENERAL_PROMPT =
  'You are a careful assistant that works in the files of this workspace. Say what you are going to do before you do it, change only what the request needs, and end with a short summary of what was done.'

/** The agent of those who name none: whatever provider is installed, without a command of its own (decision 19). */
const general: AgentDefinition = {
  name: 'general',
  prompt: GENERAL_PROMPT,
  tools: [],
  toolsets: [],
  denyTools: [],
  categoryPath: [],
  disabledSkills: [],
  mcpServers: [],
  hooks: [],
  origin: 'global',
  source: 'builtin',
  digest: digestOf(GENERAL_PROMPT),
}

/** Definitions of agents, read from their files when asked (Behaviour 4). */
export class AgentsService implements AgentsApi {
  readonly #files: DefinitionFiles

  constructor(private readonly kernel: PluginKernel<{ workspaces: typeof Workspaces; providers: typeof Providers }>) {
    this.#files = new DefinitionFiles((file, error) =>
      kernel.log.warn(`the agent definition ${file} is not valid: ${error.message}`, { kind: error.kind }),
    )
  }

  async list(workspace?: Workspace): Promise<readonly AgentDefinition[]> {
    const all = await this.#visible(workspace)
    const valid = [...all.values()].flatMap(found => (found.ok ? [found.definition] : []))
    if (!all.has(general.name)) valid.push(general)
    return valid.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async find(name: string, workspace?: Workspace): Promise<AgentDefinition> {
    const found = AGENT_NAME.test(name) ? await this.#first(name, workspace) : undefined
    if (found?.ok) return found.definition
    if (found) {
      throw AgentErrors.agent_invalid(`the definition of agent ${name} is not valid: ${found.error.message}`, {
        details: { path: found.path, error_kind: found.error.kind },
        next: `edit ${found.path}`,
      })
    }
    if (name === general.name) return general
    const where = workspace ? ` in workspace ${workspace.name}` : ''
    throw AgentErrors.agent_not_found(`there is no agent ${JSON.stringify(name.slice(0, 80))}${where}`)
  }

  async plan(name: string, workspace?: Workspace): Promise<LaunchPlan> {
    const definition = await this.find(name, workspace)
    const resolution = await resolveProvider(definition, this.kernel.needs.providers)
    if (!resolution.provider) throw this.#notRunnable(name, resolution)
    const { provider } = resolution
    const base = {
      definition,
      provider: provider.name,
      model: definition.model ?? '',
      permissions: definition.permissions ?? this.kernel.setting(DefaultPermissions),
    }
    if (definition.command !== undefined) {
      const argv = splitCommand(definition.command)
      if ('wrong' in argv) throw AgentErrors.agent_invalid(`agent ${name}: ${argv.wrong}`)
      return { ...base, argv }
    }
    const [command] = provider.argv
    if (command === undefined) {
      throw this.#notRunnable(name, {
        problem: `provider ${provider.name} runs the command of the agent, and it has none`,
      })
    }
    if (!(await this.kernel.needs.providers.detected(provider))) {
      const problem = `${command} of provider ${provider.name} is not on the PATH of the daemon`
      throw this.#notRunnable(name, { problem, install: provider.install })
    }
    return { ...base, argv: provider.argv }
  }

  #notRunnable(name: string, { problem, install }: { problem: string; install?: string | undefined }) {
    const help = install ? `install one: ${install}; or use --agent report, which needs none` : 'use --agent report'
    return AgentErrors.agent_not_runnable(`agent ${name} cannot be run: ${problem}; ${help}`, {
      ...(install ? { details: { install } } : {}),
    })
  }

  async wire(definition: AgentDefinition): Promise<Agent> {
    return agentToWire(definition, await resolveProvider(definition, this.kernel.needs.providers))
  }

  async wireList(workspace?: Workspace): Promise<Agent[]> {
    return Promise.all((await this.list(workspace)).map(definition => this.wire(definition)))
  }

  /** The workspace of a query; undefined without one. */
  workspace(reference: string | undefined): Promise<Workspace | undefined> {
    return reference ? this.kernel.needs.workspaces.find(reference) : Promise.resolve(undefined)
  }

  /** Doctor: definition files that are not valid, in the home and in every workspace. */
  async check(): Promise<DiagnosticItem[]> {
    const broken = new Map<string, Found & { ok: false }>()
    for (const view of this.#views()) {
      for (const found of (await this.#visible(view)).values()) if (!found.ok) broken.set(found.path, found)
    }
    return [...broken.values()].map(({ name, path: file, error }) => ({
      id: `agents:${file}`,
      code: 'agent_invalid',
      category: 'agents',
      severity: 'warning',
      title: `agent ${name} is not valid`,
      message: `${file}: ${error.message}; until it is mended the agent cannot be used`,
      data_freshness: 'live',
      suggested_command: `svc agent info ${name}`,
      evidence: { path: file, error_kind: error.kind },
    }))
  }

  /** What providers are used for, for their doctor check. */
  async uses(): Promise<ProviderUse[]> {
    const uses = new Map<string, ProviderUse>()
    for (const view of this.#views()) {
      for (const definition of await this.list(view)) {
        if (definition === general) continue
        const { provider } = await resolveProvider(definition, this.kernel.needs.providers)
        if (!provider) continue
        const words = definition.command === undefined ? [] : splitCommand(definition.command)
        const command = 'wrong' in words ? undefined : words[0]
        uses.set(`${definition.path}`, { provider: provider.name, by: definition.name, command })
      }
    }
    return [...uses.values()]
  }

  #views(): (Workspace | undefined)[] {
    return [undefined, ...this.kernel.needs.workspaces.list()]
  }

  /** Behaviour 4.2: the workspace's root, its further folders in order, the home, what comes with the daemon. */
  #folders(workspace: Workspace | undefined): AgentFolder[] {
    const own = workspace ? [workspace.rootDir, ...workspace.addDirs] : []
    const share = this.kernel.env.SVC_SHARE_DIR
    const { home } = this.kernel
    return [
      ...own.map(root => ({
        root,
        folder: path.join(root, '.svc', 'agents'),
        origin: 'workspace' as const,
        source: 'workspace' as const,
        ...(workspace ? { workspaceId: workspace.id } : {}),
      })),
      { root: home.root, folder: home.path('agents'), origin: 'global', source: 'home' },
      ...(share
        ? [{ root: share, folder: path.join(share, 'agents'), origin: 'global' as const, source: 'builtin' as const }]
        : []),
    ]
  }

  /** By precedence the first file of that name, valid or not: a broken one does not uncover another agent. */
  async #first(name: string, workspace: Workspace | undefined): Promise<Found | undefined> {
    for (const folder of this.#folders(workspace)) {
      const found = await this.#files.read(folder, name)
      if (found) return found
    }
    return undefined
  }

  async #visible(workspace: Workspace | undefined): Promise<Map<string, Found>> {
    const all = new Map<string, Found>()
    for (const folder of this.#folders(workspace)) {
      for (const name of await this.#files.names(folder)) {
        if (all.has(name)) continue
        const found = await this.#files.read(folder, name)
        if (found) all.set(name, found)
      }
    }
    return all
  }
}
