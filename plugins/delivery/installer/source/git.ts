import { mkdir, readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { gitCall } from '../../../../kernel/kit/git/index.js'
import { wholeOf } from '../../../../kernel/kit/whole.js'
import { type Clock, messageOf, within } from '../../../../kernel/plugin.js'
import type { ProcessHandle } from '../../../platform/processes/api.js'
import { InstallErrors, refused } from '../errors.js'
import { limits } from './limits.js'
import { type Tree, TreeBuilder } from './tree.js'

/** Dependencies of reading a repository. */
export interface GitHost {
  readonly clock: Clock
  /** The daemon's environment; git receives only a few of its variables. */
  readonly env: Readonly<Record<string, string | undefined>>
  spawn(request: {
    label: string
    argv: string[]
    cwd: string
    env: Record<string, string>
    stdio: 'pipe'
  }): Promise<Pick<ProcessHandle, 'stdin' | 'stdout' | 'stderr' | 'exited' | 'stop' | 'kill'>>
}

/** A commit with its tree. */
export interface GitTree {
  /** The full id of the commit, hex. */
  readonly commit: string
  readonly tree: Tree
}

/**
 * Fetches one commit into a bare repository below `workFolder` and reads its files from the objects. Nothing is checked
 * out, so that hooks, filters, attributes, links and submodules of the repository have no effect.
 * @param url checked by `source.ts`
 * @param ref branch, tag or full id of a commit; absent: the default branch
 * @param expected full id of the commit, compared before any file is read
 * @throws Fault `extension_git_unavailable`, `extension_source_unreachable`, `extension_content_refused`,
 * `extension_archive_digest_mismatch`
 */
export async function readRepository(
  host: GitHost,
  workFolder: string,
  { url, ref = 'HEAD', expected }: { url: string; ref?: string | undefined; expected?: string | undefined },
): Promise<GitTree> {
  const bare = path.join(workFolder, 'repository.git')
  await mkdir(bare, { mode: 0o700 })
  const git = (args: string[], watch?: () => Promise<void>, input?: string) =>
    runGit(host, { bare, args, ...(watch ? { watch } : {}), ...(input === undefined ? {} : { input }) })
  await git(['init', '--quiet', '--bare', '--template=', '.'])
  const watch = async () => {
    if ((await sizeOf(bare)) > limits.cloneBytes)
      throw refused('too_large', `the repository is larger than ${limits.cloneBytes} bytes`)
  }
  await git(['fetch', '--quiet', '--depth=1', '--no-tags', '--no-auto-gc', '--', url, ref], watch)
  const commit = (await git(['rev-parse', '--verify', '--end-of-options', 'FETCH_HEAD^{commit}'])).toString().trim()
  if (expected !== undefined && commit !== expected.toLowerCase())
    throw InstallErrors.extension_archive_digest_mismatch(`the commit is ${commit}, not ${expected}`, {
      details: { expected, actual: commit },
    })
  return { commit, tree: await readCommit(commit, git) }
}

async function readCommit(
  commit: string,
  git: (args: string[], watch?: undefined, input?: string) => Promise<Buffer>,
): Promise<Tree> {
  const listed = (await git(['ls-tree', '-r', '-z', '--long', '--full-tree', commit])).toString().split('\0')
  const tree = new TreeBuilder()
  const files = listed.filter(Boolean).map(line => {
    const [, mode = '', type, id = '', size, name = ''] = /^(\d+) (\w+) (\w+) +(\S+)\t(.*)$/s.exec(line) ?? []
    if (type === 'commit') throw refused('submodule', 'a submodule', name)
    if (mode === '120000') throw refused('link', 'a symbolic link', name)
    if (type !== 'blob' || !/^100[67](44|55|64)$/.test(mode)) throw refused('special_file', `of mode ${mode}`, name)
    tree.expect(name, Number(size))
    return { name, id, size: Number(size), executable: mode === '100755' }
  })
  const objects = await git(['cat-file', '--batch'], undefined, files.map(file => `${file.id}\n`).join(''))
  let at = 0
  for (const { name, id, size, executable } of files) {
    const head = `${id} blob ${size}\n`
    if (objects.toString('latin1', at, at + head.length) !== head)
      throw InstallErrors.extension_source_unreachable(`git did not return the content of ${name}`)
    at += head.length
    tree.add(name, executable, objects.subarray(at, at + size))
    at += size + 1
  }
  return tree.build(() => true)
}

interface GitCall {
  readonly bare: string
  readonly args: readonly string[]
  readonly input?: string
  /** Called periodically while git runs; an error ends it. */
  readonly watch?: () => Promise<void>
}

/** Runs git in the bare repository and returns its output; ends it on timeout or excessive output. */
async function runGit(host: GitHost, { bare, args, input = '', watch }: GitCall): Promise<Buffer> {
  const { argv, cwd, env } = gitCall({ args, gitDir: bare, env: host.env, network: true })
  const child = await host
    .spawn({ label: `git ${args[0]}`, argv: [...argv], cwd, env: { ...env }, stdio: 'pipe' })
    .catch(error => {
      throw InstallErrors.extension_git_unavailable(`git cannot be started: ${messageOf(error)}`)
    })
  const watching = new AbortController()
  try {
    child.stdin.on('error', () => {})
    child.stdin.end(input)
    const ended = Promise.all([
      bounded(child.stdout, limits.treeBytes * 1.25),
      bounded(child.stderr, 64 * 1024),
      child.exited,
    ])
    const watched = watch ? repeat(host.clock, watch, watching.signal) : new Promise<never>(() => {})
    const [out, complaint, exit] = await within(host.clock, limits.gitMs, Promise.race([ended, watched]))
    if (exit.code === 0) return out
    const said = complaint.toString().trim().split('\n').slice(-3).join(' ')
    throw InstallErrors.extension_source_unreachable(`git ${args[0]} failed: ${said || `exit ${exit.code}`}`)
  } catch (error) {
    child.kill()
    if (error instanceof Error && error.message.startsWith('no end within'))
      throw InstallErrors.extension_source_unreachable(`git ${args[0]} took more than ${limits.gitMs / 1000} s`)
    throw error
  } finally {
    watching.abort()
    await child.stop({ graceMs: 0 })
  }
}

const bounded = (stream: Readable, most: number): Promise<Buffer> =>
  wholeOf(stream, most, () => refused('too_large', `git prints more than ${most} bytes`))

async function repeat(clock: Clock, watch: () => Promise<void>, signal: AbortSignal): Promise<never> {
  for (;;) {
    const aborted = await clock.sleep(200, signal).then(
      () => false,
      () => true,
    )
    if (aborted) return new Promise<never>(() => {})
    await watch()
  }
}

/** Size of the files below a folder in bytes; files that disappear during the count are skipped. */
async function sizeOf(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  const sizes = await Promise.all(
    names.map(entry =>
      entry.isFile()
        ? stat(path.join(entry.parentPath ?? entry.path, entry.name)).then(
            found => found.size,
            () => 0,
          )
        : 0,
    ),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}
