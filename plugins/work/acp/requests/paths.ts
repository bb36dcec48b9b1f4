import { lstat, realpath } from 'node:fs/promises'
import path from 'node:path'
import { isOfDaemon } from '../../../desk/workspaces/api.js'

const MAX_PATH = 4096

/**
 * Visibility of a path in the sandbox of a session: a file of the host, writable or read-only; `own`: a file of the sandbox that
 * the host does not have; undefined: not visible.
 */
export type Sight = 'write' | 'read' | 'own' | undefined

/** The area in which an agent may read and write: canonical roots, the first of which is its working folder. */
export interface Territory {
  readonly roots: readonly string[]
  /** The home of the daemon. Its files never belong to an agent, even inside a root, except those of `scratch`. */
  readonly forbidden: string
  /** Files and folders inside the roots that are not written for an agent. */
  readonly readOnly?: readonly string[]
  /** Visibility of an absolute path in the sandbox; absent: there is no sandbox. */
  readonly sightOf?: ((file: string) => Sight) | undefined
}

/** The result of a path check. */
export interface PathLocation {
  /** The canonical path. */
  readonly path: string
  readonly isInside: boolean
}

/** An invalid path, or one that no permission can allow; `reason` is for the agent and for people. */
export class PathRefused extends Error {
  override readonly name = 'PathRefused'
}

/** The accessing party. The sandbox limits the agent itself, but not the daemon, which acts outside of it. */
export type Reach = 'agent' | 'daemon-reads' | 'daemon-writes'

/**
 * Checks a path. Symlinks are resolved; for a missing path its nearest existing ancestor is checked. A relative path starts at the
 * first root. Paths visible in the sandbox count as inside. Throws {@link PathRefused} for unresolvable paths and for files of the
 * daemon.
 */
export async function locate(territory: Territory, wanted: string, reach: Reach = 'agent'): Promise<PathLocation> {
  if (wanted === '' || wanted.length > MAX_PATH || wanted.includes('\0')) {
    throw new PathRefused(`a path is 1 to ${MAX_PATH} characters without NUL`)
  }
  const base = territory.roots[0]
  if (base === undefined) throw new PathRefused('this session has no workspace')
  const absolute = path.resolve(base, wanted)
  const isOwn = reach === 'agent' && territory.sightOf?.(absolute) === 'own'
  const canonical = isOwn ? absolute : await canonicalize(absolute)
  if (belongsToDaemon(territory, canonical)) throw new PathRefused(`${wanted} belongs to the daemon`)
  const isInside = isOwn || isInRoots(territory, canonical) || isReached(territory.sightOf?.(canonical), reach)
  return { path: canonical, isInside }
}

/** The canonical form of a path inside the territory. Throws {@link PathRefused}, also for a path outside. */
export async function resolveInside(territory: Territory, wanted: string): Promise<string> {
  const location = await locate({ roots: territory.roots, forbidden: territory.forbidden }, wanted)
  if (!location.isInside) throw new PathRefused(`${wanted} is outside of the workspace`)
  return location.path
}

/** Whether a canonical path is in the home of the daemon, outside of the workspace `scratch`. */
export function belongsToDaemon({ forbidden }: Territory, canonical: string): boolean {
  return isOfDaemon(canonical, forbidden)
}

/** Whether `inner` is `outer` or below it; both canonical. */
export function contains(outer: string, inner: string): boolean {
  return inner === outer || inner.startsWith(outer.endsWith(path.sep) ? outer : outer + path.sep)
}

const isInRoots = ({ roots }: Territory, canonical: string) => roots.some(root => contains(root, canonical))

function isReached(sight: Sight, reach: Reach): boolean {
  return sight === 'write' || (sight === 'read' && reach !== 'daemon-writes')
}

/** Resolves the existing part of an absolute path; the missing rest is appended as written. */
async function canonicalize(absolute: string): Promise<string> {
  const missing: string[] = []
  for (let current = absolute; ; current = path.dirname(current)) {
    try {
      return path.join(await realpath(current), ...missing)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOTDIR') throw new PathRefused(`${absolute} has a component that is not a folder`)
      if (code !== 'ENOENT') throw new PathRefused(`${absolute} cannot be resolved: ${code ?? 'unknown'}`)
      // A broken link: a write would create its target, which may be anywhere.
      if (await lstat(current).catch(() => undefined)) throw new PathRefused(`${absolute} contains a broken link`)
      if (path.dirname(current) === current) throw new PathRefused(`${absolute} cannot be resolved`)
      missing.unshift(path.basename(current))
    }
  }
}
