import path from 'node:path'
import type { PluginKernel } from '../../../../kernel/plugin.js'
import { ownFolder, type Workspace } from '../../../desk/workspaces/api.js'
import { type AgentDefinition, AgentSourceFolders } from '../api.js'
import type { K } from '../needs.js'
import { DefinitionError, digestOf } from './definition.js'
import type { AgentFolder, Found } from './files.js'
import { FolderIndex } from './folder-index.js'
import { RecordIndex } from './record-index.js'
import { fixedSource, type Source, View } from './view.js'

const GENERAL_PROMPT =
  'You are a careful assistant that works in the files of this workspace. Say what you are going to do before you do it, change only what the request needs, and end with a short summary of what was done.'

/** The fallback agent, without a command of its own: it runs the first installed provider. */
export const general: AgentDefinition = {
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

/** Cached folders and views; the least recently used one is dropped. */
const MAX_FOLDERS = 4096
const MAX_VIEWS = 32

/** All sources of definitions, and the views of workspaces on them. */
export class AgentSources {
  readonly records = new RecordIndex()
  readonly #folders = new Map<string, FolderIndex>()
  readonly #views = new Map<string, View>()
  readonly #builtIn = fixedSource(general)

  constructor(
    private readonly kernel: Pick<PluginKernel, 'home' | 'env' | 'clock' | 'scope' | 'log' | 'collect'> &
      Pick<K, 'needs'>,
  ) {}

  /**
   * Sources by precedence: the workspace's root, its `add_dirs`, the home; then records of the workspace, global
   * records, definitions of other plugins, and built-in ones.
   */
  view(workspace: Workspace | undefined): View {
    const contributed = this.contributed(workspace)
    const workspaceKey = workspace ? [workspace.id, workspace.rootDir, workspace.addDirs] : []
    const key = JSON.stringify([
      workspaceKey,
      contributed.map(({ where }) => [where.folder, [...(where.digests ?? [])]]),
    ])
    return recent(this.#views, key, MAX_VIEWS, () => {
      const records = workspace ? [this.records.scope(workspace.id)] : []
      const shared = this.#shared()
      return new View([
        ...this.folders(workspace),
        ...records,
        this.records.scope(),
        ...contributed.map(index => heldToDigests(index)),
        ...(shared ? [this.#index(shared)] : []),
        this.#builtIn,
      ])
    })
  }

  /** Folders with definitions written by people. */
  folders(workspace: Workspace | undefined): FolderIndex[] {
    return [...(workspace ? foldersOf(workspace, this.kernel.home.root) : []), this.#home()].map(where =>
      this.#index(where),
    )
  }

  /** Folders of packaged definitions; read-only. */
  contributed(workspace: Workspace | undefined): FolderIndex[] {
    const folders = this.kernel.collect(AgentSourceFolders).flatMap(({ entry }) => entry.folders(workspace))
    return folders.map(where => this.#index({ ...where, origin: 'global', source: 'contributed', writable: false }))
  }

  /** The folder for writes of a scope. */
  target(workspace: Workspace | undefined): FolderIndex {
    return this.folders(workspace)[0] as FolderIndex
  }

  #home(): AgentFolder {
    const { home } = this.kernel
    return { root: home.root, folder: home.path('agents'), origin: 'global', source: 'home', writable: true }
  }

  #shared(): AgentFolder | undefined {
    const root = this.kernel.env.SVC_SHARE_DIR
    if (!root) return undefined
    return { root, folder: path.join(root, 'agents'), origin: 'global', source: 'builtin', writable: false }
  }

  #index(where: AgentFolder): FolderIndex {
    // A folder can belong to two workspaces, whose definitions then differ in the workspace.
    const { workspaceId = '', writable, folder, extension = '', digests } = where
    const key = JSON.stringify([workspaceId, writable, folder, extension, [...(digests ?? [])]])
    return recent(this.#folders, key, MAX_FOLDERS, () => {
      const { clock, scope, log, needs } = this.kernel
      const isLocal = (folder: string) => needs.workspaces.isLocal?.(folder) ?? false
      return new FolderIndex(where, clock, scope.signal, isLocal, ({ path: file, error }) =>
        log.warn(`the agent definition ${file} is not valid: ${error.message}`, { kind: error.kind }),
      )
    })
  }
}

/**
 * Accepts only the definitions that an extension from a catalog was loaded with: a file changed since then has no
 * consent.
 */
function heldToDigests(index: FolderIndex): Source {
  const { digests } = index.where
  if (!digests) return index
  const held = (found: Found | undefined): Found | undefined => {
    if (!found?.ok || digests.get(found.name) === found.definition.digest) return found
    const error = new DefinitionError('changed', 'it has changed since its extension was loaded')
    return { ok: false, name: found.name, path: found.path, error }
  }
  return {
    where: index.where,
    get version() {
      return index.version
    },
    refresh: () => index.refresh(),
    found: () => [...index.found()].flatMap(one => held(one) ?? []),
    read: async name => held(await index.read(name)),
  }
}

function foldersOf({ id, rootDir, addDirs }: Workspace, home: string): AgentFolder[] {
  return [rootDir, ...addDirs].flatMap((root, at) => {
    const own = ownFolder(root, home)
    if (own === undefined) return []
    const folder = path.join(own, 'agents')
    return { root, folder, origin: 'workspace', source: 'workspace', workspaceId: id, writable: at === 0 }
  })
}

/** The cached value of a key, created if missing; the least recently used one is dropped. */
function recent<V>(kept: Map<string, V>, key: string, max: number, make: () => V): V {
  const value = kept.get(key) ?? make()
  kept.delete(key)
  kept.set(key, value)
  const [oldest] = kept.keys()
  if (kept.size > max && oldest !== undefined) kept.delete(oldest)
  return value
}
