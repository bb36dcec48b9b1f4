import { lstat } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import { messageOf } from '../../../../kernel/plugin.js'
import type { AgentDefinition } from '../../../agents/agents/api.js'
import { ownFolder, type Workspace } from '../../../desk/workspaces/api.js'
import { McpServerKind, McpServerSources } from '../api.js'
import type { K } from '../needs.js'
import { refBase } from '../servers/own-secrets.js'
import { McpServers } from '../settings.js'
import { type Declared, merged, type Server, type Source, type SourceKind } from './declaration.js'
import { checkReferences, IN_OVERLAY, IN_SIDECAR, KeptFiles, readServerFile, type ServerFile } from './files.js'

/** Place of a lookup: everywhere, a workspace, or an agent. */
export interface SourceScope {
  readonly workspace?: Workspace | undefined
  readonly definition?: AgentDefinition | undefined
}

/** Servers of a place, and the sources that could not be read. */
export interface Found {
  readonly servers: readonly Server[]
  readonly problems: readonly Problem[]
  /** Remarks for people about sources that were read. */
  readonly remarks: readonly string[]
  /** Sources, as in {@link NAMED}, with disabled servers, which still exist. */
  readonly disabled: readonly string[]
}

/** A source or a part of it that could not be read. */
export interface Problem {
  readonly where: string
  readonly error: unknown
  /** Whether only one server or another program's file is affected: sessions start without it. */
  readonly isMinor?: boolean
  /** Name of the affected server. */
  readonly server?: string
}

/** File of other programs in the workspace folder. */
const FOREIGN_FILE = '.mcp.json'

/** Names of the sources in problems. */
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

/** Whether problems of that name belong to a workspace only. */
export const isOfWorkspace = (where: string): boolean =>
  where === NAMED['workspace-config'] || where === NAMED['workspace-foreign']

/** Reads the servers of all sources on demand, so that saved changes take effect at once. */
export class Sources {
  readonly #files: KeptFiles
  /** Declarations of the last configuration. */
  #config: { readonly servers: object; readonly declared: readonly Declared[] } | undefined

  constructor(
    private readonly kernel: K,
    /** Called with all declarations that were read. */
    private readonly noticed: (declared: readonly Declared[]) => void = () => {},
  ) {
    this.#files = new KeptFiles(kernel.clock)
  }

  /** Servers of a place. A source that cannot be read is reported as a problem and affects no other. */
  async read(scope: SourceScope): Promise<Found> {
    const { declared, ...about } = await this.all(scope)
    this.noticed(declared)
    return { servers: merged(declared), ...about }
  }

