import { lstat } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import { messageOf, type PluginKernel } from '../../../../kernel/plugin.js'
import type { AgentDefinition, Agents } from '../../../agents/agents/api.js'
import { ownFolder, type Workspace, type Workspaces } from '../../../desk/workspaces/api.js'
import { McpServerKind, McpServerSources } from '../api.js'
import { refBase } from '../servers/own-secrets.js'
import { McpServers } from '../settings.js'
import { type Declared, merged, type Server, type Source, type SourceKind } from './declaration.js'
import { checkReferences, KeptFiles, readForeign, readOverlay, readSidecar } from './files.js'

/** For whom servers are looked up: everybody, a workspace, or an agent. */
export interface Place {
  readonly workspace?: Workspace | undefined
  readonly definition?: AgentDefinition | undefined
}

/** Servers of a place, and the sources that could not be read. */
export interface Found {
  readonly servers: readonly Server[]
  readonly problems: readonly Problem[]
  /** What a person should know of sources that were read. */
  readonly remarks: readonly string[]
}

/** A source, or a part of it, that could not be read. */
export interface Problem {
  readonly where: string
  readonly error: unknown
  /** It is in a file of another program: a session starts without what it declares. */
  readonly isForeign?: boolean
}

/** The file of other programs, in the folder of the workspace itself. */
const FOREIGN_FILE = '.mcp.json'

/** How problems name the sources. */
export const NAMED = {
  'global-config': 'config.json',
  'global-mcp-sidecar': 'mcp.json',
  'workspace-config': '.svc',
  'workspace-foreign': FOREIGN_FILE,
  'workspace-mcp-sidecar': '.svc',
  agent: 'the agent',
  'agent-mcp-sidecar': 'mcp.json of the agent',
  extension: 'extensions',
  provider: 'providers',
  skill: 'skills',
} as const satisfies Record<SourceKind, string>

/** Whether problems of that name are of a workspace, and of nothing that everybody has. */
export const isOfWorkspace = (where: string): boolean =>
  where === NAMED['workspace-config'] || where === NAMED['workspace-foreign']

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
    const { declared, problems, remarks } = await this.all(place)
    this.noticed(declared)
    return { servers: merged(declared), problems, remarks }
  }

  /** Also those that are shadowed. */
  async all(place: Place): Promise<Omit<Found, 'servers'> & { readonly declared: readonly Declared[] }> {
    const problems: Problem[] = []
    const remarks: string[] = []
    const of = async (where: string, read: () => Promise<readonly Declared[]> | readonly Declared[]) => {
      try {
        return await read()
      } catch (error) {
        problems.push({ where, error, isForeign: where === FOREIGN_FILE })
        return []
      }
    }
    const { workspace } = place
    const declared = await Promise.all([
      of(NAMED['global-config'], () => this.#ofConfig()),
      of(NAMED['global-mcp-sidecar'], () => this.#ofHome()),
      ...(workspace ? this.#ofWorkspace(workspace, { of, problems, remarks }) : []),
      of(NAMED.provider, () => this.#contributed('provider', place)),
      of(NAMED.agent, () => this.#ofAgent(place)),
      of(NAMED['agent-mcp-sidecar'], () => this.#besideAgent(place)),
      of(NAMED.skill, () => this.#contributed('skill', place)),
      of(NAMED.extension, () => this.#ofRecords(place)),
    ])
    return { declared: declared.flat(), problems, remarks }
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
    const file = path.join(root, 'mcp.json')
    const servers = await this.#files.read(file, () => readSidecar(file, root))
    return servers.map(declaration => ({ source, declaration }))
  }

  /** The files of a workspace; none says anything before somebody trusted them. */
  #ofWorkspace(workspace: Workspace, { of, problems, remarks }: Reading): Promise<readonly Declared[]>[] {
    const foreign = () => of(NAMED['workspace-foreign'], () => this.#foreign(workspace, problems, remarks))
    const own = ownFolder(workspace.rootDir, this.kernel.home.root)
    if (own === undefined) return [foreign()]
    const read = async (kind: 'workspace-config' | 'workspace-mcp-sidecar', name: string, how: typeof readSidecar) => {
      if (!(await this.kernel.needs.agents.mayRunFilesOf(workspace))) return []
      const file = path.join(own, name)
      const servers = await this.#files.read(file, () => how(file, workspace.rootDir))
      checkReferences(file, servers, workspace)
      const source = { kind, scope: 'workspace', workspaceId: workspace.id, where: `.svc/${name}` } as const
      return servers.map(declaration => ({ source, declaration }))
    }
    return [
      of(NAMED['workspace-config'], () => read('workspace-config', 'config.json', readOverlay)),
      foreign(),
      of(NAMED['workspace-mcp-sidecar'], () => read('workspace-mcp-sidecar', 'mcp.json', readSidecar)),
    ]
  }

  /** The `.mcp.json` that other programs read as well: it stays where it is, and each server that is wrong costs itself. */
  async #foreign({ id, rootDir, name }: Workspace, problems: Problem[], remarks: string[]): Promise<Declared[]> {
    const file = path.join(rootDir, FOREIGN_FILE)
    const workspace = this.kernel.needs.workspaces.get(id)
    if (!workspace) return []
    if (!(await this.kernel.needs.agents.mayRunFilesOf(workspace))) {
      const isThere = await lstat(file).then(
        () => true,
        () => false,
      )
      if (isThere)
        remarks.push(
          `${FOREIGN_FILE} of ${shown(name, 64)} is not read, because the files of the workspace are not trusted: ${command('workspace trust', rootDir)}`,
        )
      return []
    }
    const ref = (server: string, variable: string) => `${refBase(server, id)}/env/${variable}`
    const found = await this.#files.read(file, () => readForeign(file, { where: FOREIGN_FILE, root: rootDir, ref }))
    if (!found) return []
    remarks.push(...found.remarks)
    const failed = (error: unknown) => problems.push({ where: FOREIGN_FILE, error, isForeign: true })
    found.faults.forEach(failed)
    const source = { kind: 'workspace-foreign', scope: 'workspace', workspaceId: id, where: FOREIGN_FILE } as const
    return found.servers.flatMap(declaration => {
      try {
        checkReferences(FOREIGN_FILE, [declaration], workspace)
        return [{ source, declaration }]
      } catch (error) {
        failed(error)
        return []
      }
    })
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
    const servers = await this.#files.read(file, () => readSidecar(file, folder))
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
export const problemTexts = ({ problems, remarks }: Found): string[] => [
  ...problems.map(({ error }) => messageOf(error)),
  ...remarks,
]

/** What the sources of one place are read with. */
interface Reading {
  readonly of: (where: string, read: () => Promise<readonly Declared[]>) => Promise<readonly Declared[]>
  readonly problems: Problem[]
  readonly remarks: string[]
}
