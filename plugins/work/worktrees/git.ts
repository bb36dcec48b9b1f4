import { type GitCall, type GitHost, type RepositoryPlace, withRepository } from '../../../kernel/kit/git/index.js'
import { Fault, messageOf } from '../../../kernel/plugin.js'
import { WorktreeErrors } from './errors.js'
import type { K } from './needs.js'
import { runProgram } from './program.js'
import { WorktreeSettings } from './settings.js'

const MAX_OUTPUT = 64 * 1024 * 1024

/** Runs git in a repository. Throws `worktree_failed` (409), with the message of git. */
export async function inRepository<T>(
  kernel: K,
  repository: RepositoryPlace,
  work: Parameters<typeof withRepository<T>>[2],
  env: Readonly<Record<string, string>> = {},
): Promise<T> {
  const host: GitHost = { run: call => git(kernel, call), env: { ...(await environmentOf(kernel)), ...env } }
  return withRepository(repository, host, work).catch(error => {
    const isTold = error instanceof Fault && error.code === 'worktree_failed'
    throw isTold ? error : WorktreeErrors.worktree_failed(messageOf(error), { cause: error })
  })
}

/** The environment of the operator, without the daemon's own variables. */
export function environmentOf({ needs: { providers } }: K): Promise<Record<string, string>> {
  return providers.environment(providers.builtIn)
}

function git(kernel: K, call: GitCall): Promise<string> {
  return runProgram(kernel, { ...call, label: 'git', within: WorktreeSettings.gitTimeout, most: MAX_OUTPUT })
}