  /** All declarations, including shadowed ones. */
  async all(scope: SourceScope): Promise<Omit<Found, 'servers'> & { readonly declared: readonly Declared[] }> {
    const problems: Problem[] = []
    const remarks: string[] = []
    const disabled: string[] = []
    const of: Reading['of'] = async (where, read) => {
      try {
        return await read()
      } catch (error) {
        problems.push({ where, error, isMinor: where === FOREIGN_FILE })
        return []
      }
    }
    const { workspace } = scope
    const reading = { of, problems, remarks, disabled }
    const declared = await Promise.all([
      of(NAMED['global-config'], () => this.#ofConfig()),
      of(NAMED['global-mcp-sidecar'], () => this.#ofHome(reading)),
      ...(workspace ? this.#ofWorkspace(workspace, reading) : []),
      of(NAMED.provider, () => this.#contributed('provider', scope, reading)),
      of(NAMED.agent, () => this.#ofAgent(scope)),
      of(NAMED['agent-mcp-sidecar'], () => this.#besideAgent(scope, reading)),
      of(NAMED.skill, () => this.#contributed('skill', scope, reading)),
      of(NAMED.extension, () => this.#ofRecords(scope)),
    ])
    return { declared: declared.flat(), problems, remarks, disabled }
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

  async #ofHome(reading: Reading): Promise<Declared[]> {
    const { root } = this.kernel.home
    const source = { kind: 'global-mcp-sidecar', scope: 'global', where: 'mcp.json' } as const
    const file = path.join(root, 'mcp.json')
    return this.#ofFile({ file, inside: root, root, holders: IN_SIDECAR, isWorkspace: false }, source, reading)
  }

  /** Servers in the files of a workspace; they have no effect until a person trusts the files. */
  #ofWorkspace(workspace: Workspace, reading: Reading): Promise<readonly Declared[]>[] {
    const { of } = reading
    const foreign = () => of(NAMED['workspace-foreign'], () => this.#foreign(workspace, reading))
    const own = ownFolder(workspace.rootDir, this.kernel.home.root)
    if (own === undefined) return [foreign()]
    const read = async (
      kind: 'workspace-config' | 'workspace-mcp-sidecar',
      name: string,
      holders: readonly string[],
    ) => {
      if (!(await this.kernel.needs.agents.mayRunFilesOf(workspace))) return []
      const source = { kind, scope: 'workspace', workspaceId: workspace.id, where: `.svc/${name}` } as const
      return this.#ofFile({ file: path.join(own, name), holders, ...locationIn(workspace) }, source, reading, workspace)
    }
    return [
      of(NAMED['workspace-config'], () => read('workspace-config', 'config.json', IN_OVERLAY)),
      foreign(),
      of(NAMED['workspace-mcp-sidecar'], () => read('workspace-mcp-sidecar', 'mcp.json', IN_SIDECAR)),
    ]
  }

  /** Servers in the `.mcp.json` that other programs share. */
  async #foreign(workspace: Workspace, reading: Reading): Promise<Declared[]> {
    const { id, rootDir, name } = workspace
    const file = path.join(rootDir, FOREIGN_FILE)
    if (!this.kernel.needs.workspaces.get(id)) return []
    if (!(await this.kernel.needs.agents.mayRunFilesOf(workspace))) {
      const isThere = await lstat(file).then(
        () => true,
        () => false,
      )
      if (isThere)
        reading.remarks.push(
          `${FOREIGN_FILE} of ${shown(name, 64)} is not read, because the files of the workspace are not trusted: ${command('workspace trust', rootDir)}`,
        )
      return []
    }
    const source = { kind: 'workspace-foreign', scope: 'workspace', workspaceId: id, where: FOREIGN_FILE } as const
    const location = { file, holders: IN_SIDECAR, isStrict: true, ...locationIn(workspace) }
    return this.#ofFile(location, source, reading, workspace)
  }

  /** An unusable server affects no other. @param workspace of the file, whose secrets alone it may refer to */
  async #ofFile(
    file: Omit<ServerFile, 'where'>,
    source: Source,
    { problems, remarks, disabled }: Reading,
    workspace?: Workspace,
  ): Promise<Declared[]> {
    const where = NAMED[source.kind]
    const read = () => readServerFile(this.kernel, { where: source.where, ...file })
    const found = await this.#files.read(file, read)
    if (!found) return []
    remarks.push(...found.remarks)
    if (found.hasDisabled) disabled.push(where)
    const failed = (server: string, error: unknown, isRequired = false) =>
      problems.push({ where, error, server, isMinor: !isRequired })
    for (const { name, error, isRequired } of found.faults) failed(name, error, isRequired)
    return found.servers.flatMap(declaration => {
      try {
        if (workspace) checkReferences(source.where, declaration, workspace)
        return [{ source, declaration }]
      } catch (error) {
        failed(declaration.name, error, declaration.required)
        return []
      }
    })
  }

  async #ofAgent({ definition, workspace }: SourceScope): Promise<Declared[]> {
    if (!definition || !(await this.#mayRun(definition, workspace))) return []
    const source = this.#sourceOfAgent('agent', definition, workspace)
    return definition.mcpServers.map(declaration => ({ source, declaration }))
  }

  /** Servers in the file beside an AGENT.md, which has the same trust as the definition. */
  async #besideAgent({ definition, workspace }: SourceScope, reading: Reading): Promise<Declared[]> {
    if (!definition?.path || (definition.source !== 'home' && definition.source !== 'workspace')) return []
    if (!(await this.#mayRun(definition, workspace))) return []
    const folder = path.dirname(definition.path)
    const file = path.join(folder, 'mcp.json')
    const source = this.#sourceOfAgent('agent-mcp-sidecar', definition, workspace)
    const ofWorkspace = definition.source === 'workspace' ? workspace : undefined
    const location = ofWorkspace ? locationIn(ofWorkspace) : { root: this.kernel.home.root, isWorkspace: false }
    return this.#ofFile({ file, holders: IN_SIDECAR, ...location, inside: folder }, source, reading, ofWorkspace)
  }

  /** Whether a definition may run code; one from a workspace's files has to be trusted first. */
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

  /** Contributed servers. An unusable server affects no other. */
  async #contributed(kind: 'provider' | 'skill', scope: SourceScope, { problems }: Reading): Promise<Declared[]> {
    const contributors = this.kernel.collect(McpServerSources).filter(({ entry }) => entry.kind === kind)
    const all = await Promise.all(contributors.map(({ entry }) => entry.read(scope)))
    const workspaceId = scope.workspace?.id
    const failed = (server: string, error: unknown, isRequired = false) =>
      problems.push({ where: NAMED[kind], error, server, isMinor: !isRequired })
    return all.flat().flatMap((brought): Declared[] => {
      const { where, ofWorkspace, extension } = brought
      if (brought.fault !== undefined) {
        failed(brought.fault.name, brought.fault.error, brought.fault.isRequired)
        return []
      }
      const { declaration } = brought
      try {
        if (ofWorkspace && scope.workspace) checkReferences(where, declaration, scope.workspace)
      } catch (error) {
        failed(declaration.name, error, declaration.required)
        return []
      }
      const source: Source =
        ofWorkspace && workspaceId
          ? { kind, scope: 'workspace', workspaceId, ...broughtWith(where, extension) }
          : { kind, scope: 'global', ...broughtWith(where, extension) }
      return [{ declaration, source }]
    })
  }

  /** Servers of records, from extensions and other writers. */
  #ofRecords({ workspace }: SourceScope): Declared[] {
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

/** Limits of a workspace's file, and vault references of its variables. */
const locationIn = ({ id, rootDir }: Workspace) => ({
  ...{ inside: rootDir, root: rootDir, isWorkspace: true },
  ref: (server: string, variable: string) => `${refBase(server, id)}/env/${variable}`,
})

/** Adds the extension to the origin, so that equal names from different extensions are distinct. */
const broughtWith = (where: string, extension: string | undefined): Pick<Source, 'where' | 'extension'> =>
  extension === undefined ? { where } : { where: `${where} of ${extension}`, extension }

/** Problems and remarks as texts for people. */
export const problemTexts = ({ problems, remarks }: Found): string[] => [
  ...problems.map(({ error }) => messageOf(error)),
  ...remarks,
]

/** Context of reading the sources of one place. */
interface Reading {
  readonly of: (
    where: string,
    read: () => Promise<readonly Declared[]> | readonly Declared[],
  ) => Promise<readonly Declared[]>
  readonly problems: Problem[]
  readonly remarks: string[]
  readonly disabled: string[]
}
