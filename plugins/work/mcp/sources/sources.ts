import path from 'node:path'
import { messageOf, type PluginKernel } from '../../../../kernel/plugin.js'
import type { AgentDefinition, Agents } from '../../../agents/agents/api.js'
import { ownFolder, type Workspace, type Workspaces } from '../../../desk/workspaces/api.js'
import { McpServerKind, McpServerSources } from '../api.js'
import { McpServers } from '../settings.js'
import { type Declared, merged, type Server, type Source, type SourceKind } from './declaration.js'
import { checkReferences, KeptFiles, readOverlay, readSidecar } from './files.js'

/** For whom servers are looked up: everybody, a workspace, or an agent. */
export interface Place {
  readonly workspace?: Workspace | undefined
  readonly definition?: AgentDefinition | undefined
}

/** Servers of a place, and the sources that could not be read. */
export interface Found {
  readonly servers: readonly Server[]
  readonly problems: readonly { readonly where: string; readonly error: unknown }[]
}

/** How problems name the sources. */
export const NAMED = {
  'global-config': 'config.json',
  'global-mcp-sidecar': 'mcp.json',
  'workspace-config': '.svc',
  'workspace-mcp-sidecar': '.svc',
  agent: 'the agent',
  'agent-mcp-sidecar': 'mcp.json of the agent',
  extension: 'extensions',
  provider: 'providers',
  skill: 'skills',
} as const satisfies Record<SourceKind, string>

export type SourcesKernel = PluginKernel<{ workspaces: typeof Workspaces; agents: typeof Agents }>

/** Reads the servers of all sources when somebody asks: what a person has saved counts from then on. */
export class Sources {
  readonly #files: KeptFiles
  /** Of the configuration as it was last. */
  #config: { readonly servers: object; readonly declared: readonly Declared[] } | undefined

  constructor(
    private readonly kernel: SourcesKernel,
    /** Told of what was read. */
    private readonly noticed: (declared: readonly Declared[]) => void = () => {},
  ) {
    this.#files = new KeptFiles(kernel.clock)
  }

  /** A source that cannot be read hurts no other one: it is a problem of the reply. */
  async read(place: Place): Promise<Found> {
    const { declared, problems } = await this.all(place)
    this.noticed(declared)
    return { servers: merged(declared), problems }
  }

