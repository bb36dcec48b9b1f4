import { lstat, realpath } from 'node:fs/promises'
import path from 'node:path'
import { isOfDaemon } from '../../../desk/workspaces/api.js'

const MAX_PATH = 4096

/**
 * How the sandbox of a session shows a path: the file of the host, to be written or only read; one of the sandbox's own, which
 * the host does not have; undefined: not at all.
 */
export type Sight = 'write' | 'read' | 'own' | undefined

/** Where an agent may read and write: canonical roots, the first of which is its working folder. */
export interface Territory {
  readonly roots: readonly string[]
  /** The home of the daemon: its files are never an agent's although a root may contain them, those of `scratch` apart. */
  readonly forbidden: string
  /** Files and folders inside that are not written for an agent. */
  readonly readOnly?: readonly string[]
  /** What the sandbox shows of an absolute path; absent: there is no sandbox. */
  readonly seen?: ((file: string) => Sight) | undefined
}

/** A path that was judged. */
export interface Place {
  /** In canonical form. */
  readonly path: string
  readonly isInside: boolean
}

/** A path that nobody can allow, or none at all; `reason` is for the agent and for people. */
export class PathRefused extends Error {
  override readonly name = 'PathRefused'
}

/** Who touches a path, which decides what the sandbox lets it reach: the agent itself, or the daemon for it, which is outside. */
export type Reach = 'agent' | 'daemon-reads' | 'daemon-writes'

/**
 * Judges a path. Symlinks are resolved; of a path that does not exist the nearest existing ancestor is judged. A relative path
 * is one below the first root. What the sandbox of the session shows counts as inside. Throws {@link PathRefused} for what
 * cannot be resolved and for files of the daemon.
 */
export async function placeOf(territory: Territory, wanted: string, reach: Reach = 'agent'): Promise<Place> {
  if (wanted === '' || wanted.length > MAX_PATH || wanted.includes('\0')) {
    throw new PathRefused(`a path is 1 to ${MAX_PATH} characters without NUL`)
  }
  const base = territory.roots[0]
  if (base === undefined) throw new PathRefused('this session has no workspace')
  const absolute = path.resolve(base, wanted)
  const isOwn = reach === 'agent' && territory.seen?.(absolute) === 'own'
  const canonical = isOwn ? absolute : await canonicalize(absolute)
  if (belongsToDaemon(territory, canonical)) throw new PathRefused(`${wanted} belongs to the daemon`)
  const isInside = isOwn || isInRoots(territory, canonical) || isReached(territory.seen?.(canonical), reach)
  return { path: canonical, isInside }
}

/** The canonical form of a path inside the territory. Throws {@link PathRefused}, also for a path outside. */
export async function resolveInside(territory: Territory, wanted: string): Promise<string> {
  const place = await placeOf({ roots: territory.roots, forbidden: territory.forbidden }, wanted)
  if (!place.isInside) throw new PathRefused(`${wanted} is outside of the workspace`)
  return place.path
}

/** Is a canonical path one of the daemon's own files: in its home, but for the workspace `scratch`. */
export function belongsToDaemon({ forbidden }: Territory, canonical: string): boolean {
  return isOfDaemon(canonical, forbidden)
}

/** Is `inner` the folder `outer` or something below it; both canonical. */
export function contains(outer: string, inner: string): boolean {
  return inner === outer || inner.startsWith(outer.endsWith(path.sep) ? outer : outer + path.sep)
}

const isInRoots = ({ roots }: Territory, canonical: string) => roots.some(root => contains(root, canonical))

function isReached(sight: Sight, reach: Reach): boolean {
  return sight === 'write' || (sight === 'read' && reach !== 'daemon-writes')
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
