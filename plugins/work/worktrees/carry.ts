import { lstat, mkdir, readlink, realpath, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { RepositoryPlace } from '../../../kernel/kit/git/index.js'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { messageOf } from '../../../kernel/plugin.js'
import { isInside } from '../../desk/workspaces/api.js'
import { WorktreeErrors } from './errors.js'
import { inRepository } from './git.js'
import type { K } from './needs.js'
import { WorktreeSettings } from './settings.js'

/** File with patterns of ignored files to copy into each worktree, as in `.gitignore`. */
const INCLUDE_FILE = '.worktreeinclude'
const INCLUDE_BYTES = 64 * 1024
const MAX_FILES = 10_000
const MAX_FILE_BYTES = 256 * 1024 * 1024

/**
 * Copies ignored files of a working tree into one of its worktrees. Existing files stay. Files that git does not ignore are not
 * copied, because they would be committed with the work.
 * @returns a line for each file that could not be copied
 */
export async function carryFiles(
  kernel: K,
  source: RepositoryPlace,
  top: string,
  wanted: readonly string[],
): Promise<string[]> {
  const patterns = [...wanted, ...(await includedBy(source.top))]
  if (patterns.length === 0) return []
  const files = await inRepository(kernel, source, async git => {
    const list = async (...args: string[]) =>
      (await git(['ls-files', '-z', '--others', ...args])).split('\0').filter(Boolean)
    const matching = await list('--ignored', ...patterns.flatMap(pattern => ['-x', pattern]))
    const others = matching.length === 0 ? [] : await list('--exclude-standard')
    const committable = new Set(others)
    // A name with a trailing slash is a nested repository.
    return matching.filter(name => !committable.has(name) && !name.endsWith('/'))
  })
  if (files.length > MAX_FILES)
    throw WorktreeErrors.worktree_failed(
      `${files.length} files match ${WorktreeSettings.carry.path} and ${INCLUDE_FILE}, more than ${MAX_FILES}; make them with ${WorktreeSettings.setup.path}`,
    )
  const warnings: string[] = []
  const folders = new Set([top])
  for (const name of files)
    await copy(source.top, top, name, folders).catch(error =>
      warnings.push(`${name} is not in the worktree: ${messageOf(error)}`),
    )
  return warnings
}

async function includedBy(top: string): Promise<string[]> {
  const file = path.join(top, INCLUDE_FILE)
  const bytes = await readRegularFile(file, { maxBytes: INCLUDE_BYTES, links: 'refuse' }).catch(() => undefined)
  const lines = bytes?.toString().split(/\r?\n/) ?? []
  return lines.filter(line => line.trim() !== '' && !line.startsWith('#'))
}

async function copy(from: string, top: string, name: string, folders: Set<string>): Promise<void> {
  const file = path.join(from, name)
  const copied = path.join(top, name)
  if (!isInside(await realpath(path.dirname(file)), from)) throw new Error('its folder is a link')
  await makeFolder(path.dirname(copied), folders)
  if (await lstat(copied).catch(() => undefined)) return
  const about = await lstat(file)
  if (about.isSymbolicLink()) return symlink(await readlink(file), copied)
  const bytes = await readRegularFile(file, { maxBytes: MAX_FILE_BYTES, links: 'refuse' })
  if (bytes) await writeFile(copied, bytes, { flag: 'wx', mode: about.mode & 0o777 })
}

/** Makes a folder in a worktree without following a checked-out symlink. */
async function makeFolder(folder: string, made: Set<string>): Promise<void> {
  if (made.has(folder)) return
  await makeFolder(path.dirname(folder), made)
  await mkdir(folder).catch(error => {
    if (error.code !== 'EEXIST') throw error
  })
  if (!(await lstat(folder)).isDirectory()) throw new Error(`${path.basename(folder)} is not a folder there`)
  made.add(folder)
}
