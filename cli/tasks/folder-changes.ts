import { execFile } from 'node:child_process'
import { lstat, opendir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { FolderChange, FolderChanges } from '../../plugins/sessions/cli/task-context.js'

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

/**
 * Takes a snapshot of a folder; the returned function reports the changes since. Never throws.
 * @param isForeign whether an absolute path is none of the folder's own files
 */
export async function watchFolder(
  root: string,
  isForeign: (path: string) => boolean = () => false,
): Promise<() => Promise<FolderChanges>> {
  const own = (base: string, { changes, ...more }: FolderChanges): FolderChanges => {
    return { ...more, changes: changes.filter(({ path }) => !isForeign(join(base, path))) }
  }
  const top = await git(root, ['rev-parse', '--show-toplevel'])
  const before = top === undefined ? undefined : await readGit(top.trim())
  if (top !== undefined && before !== undefined) {
    return async () => {
      const after = await readGit(top.trim())
      return after === undefined
        ? { changes: [], isComplete: false }
        : own(top.trim(), await gitChanges(top.trim(), before, after))
    }
  }
  const first = await scan(root, isForeign)
  return async () => {
    const second = await scan(root, isForeign)
    return { changes: compare(first.stamps, second.stamps), isComplete: first.isWhole && second.isWhole }
  }
}

async function readGit(top: string): Promise<Git | undefined> {
  const text = await git(top, ['status', '--porcelain=v1', '-z', '--untracked-files=all', '--no-renames'])
  if (text === undefined) return undefined
  const status = new Map(
    text
      .split('\0')
      .filter(Boolean)
      .map((entry): [string, string] => [entry.slice(3), entry.slice(0, 2)]),
  )
  const stamps = new Map<string, string>()
  for (const path of [...status.keys()].slice(0, mostFiles)) stamps.set(path, await stampOf(join(top, path)))
  return { head: (await git(top, ['rev-parse', '--verify', '--quiet', 'HEAD']))?.trim() ?? '', status, stamps }
}

async function gitChanges(top: string, before: Git, after: Git): Promise<FolderChanges> {
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
    put(path, (await stampOf(join(top, path))) === 'none' ? 'deleted' : 'modified')
  }
  // Files committed in the meantime have a clean status.
  if (before.head !== after.head && after.head !== '') {
    // A repository without commits is compared with the empty tree.
    const from = before.head || (await git(top, ['hash-object', '-t', 'tree', '/dev/null']))?.trim() || after.head
    const list = await git(top, ['diff', '--name-status', '--no-renames', '-z', from, after.head])
    const words = (list ?? '').split('\0')
    for (let at = 0; at + 1 < words.length; at += 2) {
      const change = { A: 'added', D: 'deleted' }[words[at] ?? ''] as FolderChange['change'] | undefined
      put(words[at + 1] as string, change ?? 'modified')
    }
  }
  return { changes: sorted(found.values()), isComplete: true, ...(before.head !== after.head && { head: after.head }) }
}

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

/** Standard output of git; undefined on any failure. Hooks and the file monitor of the repository are disabled. */
function git(cwd: string, args: readonly string[]): Promise<string | undefined> {
  const safe = ['-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null']
  const options = {
    cwd,
    timeout: gitMs,
    maxBuffer: gitBytes,
    env: { ...process.env, GIT_OPTIONAL_LOCKS: '0', LC_ALL: 'C' },
  }
  return new Promise(resolve => {
    execFile('git', [...safe, ...args], options, (error, stdout) => resolve(error ? undefined : stdout))
  })
}
