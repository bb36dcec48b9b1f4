import { createHash } from 'node:crypto'
import { lstat } from 'node:fs/promises'
import path from 'node:path'
import type { Git } from '../../../kernel/kit/git/index.js'
import type { SessionWorktree } from './api.js'
import { inRepository } from './git.js'
import type { K } from './needs.js'
import { worktreeRepository } from './worktree-files.js'

/** A fixed author, because git may have no configured identity. */
const AUTHOR = ['-c', 'user.name=svc', '-c', 'user.email=svc@localhost']

/**
 * Commits all changes and returns the ID of the newest commit. Submodules stay at the commit in the index.
 * @throws Fault `worktree_failed` (409)
 */
export async function saveWorktree(kernel: K, { folder, gitDir }: SessionWorktree, message: string) {
  return inRepository(kernel, await worktreeRepository(folder, gitDir), async git => {
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
 * Stages everything except submodules. To detect changes in a submodule, git would start itself there with the configuration of
 * that folder, so submodules are marked to be skipped. `options`: of `git add`.
 */
export async function addAll(git: Git, ...options: readonly string[]): Promise<void> {
  const skipped = (await submodules(git)).map(([name]) => `${name}\0`).join('')
  const mark = (flag: string) => (skipped === '' ? '' : git(['update-index', '-z', flag, '--stdin'], skipped))
  await mark('--skip-worktree')
  await git(['add', ...options, '--all'])
  await mark('--no-skip-worktree')
}

/** Paths of the submodules in the index, with their commits. */
export async function submodules(git: Git): Promise<(readonly [path: string, commit: string])[]> {
  const entries = (await git(['ls-files', '-z', '--stage'])).split('\0')
  return entries.flatMap(entry => {
    const [, commit = '', name = ''] = /^160000 (\S+) \d\t(.+)$/s.exec(entry) ?? []
    return name === '' ? [] : [[name, commit] as const]
  })
}

/** Digest of the uncommitted files of a worktree; undefined: there are none. An ignored folder counts by its name only. */
export async function uncommitted(git: Git, folder: string): Promise<string | undefined> {
  const [status, index] = await Promise.all([
    git(['status', '--porcelain', '-z', '--ignored', '--ignore-submodules=all']),
    // Compares with the index only: git then starts no process in a nested repository.
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
