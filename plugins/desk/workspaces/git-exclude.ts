import { closeSync, constants, writeSync } from 'node:fs'
import { mkdir, realpath } from 'node:fs/promises'
import path from 'node:path'
import { findRepository, lineOf, type RepositoryPlace } from '../../../kernel/kit/git/find-repository.js'
import { openRegularFile, readRegularFile } from '../../../kernel/kit/read-file.js'
import { isInside } from './files.js'

/** Largest exclude file in bytes that is extended. */
const SIZE_MAX = 1024 * 1024
/** Characters with a special meaning in a pattern. */
const SPECIAL = /[\\*?[\]!# ]/g

/**
 * Hides a file written by the daemon from `git status` by a line in `info/exclude`, which belongs to this clone only and is never
 * committed. Does nothing outside of a repository, or if the line would go to another repository.
 * @param file canonical path
 */
export async function excludeFromGit(file: string): Promise<void> {
  const repository = await findRepository(path.dirname(file))
  if (!repository || !(await isOwn(repository))) return
  const name = path.relative(repository.top, file)
  if (name.startsWith('..') || /[\r\n]/.test(name)) return
  const folder = path.join(repository.commonDir, 'info')
  await mkdir(folder, { recursive: true })
  if (!isInside(await realpath(folder), repository.commonDir)) return
  const list = path.join(folder, 'exclude')
  const known = String((await readRegularFile(list, { maxBytes: SIZE_MAX, links: 'refuse' })) ?? '')
  const pattern = `/${name.split(path.sep).join('/').replace(SPECIAL, '\\$&')}`
  if (known.split(/\r?\n/).includes(pattern)) return
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT
  const handle = await openRegularFile(list, { flags, mode: 0o644, links: 'refuse' })
  const start = known === '' || known.endsWith('\n') ? '' : '\n'
  try {
    writeSync(handle, `${start}${pattern}\n`)
  } finally {
    closeSync(handle)
  }
}

/** A `.git` file may name any folder: it is a real worktree only if that folder refers back to it. */
async function isOwn({ top, gitDir, commonDir }: RepositoryPlace): Promise<boolean> {
  const own = path.join(top, '.git')
  if (gitDir === own && commonDir === own) return true
  const back = await lineOf(path.join(gitDir, 'gitdir')).catch(() => '')
  return isInside(gitDir, commonDir) && path.resolve(gitDir, back) === own
}
