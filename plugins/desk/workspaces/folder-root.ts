import { lstat } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { WorkspaceErrors } from './api.js'
import type { Homes } from './homes.js'
import { ancestorsOf } from './paths.js'

/**
 * The root to register for the canonical folder in which a command runs: the top level of its git repository, else the folder
 * itself. Throws `workspace_too_wide` (409) for a folder that only a person may register.
 */
export async function rootFor(folder: string, homes: Homes): Promise<string> {
  const top = await gitTop(folder)
  // A home may be a repository of settings files, but it is not the project of everything below it.
  if (top !== undefined && homes.breadthOf(top) === undefined) return top
  const breadth = homes.breadthOf(folder)
  if (breadth === undefined) return folder
  throw WorkspaceErrors.workspace_too_wide(`${folder} ${breadth}: agents would work in all of it`, {
    next: `cd <folder of a project>${homes.isOfDaemon(folder) ? '' : `, or ${command('workspace add', folder)}`}`,
  })
}

/** Nearest folder with a `.git`. Detected without git, which would apply the configuration of the repository. */
async function gitTop(folder: string): Promise<string | undefined> {
  for (const at of ancestorsOf(folder)) if (await lstat(path.join(at, '.git')).catch(() => undefined)) return at
  return undefined
}
