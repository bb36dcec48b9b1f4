import { mkdir, readdir, realpath, rm, rmdir } from 'node:fs/promises'
import path from 'node:path'
import { lineOf, type RepositoryPlace, repositoryIn } from '../../../kernel/kit/git/index.js'
import { writeWhole } from '../../desk/workspaces/api.js'
import { WorktreeErrors } from './errors.js'

/** Steps that undo the creation, run from the last to the first. */
export type Undoing = (() => Promise<unknown>)[]

/** The properties of a new worktree. */
interface NewWorktree {
  readonly folder: string
  /** Content of its HEAD: `ref: refs/heads/…`, or the ID of a commit. */
  readonly head: string
  /** An empty folder exists already. */
  readonly isThere?: boolean
  /** Part of the names of temporary files. */
  readonly unique: string
}

/** Folders of all worktrees known to git, including the main one. */
export async function worktreeFolders({ commonDir }: RepositoryPlace): Promise<string[]> {
  const first = path.basename(commonDir) === '.git' ? [path.dirname(commonDir)] : []
  const admin = path.join(commonDir, 'worktrees')
  const names = await readdir(admin).catch(() => [])
  const linked = names.map(async name => {
    const pointer = await lineOf(path.join(admin, name, 'gitdir')).catch(() => undefined)
    return pointer === undefined ? [] : [path.dirname(path.resolve(admin, name, pointer))]
  })
  return [...first, ...(await Promise.all(linked)).flat()]
}

/**
 * Makes an empty worktree. `git worktree add` is not used, because it starts further git programs that read the configuration of
 * the repository.
 * @param undoing receives steps that remove the result
 */
export async function addWorktree(
  { commonDir }: RepositoryPlace,
  { folder, head, unique, isThere = false }: NewWorktree,
  undoing: Undoing,
): Promise<RepositoryPlace> {
  const admin = path.join(commonDir, 'worktrees')
  await mkdir(admin, { recursive: true })
  if ((await realpath(admin)) !== admin) throw new Error(`${admin} is a link`)
  const gitDir = await freeFolder(path.join(admin, path.basename(folder)))
  undoing.push(() => rm(gitDir, { recursive: true, force: true }))
  if (isThere) {
    // Recreates the folder: a symlink or a non-empty folder is refused.
    await rmdir(folder)
    await mkdir(folder)
  } else {
    await mkdir(path.dirname(folder), { recursive: true })
    await mkdir(folder)
  }
  undoing.push(() => rm(folder, { recursive: true, force: true }))
  const pointer = path.join(folder, '.git')
  const files = [
    [path.join(gitDir, 'HEAD'), `${head}\n`],
    [path.join(gitDir, 'commondir'), '../..\n'],
    [path.join(gitDir, 'gitdir'), `${pointer}\n`],
    [pointer, `gitdir: ${gitDir}\n`],
  ] as const
  for (const [file, text] of files) await writeWhole(file, text, { how: 'create', unique })
  return { top: folder, gitDir, commonDir }
}

/** A free folder name. Git data of a deleted worktree keeps its name in use. */
async function freeFolder(wanted: string, count = 0): Promise<string> {
  const folder = count === 0 ? wanted : `${wanted}${count}`
  try {
    await mkdir(folder)
    return folder
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || count > 99) throw error
    return freeFolder(wanted, count + 1)
  }
}

/**
 * A worktree at its recorded git folder: an agent could have replaced the pointer in the worktree.
 * @throws Fault `worktree_failed` (409)
 */
export async function worktreeRepository(folder: string, gitDir: string): Promise<RepositoryPlace> {
  const real = await Promise.all([folder, gitDir].map(one => realpath(one).catch(() => '')))
  if (real[0] === folder && real[1] === gitDir) return repositoryIn(folder, gitDir)
  throw WorktreeErrors.worktree_failed(`${folder} is no longer the worktree that was created there`)
}
