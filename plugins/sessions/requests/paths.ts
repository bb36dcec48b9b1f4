import { lstat, realpath } from 'node:fs/promises'
import path from 'node:path'
import { isOfDaemon } from '../../workspaces/api.js'

const MAX_PATH = 4096

/** Where an agent may read and write: canonical roots, the first of which is its working folder. */
export interface Territory {
  readonly roots: readonly string[]
  /** The home of the daemon: its files are never an agent's although a root may contain them, those of `scratch` apart. */
  readonly forbidden: string
  /** Files and folders inside that are not written for an agent. */
  readonly readOnly?: readonly string[]
}

/** A path outside of the territory, or none at all; `reason` is for the agent and for people. */
export class PathRefused extends Error {
  override readonly name = 'PathRefused'
}

/**
 * The canonical form of a path inside the territory. Symlinks are resolved; of a path that does not
 * exist the nearest existing ancestor is judged. A relative path is one below the first root. Throws {@link PathRefused}.
 */
export async function resolveInside(territory: Territory, wanted: string): Promise<string> {
  if (wanted === '' || wanted.length > MAX_PATH || wanted.includes('\0')) {
    throw new PathRefused(`a path is 1 to ${MAX_PATH} characters without NUL`)
  }
  const base = territory.roots[0]
  if (base === undefined) throw new PathRefused('this session has no workspace')
  const canonical = await canonicalize(path.resolve(base, wanted))
  const root = territory.roots.find(candidate => contains(candidate, canonical))
  if (root === undefined) throw new PathRefused(`${wanted} is outside of the workspace`)
  if (isOfDaemon(canonical, territory.forbidden)) {
    throw new PathRefused(`${wanted} belongs to the daemon`)
  }
  return canonical
}

/** Is `inner` the folder `outer` or something below it; both canonical. */
export function contains(outer: string, inner: string): boolean {
  return inner === outer || inner.startsWith(outer.endsWith(path.sep) ? outer : outer + path.sep)
}

/** Resolves the part of an absolute path that exists; what does not exist is appended as written. */
async function canonicalize(absolute: string): Promise<string> {
  const missing: string[] = []
  for (let current = absolute; ; current = path.dirname(current)) {
    try {
      return path.join(await realpath(current), ...missing)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOTDIR') throw new PathRefused(`${absolute} goes through something that is no folder`)
      if (code !== 'ENOENT') throw new PathRefused(`${absolute} cannot be resolved: ${code ?? 'unknown'}`)
      // A link to nowhere: writing would create what it points to, wherever that is.
      if (await lstat(current).catch(() => undefined)) throw new PathRefused(`${absolute} goes through a broken link`)
      if (path.dirname(current) === current) throw new PathRefused(`${absolute} cannot be resolved`)
      missing.unshift(path.basename(current))
    }
  }
}
