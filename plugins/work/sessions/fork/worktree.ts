import { lstat, readdir, realpath, rm, rmdir } from 'node:fs/promises'
import path from 'node:path'
import { findRepository, headOf, type RepositoryPlace, repositoryAt } from '../../../../kernel/kit/git/index.js'
import { messageOf } from '../../../../kernel/plugin.js'
import type { ForkSessionBody } from '../../../../schemas/sessions.js'
import { WorkspaceErrors } from '../../../desk/workspaces/api.js'
import { SessionErrors, type SessionWorktree, type SessionWorktrees, type WorktreeInUse } from '../api.js'
import type { SessionsKernel } from '../context.js'
import { inRepository } from './git.js'
import { saveWorktree, submodules } from './save.js'
import { addWorktree, placeOf, worktreeFolders } from './worktree-files.js'

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
    const place = await placeOf(folder, gitDir)
    if (branch === '' || branchOf(await headOf(gitDir)) !== branch) return false
    const isUnused = await inRepository(this.kernel, place, async git => {
      const having = await git([
        ...['for-each-ref', '--format=%(refname)', '--contains', `refs/heads/${branch}`, 'refs/heads'],
      ])
      if (!having.split('\n').some(other => other !== '' && other !== `refs/heads/${branch}`)) return false
      const changed = await Promise.all([
        git(['status', '--porcelain', '--ignored', '--ignore-submodules=all']),
        // Only compares with the index: git starts nothing in a nested repository for it.
        git(['diff-index', '--cached', '--name-only', '--ignore-submodules=none', 'HEAD']),
      ])
      if (changed.some(text => text.trim() !== '')) return false
      for (const nested of await submodules(git)) {
        const names = await readdir(path.join(folder, nested)).catch(() => [])
        if (names.length > 0) return false
      }
      return true
    })
    if (!isUnused) return false
    await rm(folder, { recursive: true, force: true })
    await rm(gitDir, { recursive: true, force: true })
    const { commonDir } = place
    const shared = { top: commonDir, gitDir: commonDir, commonDir }
    await inRepository(this.kernel, shared, git => git(['update-ref', '-d', `refs/heads/${branch}`]))
    return true
  }
}

/** What a worktree is to be: one that is there, by its name or folder, or a new one. */
type WorktreeRequest = Pick<ForkSessionBody, 'worktree' | 'new_worktree'>

/** The worktree that a request wants. Throws `worktree_invalid` (400), `worktree_failed` (409). */
export async function worktreeFor(kernel: SessionsKernel, root: string, body: WorktreeRequest): Promise<WorktreeInUse> {
  const repository = await findRepository(root)
  if (!repository) throw SessionErrors.worktree_failed(`${root} is not a git repository, nor a folder of one`)
  if (body.worktree !== undefined) {
    if (body.new_worktree) throw SessionErrors.worktree_invalid('give worktree or new_worktree, not both')
    return existing(repository, body.worktree)
  }
  const name = body.new_worktree?.name ?? `fork-${kernel.ids.hex(4)}`
  if (!NAME.test(name) || name.endsWith('.lock') || name.includes('..')) {
    throw SessionErrors.worktree_invalid('the name of a worktree is 1 to 64 letters, digits, . _ and -')
  }
  return created(kernel, repository, name)
}

async function created(kernel: SessionsKernel, repository: RepositoryPlace, name: string): Promise<WorktreeInUse> {
  const { top } = repository
  const beside = path.join(path.dirname(top), `${path.basename(top)}.worktrees`)
  const folder = path.join(beside, name)
  if (await lstat(folder).catch(() => undefined)) throw SessionErrors.worktree_failed(`${folder} is there already`)
  const branch = `svc/${name}`
  const ref = `refs/heads/${branch}`
  const undoing: (() => Promise<unknown>)[] = [() => rmdir(beside)]
  const undo = async () => {
    for (const step of undoing.toReversed())
      await step().catch(error => kernel.log.debug('a fork is undone', { error: messageOf(error) }))
  }
  try {
    await inRepository(kernel, repository, async git => {
      if ((await git(['for-each-ref', ref])) !== '')
        throw SessionErrors.worktree_failed(`there is a branch ${branch} already`)
      const head = await git(['rev-parse', '--verify', '--quiet', 'HEAD']).catch(() => '')
      if (head === '') throw SessionErrors.worktree_failed(`${top} has no commit yet that a worktree could begin with`)
      // The empty value says that there must be no such branch.
      await git(['update-ref', ref, head.trim(), ''])
    })
    undoing.push(() => inRepository(kernel, repository, git => git(['update-ref', '-d', ref])))
    const unique = kernel.ids.hex(4)
    const place = await addWorktree(repository, { folder, ref, unique }, undoing)
    await inRepository(kernel, place, async git => {
      await git(['reset', '--hard', '--quiet'])
      await git.publish()
    })
    return { ...(await described(name, place)), undo }
  } catch (error) {
    await undo()
    throw error
  }
}

/** One of the repository, by the name of its folder or by its path. */
async function existing(repository: RepositoryPlace, wanted: string): Promise<WorktreeInUse> {
  const folders = await worktreeFolders(repository)
  const folder = folders.find(one => one === wanted || path.basename(one) === wanted)
  const place = folder && folder !== repository.top ? await repositoryAt(folder) : undefined
  if (place?.commonDir !== repository.commonDir)
    throw SessionErrors.worktree_invalid(`the repository has no other worktree ${wanted}`)
  return { ...(await described(path.basename(place.top), place)), undo: async () => {} }
}

async function described(name: string, { top, gitDir }: RepositoryPlace): Promise<SessionWorktree> {
  return { name, folder: await realpath(top), branch: branchOf(await headOf(gitDir)), gitDir }
}

/** Empty: a commit is checked out, and no branch. */
const branchOf = (head: string) => /^ref: refs\/heads\/(.+)$/.exec(head)?.[1] ?? ''
