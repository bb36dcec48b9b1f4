import { lstat, readlink, realpath, rename, rm, symlink } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import type { Mount } from './mounts.js'

/** Files through which git runs code, or finds such files. */
const GIT = ['hooks', 'config', 'config.worktree', 'commondir']
const LINE_BYTES = 4096

/** Paths of a folder that could later run code outside, with their state before a sandbox started. */
export interface Guard {
  readonly root: string
  /** Paths below the root that did not exist; files that appear there are moved aside. */
  readonly absent: readonly string[]
  /** Links below the root, with their targets. */
  readonly links: readonly (readonly [path: string, target: string])[]
}

/**
 * Inspects paths below a folder. Existing ones become read-only inside, and their parent folders cannot be renamed. Missing ones
 * and links are recorded in the guard.
 * @param root canonical path
 * @param paths relative to the root
 */
export async function guard(
  root: string,
  paths: readonly string[],
): Promise<{ mounts: Mount[]; guard: Guard; places: string[] }> {
  const all = await Promise.all([...new Set(paths)].map(wanted => stateOf(root, wanted)))
  const mounts = all.flatMap(one => one.mounts)
  const absent = all.flatMap(one => one.absent)
  const links = all.flatMap(one => one.links)
  return { mounts, guard: { root, absent, links }, places: paths.map(wanted => path.join(root, wanted)) }
}

/** The part of a guard, and the mounts, for one path. */
async function stateOf(root: string, wanted: string) {
  const state = { mounts: [] as Mount[], absent: [] as string[], links: [] as (readonly [string, string])[] }
  const parts = wanted.split('/')
  for (let length = 1; length <= parts.length; length++) {
    const relative = parts.slice(0, length).join('/')
    const location = path.join(root, relative)
    const found = await lstat(location).catch(() => undefined)
    if (!found) {
      state.absent.push(wanted)
      break
    }
    if (found.isSymbolicLink()) {
      state.links.push([relative, await readlink(location)])
      break
    }
    const isLast = length === parts.length || !found.isDirectory()
    state.mounts.push({ kind: isLast ? 'read' : 'write', path: location })
    if (isLast) break
  }
  return state
}

/** Paths below a git folder that can make git run code. */
export const gitPaths = (below = '.git'): readonly string[] => GIT.map(name => `${below}/${name}`)

/**
 * The repository of a git worktree at `root`, if it lists this worktree in turn; undefined otherwise. Both paths are canonical:
 * the folder shared by all worktrees, and the folder of this worktree within it.
 */
export async function worktreeOf(root: string): Promise<{ common: string; own: string } | undefined> {
  const line = async (file: string, ...start: string[]) => {
    const text = await readRegularFile(path.join(...start, file), { maxBytes: LINE_BYTES }).catch(() => undefined)
    return (
      text &&
      path.resolve(
        ...start,
        text
          .toString()
          .trim()
          .replace(/^gitdir: /, ''),
      )
    )
  }
  const named = await line('.git', root)
  const own = named && (await realpath(named).catch(() => undefined))
  if (!own || (await line('gitdir', own)) !== path.join(root, '.git')) return undefined
  const shared = await line('commondir', own)
  const common = shared && (await realpath(shared).catch(() => undefined))
  return common && path.dirname(own) === path.join(common, 'worktrees') ? { common, own } : undefined
}

/**
 * Moves new files at guarded paths aside, to a new name next to them, and restores links. Links are never followed, because a
 * process inside could have created them. Returns the absolute paths of the moved files.
 * @param mark part of the new names
 */
export async function cleanUp({ root, absent, links }: Guard, mark: string): Promise<string[]> {
  const aside: string[] = []
  const putAside = async (location: string) => {
    const other = `${location}.discarded-${mark}`
    await rm(other, { recursive: true, force: true })
    await rename(location, other)
    aside.push(other)
  }
  for (const wanted of absent) {
    const parts = wanted.split('/')
    for (let length = 1; length <= parts.length; length++) {
      const location = path.join(root, ...parts.slice(0, length))
      const found = await lstat(location).catch(() => undefined)
      if (!found) break
      if (length < parts.length && found.isDirectory()) continue
      await putAside(location)
      break
    }
  }
  for (const [relative, target] of links) {
    const link = path.join(root, relative)
    if ((await readlink(link).catch(() => undefined)) === target) continue
    if (await lstat(link).catch(() => undefined)) await putAside(link)
    await symlink(target, link).catch(() => {})
  }
  return aside
}
