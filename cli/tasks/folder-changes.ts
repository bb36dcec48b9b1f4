import { execFile } from 'node:child_process'
import { lstat, opendir, realpath } from 'node:fs/promises'
import { join, relative } from 'node:path'
import {
  findRepository,
  type Git as GitCommand,
  type RepositoryPlace,
  type RunGit,
  withRepository,
} from '../../kernel/kit/git/index.js'
import { isOfDaemon } from '../../plugins/desk/workspaces/files.js'
import type { FolderChange, FolderChanges } from '../../plugins/work/session-commands/task-context.js'

const gitMs = 10_000
const gitBytes = 8 * 1024 * 1024
/** Maximum number of files to scan in a folder without git. */
const mostFiles = 20_000
const scanMs = 3000
/** Folders with generated files, which are large and not part of the work. */
const skipped: ReadonlySet<string> = new Set(['.git', 'node_modules', '.venv', 'target', '__pycache__'])

/** Fingerprints of files by path: size and modification time. */
type Stamps = ReadonlyMap<string, string>

interface Git {
  readonly head: string
  /** Two letters of status by path, relative to the root of the repository. */
  readonly status: ReadonlyMap<string, string>
  readonly stamps: Stamps
}

/** {@link watchFolder} without the files of the daemon, whose home may lie in the folder. */
export async function watchWorkspace(root: string, home: string): Promise<() => Promise<FolderChanges>> {
  const daemon = await realpath(home).catch(() => home)
  return watchFolder(root, path => isOfDaemon(path, daemon))
}

/**
 * Takes a snapshot of a folder; the returned function reports the changes since. Never throws.
 * @param isForeign whether an absolute path is not one of the folder's own files
 */
export async function watchFolder(
  root: string,
  isForeign: (path: string) => boolean = () => false,
): Promise<() => Promise<FolderChanges>> {
  const repository = await findRepository(root).catch(() => undefined)
  const before = repository && (await readGit(repository).catch(() => undefined))
  if (repository && before) {
    return async () => {
      const after = await readGit(repository).catch(() => undefined)
      const found = after && (await gitChanges(repository, before, after).catch(() => undefined))
      if (!found) return { changes: [], isComplete: false }
      return { ...found, changes: found.changes.filter(({ path }) => !isForeign(join(repository.top, path))) }
    }
  }
  const first = await scan(root, isForeign)
  return async () => {
    const second = await scan(root, isForeign)
    return { changes: compare(first.stamps, second.stamps), isComplete: first.isWhole && second.isWhole }
  }
}

async function readGit(repository: RepositoryPlace): Promise<Git> {
  return withRepository(repository, gitHost, async git => {
    const text = await git([
      ...['status', '--porcelain=v1', '-z', '--untracked-files=all', '--no-renames'],
      // Otherwise git starts itself in nested repositories, with their configuration.
      '--ignore-submodules=all',
    ])
    const status = new Map(
      text
        .split('\0')
        .filter(Boolean)
        .map((entry): [string, string] => [entry.slice(3), entry.slice(0, 2)]),
    )
    // Compares the index only, so that git starts no process in a submodule with a staged commit.
    const staged = ['diff-index', '--cached', '--name-only', '-z', '--no-renames', '--ignore-submodules=none', 'HEAD']
    const names = (await git(staged).catch(() => '')).split('\0').filter(Boolean)
    for (const name of names) if (!status.has(name)) status.set(name, 'A ')
    const stamps = new Map<string, string>()
    for (const path of [...status.keys()].slice(0, mostFiles)) {
      stamps.set(path, await stampOf(join(repository.top, path)))
    }
    return { head: await headOf(git), status, stamps }
  })
}

/** The newest commit; empty in a repository without commits. */
const headOf = (git: GitCommand) =>
  git(['rev-parse', '--verify', '--quiet', 'HEAD']).then(
    head => head.trim(),
    () => '',
  )

async function gitChanges(repository: RepositoryPlace, before: Git, after: Git): Promise<FolderChanges> {
  const found = new Map<string, FolderChange>()
  const put = (path: string, change: FolderChange['change']) => found.set(path, { path, change })
  for (const [path, letters] of after.status) {
    const wasDirty = before.status.get(path)
    if (wasDirty === letters && before.stamps.get(path) === after.stamps.get(path)) continue
    const isNew = letters === '??' || letters.includes('A')
    put(path, letters.includes('D') ? 'deleted' : isNew && wasDirty === undefined ? 'added' : 'modified')
  }
  for (const path of before.status.keys()) {
    if (after.status.has(path)) continue
    put(path, (await stampOf(join(repository.top, path))) === 'none' ? 'deleted' : 'modified')
  }
  // Files committed in the meantime have a clean status.
  if (before.head !== after.head && after.head !== '') {
    const words = (await committed(repository, before.head, after.head)).split('\0')
    for (let at = 0; at + 1 < words.length; at += 2) {
      const change = { A: 'added', D: 'deleted' }[words[at] ?? ''] as FolderChange['change'] | undefined
      put(words[at + 1] as string, change ?? 'modified')
    }
  }
  return { changes: sorted(found.values()), isComplete: true, ...(before.head !== after.head && { head: after.head }) }
}

/** Letters and paths of the files that differ between two commits; a repository without commits counts as the empty tree. */
const committed = (repository: RepositoryPlace, before: string, after: string) =>
  withRepository(repository, gitHost, async git => {
    const from = before || (await git(['hash-object', '-t', 'tree', '--no-filters', '--stdin'])).trim()
    return git(['diff-tree', '-r', '-z', '--name-status', '--no-renames', '--no-ext-diff', from, after])
  }).catch(() => '')

async function scan(
  root: string,
  isForeign: (path: string) => boolean,
): Promise<{ readonly stamps: Stamps; readonly isWhole: boolean }> {
  const stamps = new Map<string, string>()
  const until = Date.now() + scanMs
  const folders = [root]
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    const entries = await opendir(folder).catch(() => undefined)
    if (!entries) continue
    for await (const entry of entries) {
      if (stamps.size >= mostFiles || Date.now() > until) return { stamps, isWhole: false }
      const path = join(folder, entry.name)
      if (isForeign(path)) continue
      if (entry.isDirectory() && !skipped.has(entry.name)) folders.push(path)
      else if (!entry.isDirectory()) stamps.set(relative(root, path), await stampOf(path))
    }
  }
  return { stamps, isWhole: true }
}

function compare(before: Stamps, after: Stamps): FolderChange[] {
  const found: FolderChange[] = []
  for (const [path, stamp] of after) {
    const known = before.get(path)
    if (known !== stamp) found.push({ path, change: known === undefined ? 'added' : 'modified' })
  }
  for (const path of before.keys()) if (!after.has(path)) found.push({ path, change: 'deleted' })
  return sorted(found)
}

const sorted = (changes: Iterable<FolderChange>) => [...changes].sort((a, b) => (a.path < b.path ? -1 : 1))

async function stampOf(path: string): Promise<string> {
  const found = await lstat(path, { bigint: true }).catch(() => undefined)
  return found ? `${found.size} ${found.mtimeNs}` : 'none'
}

/** Standard output of git. */
const runGit: RunGit = ({ argv, cwd, env, input }) =>
  new Promise((resolve, reject) => {
    const options = { cwd, env, timeout: gitMs, killSignal: 'SIGKILL', maxBuffer: gitBytes } as const
    const child = execFile(argv[0] as string, argv.slice(1), options, (error, stdout) =>
      error ? reject(error) : resolve(stdout),
    )
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })

const gitHost = { run: runGit, env: process.env }
