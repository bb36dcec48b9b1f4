import { realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../read-file.js'

/**
 * A repository on the disk; all paths are canonical. Its owner does not matter, because nothing in it decides which programs run.
 */
export interface RepositoryPlace {
  /** Folder with the files. */
  readonly top: string
  /** Data of this worktree: HEAD and the index. */
  readonly gitDir: string
  /** Data of all worktrees: objects, branches, the configuration. */
  readonly commonDir: string
}

const LINE_BYTES = 4096
const HEAD = /^(?:ref: refs\/\S+|[0-9a-f]{40}|[0-9a-f]{64})\s*$/

/** The repository that contains a folder, searched upwards. */
export async function findRepository(folder: string): Promise<RepositoryPlace | undefined> {
  for (let at = await realpath(folder); ; at = path.dirname(at)) {
    const found = await repositoryAt(at).catch(() => undefined)
    if (found || path.dirname(at) === at) return found
  }
}

/** The repository whose top folder is `top`. */
export async function repositoryAt(top: string): Promise<RepositoryPlace | undefined> {
  const inside = path.join(top, '.git')
  const found = await stat(inside).catch(() => undefined)
  if (!found) return undefined
  const gitDir = await realpath(found.isDirectory() ? inside : path.resolve(top, pointerOf(await lineOf(inside))))
  const repository = await repositoryIn(top, gitDir)
  const parts = [path.join(repository.commonDir, 'objects'), path.join(repository.commonDir, 'refs')]
  const folders = await Promise.all(parts.map(part => stat(part).then(one => one.isDirectory())))
  return folders.every(Boolean) && HEAD.test(await headOf(gitDir)) ? repository : undefined
}

/** The place of a repository whose git folder is known. The `.git` of the folder itself is ignored. */
export async function repositoryIn(top: string, gitDir: string): Promise<RepositoryPlace> {
  const shared = await lineOf(path.join(gitDir, 'commondir')).catch(() => undefined)
  return { top, gitDir, commonDir: shared ? await realpath(path.resolve(gitDir, shared)) : gitDir }
}

/** The checked out branch or commit. @throws when HEAD cannot be read */
export async function headOf(gitDir: string): Promise<string> {
  const head = await lineOf(path.join(gitDir, 'HEAD'))
  if (!HEAD.test(head)) throw new Error(`${path.join(gitDir, 'HEAD')} contains neither a branch nor a commit`)
  return head
}

/** The content of a small file, trimmed. @throws when the file is missing */
export async function lineOf(file: string): Promise<string> {
  const bytes = await readRegularFile(file, { maxBytes: LINE_BYTES })
  if (!bytes) throw new Error(`${file} is not there`)
  return bytes.toString().trim()
}

const pointerOf = (line: string) => line.replace(/^gitdir: /, '')
