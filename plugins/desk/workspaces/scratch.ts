import { lstatSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { SCRATCH_ID, SCRATCH_NAME, WorkspaceCreated, WorkspaceErrors, WorkspaceUpdated } from './api.js'
import { isInside, scratchIn } from './files.js'
import { payloadOf } from './members.js'
import { freeName } from './names.js'
import type { K } from './needs.js'
import { type StoredWorkspace, workspaces } from './table.js'

/** The workspace `scratch`: a folder of the daemon's home for work that belongs to no project. */
export class Scratch {
  readonly rootDir: string

  constructor(private readonly kernel: Pick<K, 'actor' | 'clock' | 'db' | 'home' | 'needs'>) {
    this.rootDir = scratchIn(kernel.home.root)
  }

  /** Whether a reference means this workspace, which may not exist yet. */
  isMeant(reference: string): boolean {
    const text = reference.trim()
    return (
      [SCRATCH_ID, SCRATCH_NAME].includes(text) || (path.isAbsolute(text) && isInside(path.resolve(text), this.rootDir))
    )
  }

  /** The workspace and its folder, created if missing. If another workspace has the reserved name, that one is renamed. */
  async use(): Promise<StoredWorkspace> {
    const { rootDir } = this
    const { actor, clock, db, needs } = this.kernel
    // Synchronous, because every run of a global job or trigger checks the folder: the call costs less than two trips through the
    // thread pool.
    if (!isDirectory(rootDir)) await mkdir(rootDir, { recursive: true, mode: 0o700 }).catch(() => {})
    if (!isDirectory(rootDir))
      throw WorkspaceErrors.workspace_root_invalid(`${rootDir} must be a directory for the workspace ${SCRATCH_NAME}`)
    const known = workspaces.get(db, { id: SCRATCH_ID })
    if (known?.rootDir === rootDir) return known
    return db.tx(t => {
      const now = clock.now()
      const old = workspaces.get(t, { id: SCRATCH_ID })
      if (old?.rootDir === rootDir) return old
      const other = workspaces.get(t, { rootDir })
      if (other) {
        const text = `${rootDir} is the workspace ${other.name} already, and the daemon needs it for ${SCRATCH_NAME}`
        throw WorkspaceErrors.workspace_exists(text, { next: command('workspace remove', other.id) })
      }
      const options = { actor, scope: SCRATCH_ID, subject: SCRATCH_ID }
      if (old) {
        // The home was moved or copied.
        const moved = { ...old, rootDir, updatedAt: now }
        workspaces.update(t, { id: SCRATCH_ID }, moved)
        needs.events.emit(t, WorkspaceUpdated, payloadOf(moved), options)
        return moved
      }
      const named = workspaces.get(t, { name: SCRATCH_NAME })
      if (named) {
        const name = freeName(
          named.rootDir,
          taken => taken === SCRATCH_NAME || workspaces.get(t, { name: taken }) !== undefined,
        )
        const renamed = { ...named, name, updatedAt: now }
        workspaces.update(t, { id: named.id }, renamed)
        needs.events.emit(t, WorkspaceUpdated, payloadOf(renamed), { actor, scope: named.id, subject: named.id })
      }
      const made: StoredWorkspace = {
        id: SCRATCH_ID,
        name: SCRATCH_NAME,
        rootDir,
        addDirs: [],
        defaultAgent: '',
        sandboxRef: '',
        identity: '',
        isChosen: true,
        createdAt: now,
        updatedAt: now,
      }
      workspaces.insert(t, made)
      needs.events.emit(t, WorkspaceCreated, payloadOf(made), options)
      return made
    })
  }
}

function isDirectory(folder: string): boolean {
  try {
    return lstatSync(folder).isDirectory()
  } catch {
    return false
  }
}
