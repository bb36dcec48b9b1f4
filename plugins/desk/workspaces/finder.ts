import path from 'node:path'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../kernel/kit/text.js'
import type { Actor } from '../../../kernel/plugin.js'
import { WorkspaceErrors, WorkspaceUpdated } from './api.js'
import { isInside } from './files.js'
import type { Homes } from './homes.js'
import { existingNow, isDirectoryNow, type LocalDisk } from './local-disk.js'
import type { K } from './needs.js'
import { advice, ancestorsOf, canonicalPath, checkAbsolute, checkText, directoryAt, isDirectory } from './paths.js'
import { type StoredWorkspace, workspaces } from './table.js'

/** Most folders of which is known which workspace has its root there. */
const MAX_ROOTS = 1024

/** Finds workspaces by reference: id, then unique name, then absolute path. */
export class WorkspaceFinder {
  readonly #roots = new Map<string, StoredWorkspace | null>()
  #transactions = -1

  constructor(
    private readonly kernel: Pick<K, 'db' | 'clock' | 'needs'>,
    private readonly homes: Homes,
    private readonly disk: LocalDisk,
  ) {}

  /**
   * Finds a workspace without access to its root, for changes of the registration that must work after the root is gone. A path
   * must be a root itself: the nearest enclosing root may not be the intended one. Throws `workspace_not_found`.
   */
  async registered(reference: string): Promise<StoredWorkspace> {
    const named = this.#named(reference)
    if (named) return named
    const wanted = checkAbsolute(reference, 'the workspace')
    const found = this.#at(wanted) ?? this.#at((await canonicalPath(wanted)).path)
    if (found) return found
    throw WorkspaceErrors.workspace_not_found(`no workspace has the root ${shown(wanted)}`)
  }

  /** Finds a workspace whose root exists and is canonical. Undefined for an absolute path that no root encloses. */
  async find(reference: string, actor: Actor): Promise<StoredWorkspace | undefined> {
    const named = this.#named(reference)
    return named ? this.refresh(named, actor) : this.#enclosing(checkAbsolute(reference, 'the workspace'), actor)
  }

  /** Updates the root if its path now leads elsewhere through a symbolic link. Throws `workspace_root_missing` (410). */
  async refresh(workspace: StoredWorkspace, actor: Actor): Promise<StoredWorkspace> {
    const { id, name, rootDir } = workspace
    if (this.disk.has(rootDir) && existingNow(rootDir) === rootDir && isDirectoryNow(rootDir)) return workspace
    const found = await directoryAt(rootDir)
    if (found.is !== 'directory') {
      const why = found.is === 'gone' ? found.why : 'is no longer a directory'
      const help = advice(found)
      throw WorkspaceErrors.workspace_root_missing(`the root of workspace ${name} ${why}: ${rootDir}; ${help}`, {
        next: command('doctor', '--only', 'workspaces'),
      })
    }
    if (found.real === rootDir) {
      void this.disk.note(rootDir)
      return workspace
    }
    const {
      db,
      clock,
      needs: { events },
    } = this.kernel
    return db.tx(t => {
      const current = workspaces.get(t, { id })
      if (!current) throw WorkspaceErrors.workspace_not_found(`the workspace ${name} was removed`)
      const other = this.#at(found.real)
      if (other && other.id !== id) {
        throw WorkspaceErrors.workspace_exists(
          `the root of ${name} leads to ${found.real}, which is the workspace ${other.name}`,
        )
      }
      const moved = { ...current, rootDir: found.real, updatedAt: clock.now() }
      workspaces.update(t, { id }, moved)
      events.emit(t, WorkspaceUpdated, { id, name, root_dir: moved.rootDir }, { actor, scope: id, subject: id })
      return moved
    })
  }

  /** Finds by id or name; undefined for a reference that may be a path. Throws `workspace_not_found` otherwise. */
  #named(reference: string): StoredWorkspace | undefined {
    const text = checkText(reference, 'the workspace')
    // Neither an id nor a name has a slash.
    if (path.isAbsolute(text)) return undefined
    const { db } = this.kernel
    const found = workspaces.get(db, { id: text }) ?? workspaces.get(db, { name: text })
    if (found || /^[.~]|[/\\]/.test(text)) return found
    throw WorkspaceErrors.workspace_not_found(`no workspace has the id or name ${shown(text)}`)
  }

  /**
   * The nearest enclosing root; nested roots take precedence. Links in the path are resolved. The unresolved path counts only for
   * a root that was itself moved, so that a link inside a workspace does not include its target. A root that contains a home
   * encloses only itself, because all files of the user lie below it.
   */
  async #enclosing(wanted: string, actor: Actor): Promise<StoredWorkspace | undefined> {
    const known = this.disk.has(wanted) ? existingNow(wanted) : undefined
    const { path: real, existing } =
      known === undefined ? await canonicalPath(wanted) : { path: wanted, existing: known }
    if (known === undefined && real === wanted) void this.disk.note(wanted, existing)
    for (const form of new Set([real, wanted])) {
      const nearest = this.#nearest(form)
      // A canonical path that exists in the root shows that the root is still the same directory, if it is one.
      if (nearest && form === real && isInside(existing, nearest.rootDir)) {
        if (
          existing !== nearest.rootDir ||
          (known === undefined ? await isDirectory(existing) : isDirectoryNow(existing))
        )
          return nearest
      }
      const current = nearest && (await this.refresh(nearest, actor))
      if (current && isInside(real, current.rootDir)) return current
    }
    return undefined
  }

  /** The nearest root around a canonical folder that a person registered. */
  async chosen(folder: string, actor: Actor): Promise<StoredWorkspace | undefined> {
    const nearest = this.#nearest(folder, true)
    return nearest && this.refresh(nearest, actor)
  }

  #at(rootDir: string): StoredWorkspace | undefined {
    return workspaces.get(this.kernel.db, { rootDir })
  }

  /** As {@link #at}, outside of transactions: kept until the next one begins. */
  #known(rootDir: string): StoredWorkspace | undefined {
    const { transactions } = this.kernel.db
    if (transactions !== this.#transactions || this.#roots.size >= MAX_ROOTS) this.#roots.clear()
    this.#transactions = transactions
    const known = this.#roots.get(rootDir)
    const found = known === undefined ? (this.#at(rootDir) ?? null) : known
    this.#roots.set(rootDir, found)
    return found ?? undefined
  }

  /** The workspace with the nearest root around a path; with `chosen`, only workspaces that a person registered. */
  #nearest(wanted: string, chosen = false): StoredWorkspace | undefined {
    for (const folder of ancestorsOf(wanted)) {
      const found = folder === wanted || !this.homes.isAbove(folder) ? this.#known(folder) : undefined
      if (found && (found.isChosen || !chosen)) return found
    }
    return undefined
  }
}
