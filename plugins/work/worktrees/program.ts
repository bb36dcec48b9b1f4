import type { Setting } from '../../../kernel/plugin.js'
import { durationText } from '../../../schemas/duration.js'
import { keep, OutputEnd, OutputStart } from '../../platform/processes/api.js'
import { WorktreeErrors } from './errors.js'
import type { K } from './needs.js'

/** A program that runs in a worktree. */
export interface WorktreeProgram {
  /** Name for people. */
  readonly label: string
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly input?: string
  /** The setting with its time limit in milliseconds. */
  readonly within: Setting<number>
  /** Maximum bytes of its output, which is returned; absent: the output and leftover processes are ignored. */
  readonly most?: number
}

const WORDS_BYTES = 64 * 1024
const WORDS = 500
/** Milliseconds to read the last output of a program that has ended. */
const WORDS_MS = 1000

/** Runs a program to its end and returns its output. Throws `worktree_failed` (409), with its last output or the exceeded limit. */
export async function runProgram(kernel: K, program: WorktreeProgram): Promise<string> {
  const { label, argv, cwd, env, input = '', within, most = WORDS_BYTES } = program
  const handle = await kernel.needs.processes.spawn({ label, argv, cwd, env, stdio: 'pipe' }).catch(cause => {
    throw WorktreeErrors.worktree_failed(`${label} cannot be started: ${argv[0]}`, { cause })
  })
  const stdout = keep(handle.stdout, new OutputStart(most))
  const stderr = keep(handle.stderr, new OutputEnd(WORDS_BYTES))
  handle.stdin.on('error', () => {})
  handle.stdin.end(input)
  const read = Promise.all([handle.stdout, handle.stderr].map(closed))
  const limit = kernel.config.get(within)
  let isLate = false
  const timer = kernel.clock.timeout(limit, () => {
    isLate = true
    handle.kill()
  })
  try {
    const [{ code, signal }] = await Promise.all([handle.exited, program.most !== undefined && read])
    if (isLate)
      throw WorktreeErrors.worktree_failed(
        `${label} did not end within ${durationText(limit)} (setting ${within.path})`,
      )
    if (code !== 0) {
      // A process that it started may keep its output open.
      await Promise.race([read, kernel.clock.sleep(WORDS_MS)])
      const words = kernel.redact.text(lastLine(stderr.lines()) || lastLine(stdout.text()), WORDS)
      throw WorktreeErrors.worktree_failed(`${label} failed: ${words || `it ended with ${code ?? signal}`}`)
    }
    if (program.most !== undefined && stdout.truncated)
      throw WorktreeErrors.worktree_failed(`${label} printed more than ${most} bytes`)
    return stdout.text()
  } finally {
    timer.cancel()
    await handle.stop({ graceMs: 0, termMs: 1000 }).catch(() => {})
  }
}

const closed = (stream: NodeJS.ReadableStream) => new Promise<void>(done => stream.once('close', () => done()))
const lastLine = (text: string) => text.trim().split('\n').at(-1) ?? ''
