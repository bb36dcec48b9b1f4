import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { findRepository, type Git, headOf, type RepositoryPlace, repositoryAt } from '../../../kernel/kit/git/index.js'
import { shown } from '../../../kernel/kit/text.js'
import type {
  Worktree,
  WorktreeDiffQuery,
  WorktreeDiffReply,
  WorktreeFile,
} from '../../../schemas/sessions/worktrees.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import { WorktreeUsers } from './api.js'
import { WorktreeErrors } from './errors.js'
import { inRepository } from './git.js'
import type { K } from './needs.js'
import { addAll } from './save.js'
import { worktreeFolders } from './worktree-files.js'

const DEFAULT_LIMIT = 20
const MOST_WORKTREES = 200
/** Longest patch of one file, in characters. */
const MOST_PATCH = 64 * 1024
/** Git takes larger files for binary ones, and does not load them. */
const BIG_FILE = '512k'

/** No program that the repository names is started: not for a file, a text of a binary file, or a driver. */
const DIFF = [
  ...['-c', `core.bigFileThreshold=${BIG_FILE}`, '-c', 'core.quotePath=false'],
  ...['diff', '--no-ext-diff', '--no-textconv', '--no-color', '--no-renames', '--ignore-submodules=all'],
]

const STATUS = { A: 'added', D: 'deleted', T: 'type_changed' } as const

/** The repository of a workspace. @throws Fault `worktree_failed` (409) */
async function repositoryOf({ rootDir }: Workspace): Promise<RepositoryPlace> {
  const root = await realpath(rootDir).catch(() => rootDir)
  const repository = await findRepository(root).catch(() => undefined)
  if (repository) return repository
  throw WorktreeErrors.worktree_failed(`${root} is not a git repository, nor a folder of one`, { next: 'git init' })
}

/** Worktrees of the repository besides the main one, by name. */
async function placesOf(main: RepositoryPlace): Promise<RepositoryPlace[]> {
  const places: RepositoryPlace[] = []
  for (const folder of (await worktreeFolders(main)).sort().slice(0, MOST_WORKTREES)) {
    const place = await repositoryAt(folder).catch(() => undefined)
    if (place?.commonDir === main.commonDir && place.gitDir !== main.commonDir) places.push(place)
  }
  return places
}

/** Sessions of a workspace by the name of their worktree. */
type SessionsOf = (worktree: string) => readonly string[]

function sessionsIn({ collect }: K, { id }: Workspace): SessionsOf {
  const all = collect(WorktreeUsers).flatMap(({ entry }) => entry.sessionsOf(id))
  return name => all.flatMap(({ id, worktree }) => (worktree === name ? [id] : []))
}

async function toWire({ top, gitDir }: RepositoryPlace, sessionsOf: SessionsOf): Promise<Worktree> {
  const name = path.basename(top)
  const [, branch] = /^ref: refs\/heads\/(.+)$/.exec(await headOf(gitDir)) ?? []
  return { name, folder: top, ...(branch !== undefined && { branch }), sessions: [...sessionsOf(name)] }
}

/** Worktrees of a workspace. A workspace without a repository has none. */
export async function listWorktrees(kernel: K, workspace: Workspace): Promise<Worktree[]> {
  const sessionsOf = sessionsIn(kernel, workspace)
  const main = await repositoryOf(workspace).catch(() => undefined)
  return main ? Promise.all((await placesOf(main)).map(place => toWire(place, sessionsOf))) : []
}

/**
 * Changes of a worktree since it began: commits, uncommitted changes and untracked files.
 * @throws Fault `worktree_not_found` (404), `worktree_failed` (409)
 */
export async function worktreeDiff(
  kernel: K,
  workspace: Workspace,
  name: string,
  { limit = DEFAULT_LIMIT, after }: WorktreeDiffQuery,
): Promise<WorktreeDiffReply> {
  const main = await repositoryOf(workspace)
  const place = (await placesOf(main)).find(({ top }) => path.basename(top) === name)
  if (!place) throw WorktreeErrors.worktree_not_found(`the repository has no worktree ${shown(name)}`)
  const worktree = await toWire(place, sessionsIn(kernel, workspace))
  // The workspace may be in a worktree itself.
  const head = await headOf(main.commonDir)
  return inRepository(
    kernel,
    place,
    async git => {
      const base = await baseOf(git, head.replace(/^ref: /, ''))
      // New files become part of the index of this comparison, without their contents. The index of the worktree stays.
      await addAll(git, '--intent-to-add')
      const all = await changedFiles(git, base)
      const from = after === undefined ? 0 : all.findIndex(file => file.path > after)
      const page = from < 0 ? [] : all.slice(from, from + limit)
      const files: WorktreeFile[] = []
      for (const file of page) files.push(file.additions === undefined ? file : await withPatch(git, base, file))
      const last = page.at(-1)?.path
      const isLast = last === undefined || last === all.at(-1)?.path
      return { worktree, base, files, total: all.length, ...(!isLast && { next_after: last }) }
    },
    // A filter is a program of the settings of a person, which the repository chooses for a file.
    { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
  )
}

/** The commit where the worktree left the branch of the main one; without any, the commit that is checked out. */
async function baseOf(git: Git, main: string): Promise<string> {
  const found = await git(['merge-base', main, 'HEAD']).catch(() => '')
  return found.split('\n')[0] || (await git(['rev-parse', '--verify', '--quiet', 'HEAD'])).trim()
}

/** Changed files, sorted by path. */
async function changedFiles(git: Git, base: string): Promise<WorktreeFile[]> {
  const [statuses, counts] = [
    (await git([...DIFF, '--name-status', '-z', base, '--'])).split('\0'),
    (await git([...DIFF, '--numstat', '-z', base, '--'])).split('\0'),
  ]
  const linesOf = new Map(
    counts.flatMap(entry => {
      const [, added, deleted, file] = /^(\d+)\t(\d+)\t(.+)$/s.exec(entry) ?? []
      return file === undefined ? [] : [[file, { additions: Number(added), deletions: Number(deleted) }] as const]
    }),
  )
  const files: WorktreeFile[] = []
  for (let n = 0; n + 1 < statuses.length; n += 2) {
    const [letter = '', file = ''] = [statuses[n], statuses[n + 1]]
    const status = Object.hasOwn(STATUS, letter) ? STATUS[letter as keyof typeof STATUS] : 'modified'
    files.push({ path: file, status, ...linesOf.get(file), truncated: false })
  }
  return files.sort((a, b) => (a.path < b.path ? -1 : 1))
}

async function withPatch(git: Git, base: string, file: WorktreeFile): Promise<WorktreeFile> {
  const text = await git([...DIFF, '--patch', '--unified=3', base, '--', file.path])
  if (text.length <= MOST_PATCH) return { ...file, patch: text }
  return { ...file, patch: text.slice(0, text.lastIndexOf('\n', MOST_PATCH) + 1), truncated: true }
}
