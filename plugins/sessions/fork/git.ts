import { within } from '../../../kernel/plugin.js'
import { SessionErrors } from '../api.js'
import type { SessionsKernel } from '../context.js'

const GIT_MS = 60_000
const MAX_OUTPUT = 1024 * 1024

/** Hooks of a repository are somebody else's code, which nobody asked for here. */
const QUIET = ['-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false']

/** Runs git in a folder, by an argument list; resolves with what it printed. Throws `worktree_failed` (409) with its words. */
export async function git(kernel: SessionsKernel, cwd: string, args: readonly string[]): Promise<string> {
  const { processes, providers } = kernel.needs
  const env = { ...(await providers.environment(providers.builtIn)), GIT_TERMINAL_PROMPT: '0', LC_ALL: 'C' }
  const argv = ['git', ...QUIET, ...args]
  const handle = await processes.spawn({ label: `git ${args[0]}`, argv, cwd, env, stdio: 'pipe' }).catch(cause => {
    throw SessionErrors.worktree_failed('git cannot be started', { cause })
  })
  handle.stdin.end()
  const read = async (stream: AsyncIterable<Buffer>) => {
    let text = ''
    for await (const chunk of stream) if (text.length < MAX_OUTPUT) text += chunk.toString()
    return text
  }
  try {
    const all = Promise.all([read(handle.stdout), read(handle.stderr), handle.exited])
    const [stdout, stderr, { code }] = await within(kernel.clock, GIT_MS, all)
    if (code === 0) return stdout
    const why = stderr.trim().split('\n').at(-1) ?? ''
    throw SessionErrors.worktree_failed(`git ${args[0]}: ${kernel.redact.text(why, 500) || `it ended with ${code}`}`)
  } finally {
    await handle.stop({ graceMs: 0, termMs: 1000 }).catch(() => {})
  }
}
