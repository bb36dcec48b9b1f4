import { lstat, readdir, realpath, rm, rmdir } from 'node:fs/promises'
import path from 'node:path'
import { shellWord } from '../../../kernel/kit/commands/command-line.js'
import { findRepository, headOf, type RepositoryPlace, repositoryAt } from '../../../kernel/kit/git/index.js'
import { messageOf } from '../../../kernel/plugin.js'
import { WorkspaceErrors } from '../../desk/workspaces/api.js'
import type { SessionWorktree, WorktreeInUse, WorktreesApi } from './api.js'
import { carryFiles } from './carry.js'
import { WorktreeErrors } from './errors.js'
import { inRepository } from './git.js'
import type { K } from './needs.js'
import { saveWorktree, submodules as submodulesOf, uncommitted } from './save.js'
import { settingOf, setUp, tearDown } from './set-up.js'
import { WorktreeSettings } from './settings.js'
import { checkOutSubmodules, forgetSubmodules, isUntouched } from './submodules.js'
import { addWorktree, type Undoing, worktreeFolders, worktreeRepository } from './worktree-files.js'

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/

/** Worktrees of the repositories of workspaces. */
export class WorktreesService implements WorktreesApi {
  constructor(readonly kernel: K) {}

  async of(workspaceId: string, wish: { readonly create: string } | { readonly use: string }): Promise<WorktreeInUse> {
    const workspace = this.kernel.needs.workspaces.get(workspaceId)
    if (!workspace) throw WorkspaceErrors.workspace_not_found(`no workspace ${workspaceId}`)
    return this.requested(
      workspace,
      'create' in wish ? { new_worktree: { name: wish.create } } : { worktree: wish.use },
    )
  }

  async requested(...[{ id, rootDir }, body]: Parameters<WorktreesApi['requested']>): Promise<WorktreeInUse> {
    const { kernel } = this
    const root = await realpath(rootDir).catch(() => rootDir)
    const repository = await findRepository(root)
    if (!repository) throw WorktreeErrors.worktree_failed(`${root} is not a git repository, nor a folder of one`)
    const origin = { workspaceId: id, root, repository, below: path.relative(repository.top, root) }
    if (body.worktree !== undefined) {
      if (body.new_worktree) throw WorktreeErrors.worktree_invalid('give worktree or new_worktree, not both')
      return existing(origin, body.worktree)
    }
    const name = body.new_worktree?.name ?? `fork-${kernel.ids.hex(4)}`
    if (!NAME.test(name) || name.endsWith('.lock') || name.includes('..')) {
      throw WorktreeErrors.worktree_invalid('the name of a worktree is 1 to 64 letters, digits, . _ and -')
    }
    return created(kernel, origin, name)
  }

  save(worktree: SessionWorktree, message: string): Promise<string> {
    return saveWorktree(this.kernel, worktree, message)
  }

  async discardUnused(worktree: SessionWorktree): Promise<boolean> {
    const { folder, gitDir, branch, submodules = [] } = worktree
    const repository = await worktreeRepository(folder, gitDir)
    if (branch === '' || branchOf(await headOf(gitDir)) !== branch) return false
    const isUnused = await inRepository(this.kernel, repository, async git => {
      const having = await git([
        ...['for-each-ref', '--format=%(refname)', '--contains', `refs/heads/${branch}`, 'refs/heads'],
      ])
      if (!having.split('\n').some(other => other !== '' && other !== `refs/heads/${branch}`)) return false
      if ((await uncommitted(git, folder)) !== worktree.untouched) return false
      const known = new Set(submodules.map(one => one.path))
      for (const [nested] of await submodulesOf(git)) {
        if (known.has(nested)) continue
        const names = await readdir(path.join(folder, nested)).catch(() => [])
        if (names.length > 0) return false
      }
      return true
    })
    if (!isUnused) return false
    for (const one of submodules) if (!(await isUntouched(this.kernel, folder, one))) return false
    await tearDown(this.kernel, worktree)
    await rm(folder, { recursive: true, force: true })
    await forgetSubmodules(submodules)
    await rm(gitDir, { recursive: true, force: true })
    const { commonDir } = repository
    const shared = { top: commonDir, gitDir: commonDir, commonDir }
    await inRepository(this.kernel, shared, git => git(['update-ref', '-d', `refs/heads/${branch}`]))
    return true
  }
}

