import { constants } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readdir, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { readRegularFile } from '../read-file.js'
import { type GitCall, gitCall } from './call.js'
import { headOf, type RepositoryPlace } from './find-repository.js'

/** Starts a command and resolves with its output. Rejects with an error of the host's own when git fails. */
export type RunGit = (call: GitCall) => Promise<string>

/** The function that starts git, and the environment of the user. */
export interface GitHost {
  readonly run: RunGit
  readonly env: Readonly<Record<string, string | undefined>>
}

type CallGit = (args: readonly string[], input?: string) => Promise<string>

/** Git on a repository, without the repository's own configuration. */
export interface Git extends CallGit {
  /** Hands the index and HEAD back to the repository. Branches and objects are already there. */
  publish(): Promise<void>
}

const CONFIG_BYTES = 1024 * 1024
const INDEX_BYTES = 1024 * 1024 * 1024

/** Data shared with the repository, which names no program. Links to missing parts dangle. */
const OF_ALL = ['objects', 'refs', 'packed-refs', 'reftable', 'shallow', 'lfs', 'info/exclude', 'info/attributes']
const OF_FOLDER = ['info/sparse-checkout']

const BOOLEAN = /^(?:true|false|yes|no|on|off|1|0)?$/i

/** Settings that define how a repository's data is read, with their allowed values. No other setting is copied. */
const PLAIN: Readonly<Record<string, RegExp>> = {
  'extensions.objectformat': /^sha(?:1|256)$/,
  'extensions.refstorage': /^(?:files|reftable)$/,
  'core.autocrlf': /^(?:true|false|input)$/i,
  'core.eol': /^(?:lf|crlf|native)$/i,
  'core.filemode': BOOLEAN,
  'core.ignorecase': BOOLEAN,
  'core.precomposeunicode': BOOLEAN,
  'core.symlinks': BOOLEAN,
  'core.trustctime': BOOLEAN,
  'core.checkstat': /^(?:default|minimal)$/i,
  'core.sparsecheckout': BOOLEAN,
  'core.sparsecheckoutcone': BOOLEAN,
  'index.sparse': BOOLEAN,
}

/**
 * Works on a repository that may come from another author. Git gets a git folder of its own, with links to the objects and
 * branches, a copy of the index, and a configuration with only {@link PLAIN} settings: no hook, filter, driver, helper, alias,
 * include or remote of the repository exists in it. Filters that the user configured for all repositories run.
 */
export async function withRepository<T>(
  repository: RepositoryPlace,
  host: GitHost,
  work: (git: Git) => Promise<T>,
): Promise<T> {
  const own = await mkdtemp(path.join(tmpdir(), 'svc-git-'))
  try {
    const head = await headOf(repository.gitDir)
    await share(repository, own, head)
    const call = (args: readonly string[], input?: string) =>
      host.run(
        gitCall({ args, gitDir: own, workTree: repository.top, env: host.env, ...(input !== undefined && { input }) }),
      )
    await configure(repository, own, call)
    return await work(Object.assign(call, { publish: () => publish(repository, own, head) }))
  } finally {
    await rm(own, { recursive: true, force: true })
  }
}

async function share({ gitDir, commonDir }: RepositoryPlace, own: string, head: string): Promise<void> {
  await mkdir(path.join(own, 'info'))
  await writeFile(path.join(own, 'HEAD'), `${head}\n`)
  const shared = (await readdir(gitDir)).filter(name => name.startsWith('sharedindex.'))
  const links = [
    ...OF_ALL.map(name => [commonDir, name] as const),
    ...[...OF_FOLDER, ...shared].map(name => [gitDir, name] as const),
  ]
  await Promise.all(links.map(([from, name]) => symlink(path.join(from, name), path.join(own, name))))
  const from = path.join(gitDir, 'index')
  const index = await readRegularFile(from, { maxBytes: INDEX_BYTES, links: 'refuse' })
  if (!index) return
  const { mtimeMs } = await stat(from)
  await writeFile(path.join(own, 'index'), index)
  // Git rechecks files that changed at the time of the index or later. A newer timestamp would hide such a change.
  const seconds = Math.floor(mtimeMs) / 1000
  await utimes(path.join(own, 'index'), seconds, seconds)
}

async function configure({ gitDir, commonDir }: RepositoryPlace, own: string, call: CallGit): Promise<void> {
  await writeFile(path.join(own, 'config'), '[core]\n\tbare = false\n')
  const plain = new Map<string, string>()
  for (const file of [path.join(commonDir, 'config'), path.join(gitDir, 'config.worktree')]) {
    const text = await readRegularFile(file, { maxBytes: CONFIG_BYTES })
    if (!text) continue
    const listed = await call(['config', '--file', '-', '--no-includes', '--null', '--list'], text.toString())
    for (const entry of listed.split('\0').filter(Boolean)) {
      const [name = '', value = ''] = entry.split(/\n(.*)/s)
      if (PLAIN[name]?.test(value)) plain.set(name, value)
    }
  }
  const lines = [...plain].map(([name, value]) => {
    const [section, key] = name.split('.')
    return `[${section}]\n\t${key}${value === '' ? '' : ` = ${value}`}\n`
  })
  const version = Number([...plain.keys()].some(name => name.startsWith('extensions.')))
  await writeFile(
    path.join(own, 'config'),
    `[core]\n\trepositoryformatversion = ${version}\n\tbare = false\n${lines.join('')}`,
  )
}

/** Files are replaced, never written into: an existing one could be a link to a file outside. */
async function publish({ gitDir }: RepositoryPlace, own: string, before: string): Promise<void> {
  const changed = (await headOf(own)) === before ? ['index'] : ['index', 'HEAD']
  for (const name of changed) {
    const temporary = path.join(gitDir, `${name}.${path.basename(own)}`)
    try {
      await copyFile(path.join(own, name), temporary, constants.COPYFILE_EXCL)
      await rename(temporary, path.join(gitDir, name))
    } finally {
      await rm(temporary, { force: true })
    }
  }
}
