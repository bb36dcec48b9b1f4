import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import {
  type Actor,
  type Awaitable,
  defineErrors,
  event,
  gate,
  guard,
  hookTable,
  type RecordScope,
  registry,
  type TapsOf,
  token,
} from '../../../kernel/plugin.js'

export { isInside, isOfDaemon, ownFolder, syncFolder, writeWhole } from './files.js'
export { migrations as workspaceTables } from './table.js'

/** Id of the workspace `scratch`, a folder in the daemon's home for work that belongs to no project. */
export const SCRATCH_ID = 'ws_0000000000000000'
/** Reserved name of the workspace `scratch`. */
export const SCRATCH_NAME = 'scratch'

/** A registered root directory. */
export interface Workspace {
  /** `ws_` and 16 hex. */
  readonly id: string
  readonly name: string
  /** Canonical: absolute, symlinks resolved. */
  readonly rootDir: string
  readonly addDirs: readonly string[]
  readonly defaultAgent: string
  readonly sandboxRef: string
  /** Epoch milliseconds. */
  readonly createdAt: number
  readonly updatedAt: number
}

/** The hooks of workspaces. */
export const points = hookTable({
  saving: gate<[workspace: Workspace]>(
    'saving',
    'Before a workspace is registered or changed to the given values; `id` is empty for a new one. A tap may refuse it.',
  ),
  deleting: guard<[workspace: Workspace]>(
    'deleting',
    'Before a workspace is deleted, in the transaction. A tap may refuse it.',
  ),
})

export interface WorkspacesApi extends TapsOf<typeof points> {
  /** Finds a workspace by id only, without file access. */
  get(id: string): Workspace | undefined
  list(): Workspace[]
  /** By id, then unique name, then absolute path (nearest enclosing root). Throws `workspace_not_found` (404), `workspace_path_relative` (400), `workspace_root_missing` (410). */
  find(reference: string): Promise<Workspace>
  /**
   * Whether a folder was on the disk of the home a moment ago: a synchronous look at its entries does not wait for a network. A
   * replacement of this plugin need not know.
   */
  isLocal?(folder: string): boolean
  /** The workspace `scratch`, created on first use. Throws `workspace_root_invalid` (400) if its path is not a directory. */
  scratch(): Promise<Workspace>
  /** Like `find`, but registers an absolute path that no root encloses. */
  resolve(reference: string): Promise<Workspace>
  /** Removes a workspace and its records; its folder stays. Throws `workspace_not_found` (404), `workspace_in_use` (409). */
  remove(reference: string, actor: Actor): Promise<void>
}

export const Workspaces = token<WorkspacesApi>('workspaces@1')

/**
 * Whether a scope belongs to a different workspace than the one a caller, such as an agent, is confined to. Such a caller must get
 * the same reply as for a missing object: a different one would reveal that the object exists.
 */
export const isElsewhere = (
  { maxScope }: Pick<Actor, 'maxScope'>,
  { kind, id }: { readonly kind: RecordScope['kind']; readonly id?: string | undefined },
): boolean => maxScope?.kind === 'workspace' && kind === 'workspace' && id !== maxScope.id

/** A member of the workspace detail, contributed by the plugin that has it. */
export interface DetailMember {
  readonly member: 'agents' | 'providers' | 'sessions' | 'skills'
  readonly read: (workspace: Workspace) => Awaitable<readonly unknown[]>
}

export const WorkspaceDetailMembers = registry<DetailMember>(
  'workspaces.detail@1',
  v.looseObject({ member: v.picklist(['agents', 'providers', 'sessions', 'skills']), read: v.function() }),
)

const payload = v.object({ id: v.string(), name: v.string(), root_dir: v.string() })
export const WorkspaceCreated = event('workspace.created', payload)
export const WorkspaceUpdated = event('workspace.updated', payload)
export const WorkspaceDeleted = event('workspace.deleted', payload)

export const WorkspaceErrors = defineErrors({
  workspace_not_found: { status: 404, message: 'no such workspace', next: command('workspace list') },
  workspace_invalid: { status: 400, message: 'the workspace is not valid', next: command('workspace add', '--help') },
  workspace_path_relative: {
    status: 400,
    message: 'a workspace path must be absolute',
    next: command('workspace add', placeholder('dir')),
  },
  workspace_root_invalid: {
    status: 400,
    message: 'the root is not an existing directory',
    next: command('workspace add', placeholder('dir')),
  },
  workspace_root_missing: {
    status: 410,
    message: 'the root directory of this workspace no longer exists',
    next: command('workspace list'),
  },
  workspace_too_wide: {
    status: 409,
    message: 'this folder is too broad to become a workspace automatically',
    next: command('workspace add', placeholder('dir')),
  },
  workspace_exists: { status: 409, message: 'this directory is registered already', next: command('workspace list') },
  workspace_name_taken: { status: 409, message: 'another workspace has this name', next: command('workspace list') },
  workspace_reserved: {
    status: 409,
    message: 'this workspace is built in and cannot be changed',
    next: command('workspace list'),
  },
  workspace_in_use: { status: 409, message: 'the workspace is in use', next: command('session list') },
})

/** Errors of requests with a workspace reference: an id, a name or a path. */
export const REFERENCE_ERRORS = [
  WorkspaceErrors.workspace_not_found,
  WorkspaceErrors.workspace_invalid,
  // The root resolves to the root of another workspace.
  WorkspaceErrors.workspace_exists,
  WorkspaceErrors.workspace_path_relative,
  WorkspaceErrors.workspace_root_invalid,
  WorkspaceErrors.workspace_root_missing,
] as const