/** The workspace of a new worktree. */
interface Origin {
  readonly workspaceId: string
  /** Canonical. */
  readonly root: string
  readonly repository: RepositoryPlace
  /** The root relative to the top of the repository. */
  readonly below: string
}

async function created(kernel: K, origin: Origin, name: string): Promise<WorktreeInUse> {
  const { repository, below, workspaceId } = origin
  const { top } = repository
  const worktreesFolder = path.join(path.dirname(top), `${path.basename(top)}.worktrees`)
  const folder = path.join(worktreesFolder, name)
  if (await lstat(folder).catch(() => undefined)) throw WorktreeErrors.worktree_failed(`${folder} is there already`)
  const branch = `svc/${name}`
  const ref = `refs/heads/${branch}`
  const undoing: Undoing = [() => rmdir(worktreesFolder)]
  const undo = async () => {
    for (const step of undoing.toReversed())
      await step().catch(error => kernel.log.debug('a worktree is taken back', { error: messageOf(error) }))
  }
  try {
    await inRepository(kernel, repository, async git => {
      if ((await git(['for-each-ref', ref])) !== '')
        throw WorktreeErrors.worktree_failed(`there is a branch ${branch} already`)
      const head = await git(['rev-parse', '--verify', '--quiet', 'HEAD']).catch(() => '')
      if (head === '')
        throw WorktreeErrors.worktree_failed(`${top} has no commit yet to base a worktree on; create one first`, {
          next: `git -C ${shellWord(top)} commit --allow-empty -m start`,
        })
      // The empty old value makes git fail if the branch exists.
      await git(['update-ref', ref, head.trim(), ''])
    })
    undoing.push(() => inRepository(kernel, repository, git => git(['update-ref', '-d', ref])))
    const unique = kernel.ids.hex(4)
    const made = await addWorktree(repository, { folder, head: `ref: ${ref}`, unique }, undoing)
    await inRepository(kernel, made, async git => {
      await git(['reset', '--hard', '--quiet'])
      await git.publish()
    })
    const workingFolder = await workingFolderIn(made.top, below)
    if (workingFolder === undefined)
      throw WorktreeErrors.worktree_failed(`${below} is not in the newest commit of ${top}`)
    const { trees, warnings } = await checkOutSubmodules(kernel, repository, made, undoing)
    const described = { ...(await worktreeAt(name, made)), place: workingFolder, workspaceId, submodules: trees }
    const uncarried = await carryFiles(
      kernel,
      repository,
      made.top,
      await settingOf(kernel, WorktreeSettings.carry, workspaceId),
    )
    undoing.push(() => tearDown(kernel, described))
    await setUp(kernel, described, origin.root)
    const untouched = await inRepository(kernel, made, git => uncommitted(git, made.top))
    return { ...described, ...(untouched && { untouched }), warnings: [...warnings, ...uncarried], undo }
  } catch (error) {
    await undo()
    throw error
  }
}

/** An existing worktree, by the name of its folder or by its path. */
async function existing({ repository, below }: Origin, wanted: string): Promise<WorktreeInUse> {
  const folders = await worktreeFolders(repository)
  const folder = folders.find(one => one === wanted || path.basename(one) === wanted)
  const found = folder && folder !== repository.top ? await repositoryAt(folder) : undefined
  if (found?.commonDir !== repository.commonDir)
    throw WorktreeErrors.worktree_invalid(`the repository has no other worktree ${wanted}`)
  const workingFolder = await workingFolderIn(found.top, below)
  if (workingFolder === undefined) throw WorktreeErrors.worktree_failed(`the worktree ${wanted} has no folder ${below}`)
  return {
    ...(await worktreeAt(path.basename(found.top), found)),
    place: workingFolder,
    warnings: [],
    undo: async () => {},
  }
}

/** The folder of the workspace in a worktree; undefined when it is missing or a symlink. */
async function workingFolderIn(top: string, below: string): Promise<string | undefined> {
  const workingFolder = path.join(await realpath(top), below)
  const real = await realpath(workingFolder).catch(() => undefined)
  return real === workingFolder && (await lstat(workingFolder)).isDirectory() ? workingFolder : undefined
}

async function worktreeAt(name: string, { top, gitDir }: RepositoryPlace): Promise<SessionWorktree> {
  return { name, folder: await realpath(top), branch: branchOf(await headOf(gitDir)), gitDir }
}

/** The branch of a HEAD; empty when a commit is checked out directly. */
const branchOf = (head: string) => /^ref: refs\/heads\/(.+)$/.exec(head)?.[1] ?? ''
