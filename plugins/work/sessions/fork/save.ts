import { createHash } from 'node:crypto'
import { lstat } from 'node:fs/promises'
import path from 'node:path'
import type { Git } from '../../../../kernel/kit/git/index.js'
import type { SessionWorktree } from '../api.js'
import type { K } from '../needs.js'
import { inRepository } from './git.js'
import { placeOf } from './worktree-files.js'

/** Whose commits these are; nobody is asked who the operator is. */
const AUTHOR = ['-c', 'user.name=svc', '-c', 'user.email=svc@localhost']

/**
 * Commits what is not committed yet, and gives the id of the newest commit. Submodules stay at the commit that the index has.
 * @throws Fault `worktree_failed` (409)
 */
export async function saveWorktree(kernel: K, { folder, gitDir }: SessionWorktree, message: string) {
  return inRepository(kernel, await placeOf(folder, gitDir), async git => {
    await addAll(git)
    const tree = (await git(['write-tree'])).trim()
    const idOf = (name: string) => git(['rev-parse', '--verify', '--quiet', name]).catch(() => '')
    const head = (await idOf('HEAD')).trim()
    if (tree === (await idOf('HEAD^{tree}')).trim()) return head
    const parents = head === '' ? [] : ['-p', head]
    const commit = (await git([...AUTHOR, 'commit-tree', ...parents, '-m', message, tree])).trim()
    await git(['update-ref', 'HEAD', commit, head])
    await git.publish()
    return commit
  })
}

/**
 * Puts everything into the index. Git would start itself in each submodule, with the configuration that lies there, to see what
 * changed in it; for those that it is told to skip it does not.
 */
async function addAll(git: Git): Promise<void> {
  const skipped = (await submodules(git)).map(([name]) => `${name}\0`).join('')
  const mark = (flag: string) => (skipped === '' ? '' : git(['update-index', '-z', flag, '--stdin'], skipped))
  await mark('--skip-worktree')
  await git(['add', '--all'])
  await mark('--no-skip-worktree')
}

/** Paths of the submodules in the index, with the commits that it has of them. */
export async function submodules(git: Git): Promise<(readonly [path: string, commit: string])[]> {
  const entries = (await git(['ls-files', '-z', '--stage'])).split('\0')
  return entries.flatMap(entry => {
    const [, commit = '', name = ''] = /^160000 (\S+) \d\t(.+)$/s.exec(entry) ?? []
    return name === '' ? [] : [[name, commit] as const]
  })
}

/**
 * Digest of the uncommitted files of a worktree; undefined: there are none. A folder that git ignores as a whole counts by its name
 * alone.
 */
export async function uncommitted(git: Git, folder: string): Promise<string | undefined> {
  const [status, index] = await Promise.all([
    git(['status', '--porcelain', '-z', '--ignored', '--ignore-submodules=all']),
    // Only compares with the index: git starts nothing in a nested repository for it.
    git(['diff-index', '--cached', '--name-only', '-z', '--ignore-submodules=none', 'HEAD']),
  ])
  if (status === '' && index === '') return undefined
  const hash = createHash('sha256').update(JSON.stringify([status, index]))
  for (const entry of status.split('\0')) {
    const about = await lstat(path.join(folder, entry.slice(3))).catch(() => undefined)
    if (about && !about.isDirectory()) hash.update(`${about.size} ${about.mtimeMs}\0`)
  }
  return hash.digest('hex')
}
