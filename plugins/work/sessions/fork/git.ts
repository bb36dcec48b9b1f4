import type { Readable } from 'node:stream'
import { type GitCall, type GitHost, type RepositoryPlace, withRepository } from '../../../../kernel/kit/git/index.js'
import { wholeOf } from '../../../../kernel/kit/whole.js'
import { Fault, messageOf, within } from '../../../../kernel/plugin.js'
import { SessionErrors } from '../api.js'
import type { SessionsKernel } from '../context.js'

const GIT_MS = 60_000
const MAX_OUTPUT = 64 * 1024 * 1024

/** Works on a repository by git. Throws `worktree_failed` (409), with the words of git. */
export async function inRepository<T>(
  kernel: SessionsKernel,
  place: RepositoryPlace,
  work: Parameters<typeof withRepository<T>>[2],
): Promise<T> {
  const { providers } = kernel.needs
  const host: GitHost = { run: call => run(kernel, call), env: await providers.environment(providers.builtIn) }
  return withRepository(place, host, work).catch(error => {
    const isTold = error instanceof Fault && error.code === 'worktree_failed'
    throw isTold ? error : SessionErrors.worktree_failed(messageOf(error), { cause: error })
  })
}

async function run(kernel: SessionsKernel, { argv, cwd, env, input }: GitCall): Promise<string> {
  const { processes } = kernel.needs
  const handle = await processes.spawn({ label: 'git', argv, cwd, env, stdio: 'pipe' }).catch(cause => {
    throw SessionErrors.worktree_failed('git cannot be started', { cause })
  })
  handle.stdin.on('error', () => {})
  handle.stdin.end(input)
  const tooMuch = () => SessionErrors.worktree_failed(`git printed more than ${MAX_OUTPUT} bytes`)
  const read = async (stream: Readable) => (await wholeOf(stream, MAX_OUTPUT, tooMuch)).toString()
  try {
    const all = Promise.all([read(handle.stdout), read(handle.stderr), handle.exited])
    const [stdout, stderr, { code }] = await within(kernel.clock, GIT_MS, all)
    if (code === 0) return stdout
    const why = stderr.trim().split('\n').at(-1) ?? ''
    throw SessionErrors.worktree_failed(`git failed: ${kernel.redact.text(why, 500) || `it ended with ${code}`}`)
  } finally {
    await handle.stop({ graceMs: 0, termMs: 1000 }).catch(() => {})
  }
}
