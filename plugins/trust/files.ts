import { createHash } from 'node:crypto'
import { lstat, readdir, realpath } from 'node:fs/promises'
import path from 'node:path'
import { messageOf, readRegularFile } from '../../kernel/plugin.js'
import { isInside, type Workspace } from '../workspaces/api.js'
import { TrustErrors } from './api.js'

/** Bounds of what is looked at: more is not trusted. */
const MOST_FILES = 5000
const MOST_BYTES = 64 * 1024 * 1024
const DEEPEST = 16

/** Names in `.svc/` that run nothing: the identity of the folder, memories, and texts that an agent is only told. */
const HARMLESS = new Set(['workspace.toml', 'memory', 'SOUL.md', 'HEARTBEAT.md'])

/** The files of a workspace that may run code, and a digest over their names and contents. */
export interface TrustedFiles {
  readonly files: readonly string[]
  readonly digest: string
}

/** @throws Fault `trust_unreadable` */
export async function filesOf({ rootDir, addDirs }: Pick<Workspace, 'rootDir' | 'addDirs'>): Promise<TrustedFiles> {
  const walk = new Walk()
  for (const [at, root] of [rootDir, ...addDirs].entries()) {
    const real = await realpath(root).catch(() => undefined)
    if (real !== undefined)
      await walk.folder(path.join(real, '.svc'), real, at === 0 ? '.svc' : path.join(root, '.svc'))
  }
  return { files: walk.files, digest: `sha256:${walk.hash.digest('hex')}` }
}

class Walk {
  readonly files: string[] = []
  readonly hash = createHash('sha256')
  #bytes = 0

  /** @param shown how its files are named */
  async folder(folder: string, root: string, shown: string, depth = 0): Promise<void> {
    if (depth > DEEPEST) throw unreadable(`${shown} lies too deep, or leads back to itself`)
    const names = await readdir(folder).catch(error => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
      throw unreadable(`${shown}: ${messageOf(error)}`)
    })
    for (const name of names.sort()) {
      if (HARMLESS.has(name)) continue
      await this.#entry(path.join(folder, name), root, path.join(shown, name), depth)
    }
  }

  async #entry(file: string, root: string, shown: string, depth: number): Promise<void> {
    // A link is followed as long as it stays inside, as those who read definitions follow it.
    const real = await realpath(file).catch(() => undefined)
    if (real === undefined || !isInside(real, root)) return this.#add(shown, Buffer.from(real ?? 'nowhere'), 'link')
    const found = await lstat(real)
    if (found.isDirectory()) return this.folder(real, root, shown, depth + 1)
    if (!found.isFile()) return this.#add(shown, Buffer.alloc(0), 'other')
    const bytes = await readRegularFile(real, { maxBytes: MOST_BYTES, links: 'refuse' }).catch(error => {
      throw unreadable(`${shown}: ${messageOf(error)}`)
    })
    this.#add(shown, bytes ?? Buffer.alloc(0), 'file')
  }

  #add(shown: string, bytes: Buffer, kind: string): void {
    this.files.push(shown)
    this.#bytes += bytes.length
    if (this.files.length > MOST_FILES || this.#bytes > MOST_BYTES)
      throw unreadable(`more than ${MOST_FILES} files or ${MOST_BYTES / 1024 / 1024} MiB below .svc`)
    // Lengths come first: no two lists of files have the same bytes.
    this.hash.update(JSON.stringify([kind, shown, bytes.length])).update(bytes)
  }
}

const unreadable = (what: string) => TrustErrors.trust_unreadable(what)
