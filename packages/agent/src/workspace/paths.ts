import { lstat, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'

const MAX_PATH = 4096

/** A refused action of a tool; the message is for the model and for a person who reads along. */
export class Refused extends Error {
  override readonly name = 'Refused'
}

/** Whether `inner` is the folder `outer` or below it; both canonical. */
export function contains(outer: string, inner: string): boolean {
  return inner === outer || inner.startsWith(outer.endsWith(sep) ? outer : outer + sep)
}

/**
 * The canonical form of a path inside one of the roots; relative paths start at the first root. Symlinks are resolved before the
 * check; for a path that does not exist, those of its nearest existing ancestor.
 * @throws {Refused}
 */
export async function resolveInside(roots: readonly string[], wanted: unknown): Promise<string> {
  const [base] = roots
  if (typeof wanted !== 'string' || wanted === '' || wanted.length > MAX_PATH || wanted.includes('\0')) {
    throw new Refused(`path has to be a text of 1 to ${MAX_PATH} characters`)
  }
  if (base === undefined) throw new Refused('there is no workspace')
  const canonical = await canonicalOf(isAbsolute(wanted) ? wanted : resolve(base, wanted), wanted)
  if (!roots.some(root => contains(root, canonical))) throw new Refused(`${wanted} is outside of the workspace`)
  return canonical
}

/** The displayed form of a path: relative to the first root if it lies below it. */
export function shownPath(roots: readonly string[], canonical: string): string {
  const base = roots[0] ?? sep
  return contains(base, canonical) ? relative(base, canonical) || '.' : canonical
}

/** Whether a path lies in a `.git` folder, whose hooks and settings run code without approval. */
export const isInGitFolder = (roots: readonly string[], canonical: string) =>
  shownPath(roots, canonical).split(sep).includes('.git')

async function canonicalOf(absolute: string, wanted: string): Promise<string> {
  const missing: string[] = []
  for (let current = absolute; ; current = dirname(current)) {
    try {
      return join(await realpath(current), ...missing)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOTDIR') throw new Refused(`${wanted} has a component that is not a folder`)
      if (code !== 'ENOENT') throw new Refused(`${wanted} cannot be resolved (${code ?? 'unknown'})`)
      // A write through a broken link would create its target, which may lie anywhere.
      if (await lstat(current).catch(() => undefined)) throw new Refused(`${wanted} contains a broken link`)
      if (dirname(current) === current) throw new Refused(`${wanted} cannot be resolved`)
      missing.unshift(current.slice(dirname(current).length).replace(/^\/+/, ''))
    }
  }
}
