import { lstat, realpath, rmdir } from 'node:fs/promises'
import path from 'node:path'
import { messageOf } from '../../../kernel/plugin.js'
import type { ForkSessionBody } from '../../../schemas/sessions.js'
import { WorkspaceErrors } from '../../workspaces/api.js'
import { SessionErrors, type SessionWorktree, type SessionWorktrees, type WorktreeInUse } from '../api.js'
import type { SessionsKernel } from '../context.js'
import { git } from './git.js'

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

/** Worktrees of the repositories of workspaces. */
export class Worktrees implements SessionWorktrees {
  constructor(private readonly kernel: SessionsKernel) {}

  async of(workspaceId: string, wish: { readonly create: string } | { readonly use: string }): Promise<WorktreeInUse> {
    const workspace = this.kernel.needs.workspaces.get(workspaceId)
    if (!workspace) throw WorkspaceErrors.workspace_not_found(`no workspace ${workspaceId}`)
    const body = 'create' in wish ? { new_worktree: { name: wish.create } } : { worktree: wish.use }
    return worktreeFor(this.kernel, workspace.rootDir, body)
  }

  save(worktree: SessionWorktree, message: string): Promise<string> {
    return saveWorktree(this.kernel, worktree, message)
  }

  async discardUnused({ folder, gitDir, branch }: SessionWorktree): Promise<boolean> {
    const common = path.dirname(path.dirname(gitDir))
    const run = async (...args: string[]) => (await git(this.kernel, common, [`--git-dir=${common}`, ...args])).trim()
    const head = await git(this.kernel, common, [`--git-dir=${gitDir}`, 'rev-parse', '--abbrev-ref', 'HEAD'])
    if (branch === '' || head.trim() !== branch) return false
    const having = await run('for-each-ref', '--format=%(refname:lstrip=2)', '--contains', branch, 'refs/heads')
    if (!having.split('\n').some(other => other !== '' && other !== branch)) return false
    const changed = await git(this.kernel, folder, [
      ...[`--git-dir=${gitDir}`, `--work-tree=${folder}`, '-c', 'diff.ignoreSubmodules=all'],
      ...['status', '--porcelain', '--ignored'],
    ])
    if (changed.trim() !== '') return false
    await run('worktree', 'remove', folder)
    await run('branch', '-D', branch)
    return true
  }
}

/** What a worktree is to be: one that is there, by its name or folder, or a new one. */
type WorktreeRequest = Pick<ForkSessionBody, 'worktree' | 'new_worktree'>

/** The worktree that a request wants. Throws `worktree_invalid` (400), `worktree_failed` (409). */
export async function worktreeFor(kernel: SessionsKernel, root: string, body: WorktreeRequest): Promise<WorktreeInUse> {
  const top = (await git(kernel, root, ['rev-parse', '--show-toplevel'])).trim()
  if (body.worktree !== undefined) {
    if (body.new_worktree) throw SessionErrors.worktree_invalid('give worktree or new_worktree, not both')
    return existing(kernel, top, body.worktree)
  }
  const name = body.new_worktree?.name ?? `fork-${kernel.ids.hex(4)}`
  if (!NAME.test(name) || name.endsWith('.lock') || name.includes('..')) {
    throw SessionErrors.worktree_invalid('the name of a worktree is 1 to 64 letters, digits, . _ and -')
  }
  const beside = path.join(path.dirname(top), `${path.basename(top)}.worktrees`)
  const folder = path.join(beside, name)
  if (await lstat(folder).catch(() => undefined)) throw SessionErrors.worktree_failed(`${folder} is there already`)
  const branch = `svc/${name}`
  const known = await git(kernel, top, ['branch', '--list', branch])
  if (known.trim() !== '') throw SessionErrors.worktree_failed(`there is a branch ${branch} already`)
  const undo = async () => {
    const steps = [
      () => git(kernel, top, ['worktree', 'remove', '--force', folder]),
      () => git(kernel, top, ['worktree', 'prune']),
      () => git(kernel, top, ['branch', '-D', branch]),
      () => rmdir(beside),
    ]
    for (const step of steps)
      await step().catch(error => kernel.log.debug('a fork is undone', { error: messageOf(error) }))
  }
  try {
    await git(kernel, top, ['worktree', 'add', '-b', branch, folder, 'HEAD'])
    return { ...(await described(kernel, name, folder)), undo }
  } catch (error) {
    await undo()
    throw error
  }
}

/** One of the repository, by the name of its folder or by its path. */
async function existing(kernel: SessionsKernel, top: string, wanted: string): Promise<WorktreeInUse> {
  const listed = await git(kernel, top, ['worktree', 'list', '--porcelain'])
  const folders = [...listed.matchAll(/^worktree (.+)$/gm)].map(([, folder = '']) => folder)
  const folder = folders.find(one => one === wanted || path.basename(one) === wanted)
  if (!folder || folder === top) throw SessionErrors.worktree_invalid(`the repository has no other worktree ${wanted}`)
  return { ...(await described(kernel, path.basename(folder), folder)), undo: async () => {} }
}

async function described(kernel: SessionsKernel, name: string, folder: string): Promise<SessionWorktree> {
  const [gitDir = '', branch = ''] = (
    await git(kernel, folder, ['rev-parse', '--absolute-git-dir', '--abbrev-ref', 'HEAD'])
  )
    .trim()
    .split('\n')
  return { name, folder: await realpath(folder), branch: branch === 'HEAD' ? '' : branch, gitDir }
}

/** Whose commits these are; nobody is asked who the operator is. */
const AUTHOR = ['-c', 'user.name=svc', '-c', 'user.email=svc@localhost', '-c', 'commit.gpgSign=false']

/**
 * Commits what is not committed yet, and gives the id of the newest commit. The folder of git is the one that it was made
 * with: an agent could have put another one, with a configuration of its own, into the worktree.
 * @throws Fault `worktree_failed` (409)
 */
async function saveWorktree(kernel: SessionsKernel, { folder, gitDir }: SessionWorktree, message: string) {
  const at = [`--git-dir=${gitDir}`, `--work-tree=${folder}`, ...AUTHOR, '-c', 'diff.ignoreSubmodules=all']
  const run = (...args: string[]) => git(kernel, folder, [...at, ...args])
  await run('add', '--all', '--', '.')
  if ((await run('status', '--porcelain', '--untracked-files=no')).trim() !== '')
    await run('commit', '--quiet', '--no-verify', '--message', message)
  return (await run('rev-parse', 'HEAD')).trim()
}
