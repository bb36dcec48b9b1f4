import { constants } from 'node:fs'
import { open, readdir, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { messageOf } from '../../kernel/plugin.js'
import type { AgentDefinition } from './api.js'
import { DefinitionError, MAX_DEFINITION_BYTES, type Place, parseDefinition, tooLarge } from './definition.js'
import { AGENT_NAME } from './frontmatter.js'

/** A folder with one folder an agent. Links are followed as long as they stay inside `root`. */
export interface AgentFolder extends Omit<Place, 'path'> {
  readonly root: string
  readonly folder: string
}

/** A definition file: what it says, or what is wrong with it. */
export type Found =
  | { readonly ok: true; readonly name: string; readonly path: string; readonly definition: AgentDefinition }
  | { readonly ok: false; readonly name: string; readonly path: string; readonly error: DefinitionError }

const MAX_NAMES = 1000
const MAX_CACHED = 4000

/** Reads definition files when asked; a file is parsed again only when its inode, size or times changed. */
export class DefinitionFiles {
  readonly #cache = new Map<string, { readonly stamp: string; readonly found: Found }>()

  /** @param invalid told once of every version of a file that is not valid */
  constructor(private readonly invalid: (path: string, error: DefinitionError) => void) {}

  /** Names of the folders that have, or look as if they had, a definition; sorted. A missing folder has none. */
  async names(where: AgentFolder): Promise<string[]> {
    try {
      const entries = await readdir(where.folder, { withFileTypes: true })
      return entries
        .filter(entry => (entry.isDirectory() || entry.isSymbolicLink()) && AGENT_NAME.test(entry.name))
        .map(entry => entry.name)
        .sort()
        .slice(0, MAX_NAMES)
    } catch {
      return []
    }
  }

  /** The definition of that name, undefined when there is no file. The name matches {@link AGENT_NAME}. */
  async read(where: AgentFolder, name: string): Promise<Found | undefined> {
    const file = path.join(where.folder, name, 'AGENT.md')
    try {
      const [real, root] = await Promise.all([realpath(file), realpath(where.root)])
      if (!real.startsWith(root.endsWith(path.sep) ? root : root + path.sep)) {
        throw new DefinitionError('outside_root', `it is a link that leads out of ${root}`)
      }
      const info = await stat(real, { bigint: true })
      const stamp = [info.dev, info.ino, info.size, info.mtimeNs, info.ctimeNs].join(':')
      // The same file can be seen from two workspaces.
      const key = `${where.workspaceId ?? ''}\0${file}`
      const cached = this.#cache.get(key)
      if (cached?.stamp === stamp) return cached.found
      const found = await this.#parse(where, name, file, real)
      if (this.#cache.size >= MAX_CACHED) this.#cache.clear()
      this.#cache.set(key, { stamp, found })
      if (!found.ok) this.invalid(file, found.error)
      return found
    } catch (error) {
      if (error instanceof DefinitionError) return { ok: false, name, path: file, error }
      const code = (error as NodeJS.ErrnoException).code
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
      return { ok: false, name, path: file, error: new DefinitionError('unreadable', messageOf(error)) }
    }
  }

  async #parse(where: AgentFolder, name: string, file: string, real: string): Promise<Found> {
    try {
      const { origin, source, workspaceId } = where
      const place = { origin, source, path: file, ...(workspaceId === undefined ? {} : { workspaceId }) }
      return { ok: true, name, path: file, definition: parseDefinition(name, await bytesOf(real), place) }
    } catch (error) {
      if (error instanceof DefinitionError) return { ok: false, name, path: file, error }
      throw error
    }
  }
}

/** The bytes of a regular file, bounded. The path is resolved already: a link that appears at its end now is refused. */
async function bytesOf(real: string): Promise<Uint8Array> {
  const handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const info = await handle.stat()
    if (!info.isFile()) throw new DefinitionError('unreadable', 'it is not a regular file')
    if (info.size > MAX_DEFINITION_BYTES) throw tooLarge(info.size)
    const buffer = Buffer.alloc(MAX_DEFINITION_BYTES + 1)
    let length = 0
    for (;;) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length)
      length += bytesRead
      if (length > MAX_DEFINITION_BYTES) throw tooLarge(length)
      if (bytesRead === 0) return buffer.subarray(0, length)
    }
  } finally {
    await handle.close()
  }
}