  /** Also those that are shadowed. */
  async all(place: Place): Promise<Pick<Found, 'problems'> & { readonly declared: readonly Declared[] }> {
    const problems: { where: string; error: unknown }[] = []
    const of = async (where: string, read: () => Promise<readonly Declared[]> | readonly Declared[]) => {
      try {
        return await read()
      } catch (error) {
        problems.push({ where, error })
        return []
      }
    }
    const declared = await Promise.all([
      of(NAMED['global-config'], () => this.#ofConfig()),
      of(NAMED['global-mcp-sidecar'], () => this.#ofHome()),
      ...(place.workspace ? this.#ofWorkspace(place.workspace).map(read => of(NAMED['workspace-config'], read)) : []),
      of(NAMED.provider, () => this.#contributed('provider', place)),
      of(NAMED.agent, () => this.#ofAgent(place)),
      of(NAMED['agent-mcp-sidecar'], () => this.#besideAgent(place)),
      of(NAMED.skill, () => this.#contributed('skill', place)),
      of(NAMED.extension, () => this.#ofRecords(place)),
    ])
    return { declared: declared.flat(), problems }
  }

  #ofConfig(): readonly Declared[] {
    const source = { kind: 'global-config', scope: 'global', where: 'config.json' } as const
    const servers = this.kernel.config.get(McpServers)
    if (this.#config?.servers !== servers) {
      const declared = Object.entries(servers).map(([name, server]) => ({ source, declaration: { name, ...server } }))
      this.#config = { servers, declared }
    }
    return this.#config.declared
  }

  async #ofHome(): Promise<Declared[]> {
    const { root } = this.kernel.home
    const source = { kind: 'global-mcp-sidecar', scope: 'global', where: 'mcp.json' } as const
    return (await this.#files.read(path.join(root, 'mcp.json'), root, readSidecar)).map(declaration => ({
      source,
      declaration,
    }))
  }

  /** Both files of a workspace; neither says anything before somebody trusted them. */
  #ofWorkspace(workspace: Workspace): (() => Promise<Declared[]>)[] {
    const own = ownFolder(workspace.rootDir, this.kernel.home.root)
    if (own === undefined) return []
    const read = async (kind: 'workspace-config' | 'workspace-mcp-sidecar', name: string, how: typeof readSidecar) => {
      if (!(await this.kernel.needs.agents.mayRunFilesOf(workspace))) return []
      const file = path.join(own, name)
      const servers = await this.#files.read(file, workspace.rootDir, how)
      checkReferences(file, servers, workspace)
      const source = { kind, scope: 'workspace', workspaceId: workspace.id, where: `.svc/${name}` } as const
      return servers.map(declaration => ({ source, declaration }))
    }
    return [
      () => read('workspace-config', 'config.json', readOverlay),
      () => read('workspace-mcp-sidecar', 'mcp.json', readSidecar),
    ]
  }

  async #ofAgent({ definition, workspace }: Place): Promise<Declared[]> {
    if (!definition || !(await this.#mayRun(definition, workspace))) return []
    const source = this.#sourceOfAgent('agent', definition, workspace)
    return definition.mcpServers.map(declaration => ({ source, declaration }))
  }

  /** The file beside an AGENT.md counts like the definition itself, and is as trusted. */
  async #besideAgent({ definition, workspace }: Place): Promise<Declared[]> {
    if (!definition?.path || (definition.source !== 'home' && definition.source !== 'workspace')) return []
    if (!(await this.#mayRun(definition, workspace))) return []
    const folder = path.dirname(definition.path)
    const file = path.join(folder, 'mcp.json')
    const servers = await this.#files.read(file, folder, readSidecar)
    if (definition.source === 'workspace' && workspace) checkReferences(file, servers, workspace)
    const source = this.#sourceOfAgent('agent-mcp-sidecar', definition, workspace)
    return servers.map(declaration => ({ source, declaration }))
  }

  /** Definitions that came with the files of a workspace run nothing before somebody trusted these. */
  async #mayRun({ source }: AgentDefinition, workspace: Workspace | undefined): Promise<boolean> {
    if (source !== 'workspace') return true
    return workspace !== undefined && (await this.kernel.needs.agents.mayRunFilesOf(workspace))
  }

  #sourceOfAgent(
    kind: 'agent' | 'agent-mcp-sidecar',
    { name, origin, extension }: AgentDefinition,
    workspace?: Workspace,
  ): Source {
    const from = broughtWith(`agent ${name}`, extension)
    return origin === 'workspace' && workspace
      ? { kind, scope: 'agent', agent: name, workspaceId: workspace.id, ...from }
      : { kind, scope: 'agent', agent: name, ...from }
  }

  async #contributed(kind: 'provider' | 'skill', place: Place): Promise<Declared[]> {
    const contributors = this.kernel.collect(McpServerSources).filter(({ entry }) => entry.kind === kind)
    const all = await Promise.all(contributors.map(({ entry }) => entry.read(place)))
    const workspaceId = place.workspace?.id
    for (const { where, declaration, ofWorkspace } of all.flat())
      if (ofWorkspace && place.workspace) checkReferences(where, [declaration], place.workspace)
    return all.flat().map(({ where, declaration, ofWorkspace, extension }) => ({
      declaration,
      source:
        ofWorkspace && workspaceId
          ? { kind, scope: 'workspace', workspaceId, ...broughtWith(where, extension) }
          : { kind, scope: 'global', ...broughtWith(where, extension) },
    }))
  }

  /** Records of extensions, and of whoever writes records. */
  #ofRecords({ workspace }: Place): Declared[] {
    return this.kernel.records.list({ kind: McpServerKind }).flatMap(({ id, scope, spec, source }): Declared[] => {
      if (scope.kind === 'workspace' && scope.id !== workspace?.id) return []
      const isExtension = source.kind === 'extension'
      const from = { where: `${source.kind} ${source.id || id}`, ...(isExtension && { extension: source.id }) }
      const kind = 'extension'
      const { name } = spec
      return [
        {
          declaration: { ...spec, name },
          source:
            scope.kind === 'workspace'
              ? { kind, scope: 'workspace', workspaceId: scope.id ?? '', ...from }
              : { kind, scope: 'global', ...from },
        },
      ]
    })
  }
}

/** What an extension brings is told apart from what has the same name elsewhere. */
const broughtWith = (where: string, extension: string | undefined): Pick<Source, 'where' | 'extension'> =>
  extension === undefined ? { where } : { where: `${where} of ${extension}`, extension }

/** What one is told of sources that could not be read. */
export const problemTexts = ({ problems }: Found): string[] => problems.map(({ error }) => messageOf(error))
