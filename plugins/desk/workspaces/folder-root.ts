import { lstat } from 'node:fs/promises'
import path from 'node:path'
import { WorkspaceErrors } from './api.js'
import type { Homes } from './homes.js'
import { ancestorsOf } from './paths.js'

/**
 * The root that a command registers for the canonical folder that it runs in: the top level of its git repository, else
 * the folder. Throws `workspace_too_wide` (409) where only a person can mean all of it.
 */
export async function rootFor(folder: string, homes: Homes): Promise<string> {
  const top = await gitTop(folder)
  // A home that is a repository, as of those who keep their settings in one, is not the project of all that lies in it.
  if (top !== undefined && homes.breadthOf(top) === undefined) return top
  const breadth = homes.breadthOf(folder)
  if (breadth === undefined) return folder
  throw WorkspaceErrors.workspace_too_wide(`${folder} ${breadth}: agents would work in all of it`, {
    next: `cd <folder of a project>, or svc workspace add ${shellWord(folder)}`,
  })
}

/** Nearest folder with a `.git`. No program looks for it: one that is run here would obey the repository. */
async function gitTop(folder: string): Promise<string | undefined> {
  for (const at of ancestorsOf(folder)) if (await lstat(path.join(at, '.git')).catch(() => undefined)) return at
  return undefined
}

const shellWord = (text: string) => (/^[\w./+:@%-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)
