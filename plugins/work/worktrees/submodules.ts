import { realpath, rm } from 'node:fs/promises'
import path from 'node:path'
import { headOf, type RepositoryPlace, repositoryAt } from '../../../kernel/kit/git/index.js'
import { messageOf } from '../../../kernel/plugin.js'
import { isInside } from '../../desk/workspaces/api.js'
import type { SubmoduleTree } from './api.js'
import { inRepository } from './git.js'
import type { K } from './needs.js'
import { submodules, uncommitted } from './save.js'
import { addWorktree, type Undoing, worktreeRepository } from './worktree-files.js'

/** Maximum depth of nested submodules. */
const MAX_DEPTH = 5

/** Submodules of a worktree after its checkout. */
interface CheckedOut {
  readonly trees: readonly SubmoduleTree[]
  /** A line for each submodule that was not checked out. */
  readonly warnings: readonly string[]
}

/**
 * Checks out the submodules of a worktree at their recorded commits, as worktrees of the workspace's own submodule repositories:
 * nothing is fetched. A missing repository or commit leaves an empty folder.
 * @param undoing receives steps that remove the result
 */
export async function checkOutSubmodules(
  kernel: K,
  source: RepositoryPlace,
  made: RepositoryPlace,
  undoing: Undoing,
  depth = 1,
): Promise<CheckedOut> {
  const trees: SubmoduleTree[] = []
  const warnings: string[] = []
  for (const [name, commit] of await inRepository(kernel, made, submodules)) {
    try {
      if (depth > MAX_DEPTH) throw new Error(`submodules are checked out ${MAX_DEPTH} deep`)
      const theirs = await repositoryOf(source, name)
      await inRepository(kernel, theirs, git => git(['cat-file', '-e', `${commit}^{commit}`])).catch(() => {
        throw new Error(`its repository in the workspace has no commit ${commit.slice(0, 12)}`)
      })
      const folder = path.join(made.top, name)
      if ((await realpath(folder)) !== folder) throw new Error('its folder is a link')
      const repository = await addWorktree(
        theirs,
        { folder, head: commit, unique: kernel.ids.hex(4), isThere: true },
        undoing,
      )
      await inRepository(kernel, repository, async git => {
        await git(['reset', '--hard', '--quiet'])
        await git.publish()
      })
      const nested = await checkOutSubmodules(kernel, theirs, repository, undoing, depth + 1)
      const below = nested.trees.map(tree => ({ ...tree, path: path.join(name, tree.path) }))
      trees.push({ path: name, gitDir: repository.gitDir, commit }, ...below)
      warnings.push(...nested.warnings)
    } catch (error) {
      warnings.push(`submodule ${name} is empty: ${messageOf(error)}`)
    }
  }
  return { trees, warnings }
}

/** The workspace's repository of a submodule. Its path is checked because its pointer could lead to any other repository. */
async function repositoryOf({ top, commonDir }: RepositoryPlace, name: string): Promise<RepositoryPlace> {
  const folder = path.join(top, name)
  const real = await realpath(folder).catch(() => undefined)
  const found = real === folder ? await repositoryAt(folder).catch(() => undefined) : undefined
  if (!found) throw new Error('it is not checked out in the workspace either (git submodule update --init)')
  if (!isInside(found.commonDir, commonDir) && !isInside(found.commonDir, folder))
    throw new Error('its repository lies outside of the repository of the workspace')
  return found
}

/** Whether a submodule is unchanged since its checkout. Nested ones are checked separately. */
export async function isUntouched(kernel: K, folder: string, tree: SubmoduleTree): Promise<boolean> {
  if ((await headOf(tree.gitDir)) !== tree.commit) return false
  const repository = await worktreeRepository(path.join(folder, tree.path), tree.gitDir)
  return (await inRepository(kernel, repository, git => uncommitted(git, repository.top))) === undefined
}

/** Removes the git data of the submodules of a deleted worktree. */
export async function forgetSubmodules(trees: readonly SubmoduleTree[] = []): Promise<void> {
  for (const { gitDir } of trees) await rm(gitDir, { recursive: true, force: true })
}
