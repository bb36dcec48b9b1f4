import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { type Clock, messageOf, type PluginKernel } from '../../../kernel/plugin.js'
import type { ExecInSandboxReply } from '../../../schemas/sessions/sandboxes.js'
import { keep, OutputStart, type ProcessesApi, type ProcessHandle } from '../../platform/processes/api.js'
import { SandboxErrors } from './api.js'
import { type Enclosure, enclosed } from './bubblewrap.js'
import { contains } from './mounts.js'

/** Bytes kept of each output stream of a command. The rest is read and dropped, so that the command does not block. */
const TOLD_BYTES = 256 * 1024
/** Most concurrent commands in one sandbox, in addition to those of its agent. */
const MAX_COMMANDS = 8
/** Variables passed on from the agent's environment: paths and locale, but no keys and no identity. */
const PASSED = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'TZ', 'TERM'] as const

/** A command for a sandbox. */
export interface Exec {
  readonly argv: readonly string[]
  readonly cwd: string | undefined
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** The sandbox of a session while its agent runs, and the commands that other callers run in it. */
export class OpenSandbox {
  readonly #running = new Set<ProcessHandle>()
  #closed = false

  constructor(
    private readonly kernel: { readonly clock: Clock; readonly redact: PluginKernel['redact'] },
    private readonly processes: ProcessesApi,
    private readonly context: {
      readonly sessionId: string
      readonly enclosure: Enclosure
      readonly env: Readonly<Record<string, string>>
      readonly roots: readonly string[]
    },
  ) {}

  get mounts(): Enclosure['mounts'] {
    return this.context.enclosure.mounts
  }

  /** Canonical work folders. */
  get roots(): readonly string[] {
    return this.context.roots
  }

  get commands(): number {
    return this.#running.size
  }

  /**
   * Runs a command and waits for its end. Throws `sandbox_crowded` (409), `sandbox_folder_outside` (422),
   * `sandbox_command_unstarted` (422).
   */
  async exec({ argv, cwd, timeoutMs, signal }: Exec): Promise<ExecInSandboxReply> {
    const { sessionId, enclosure } = this.context
    const folder = await this.#folder(cwd)
    if (this.#closed) throw SandboxErrors.sandbox_not_running()
    if (this.#running.size >= MAX_COMMANDS) throw SandboxErrors.sandbox_crowded()
    const env = Object.fromEntries(
      PASSED.flatMap(name => (this.context.env[name] ? [[name, this.context.env[name]]] : [])),
    )
    const command = enclosed(enclosure, { argv, cwd: folder, env: env as Record<string, string> })
    const handle = await this.processes
      .spawn({ ...command, label: `${sessionId} command in its sandbox`, stdio: 'pipe' })
      .catch(error => {
        throw SandboxErrors.sandbox_command_unstarted(`the command could not be started: ${messageOf(error)}`)
      })
    this.#running.add(handle)
    const end = () => void handle.stop({ graceMs: 0, termMs: 1000 }).catch(() => {})
    let timedOut = false
    const timer = this.kernel.clock.timeout(timeoutMs, () => {
      timedOut = true
      end()
    })
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted || this.#closed) end()
    try {
      handle.stdin.end()
      const stdout = keep(handle.stdout, new OutputStart(TOLD_BYTES))
      const stderr = keep(handle.stderr, new OutputStart(TOLD_BYTES))
      const { code, signal: by } = await handle.exited
      await handle.stop({ graceMs: 0, termMs: 0 })
      const { redact } = this.kernel
      return {
        exit_code: code,
        signal: by,
        stdout: redact.text(stdout.text()),
        stderr: redact.text(stderr.text()),
        truncated: stdout.truncated || stderr.truncated,
        timed_out: timedOut,
      }
    } finally {
      timer.cancel()
      signal.removeEventListener('abort', end)
      this.#running.delete(handle)
    }
  }

  /** Prevents new commands and stops running ones. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#running].map(handle => handle.stop({ graceMs: 0, termMs: 0 })))
  }

  async #folder(cwd: string | undefined): Promise<string> {
    const [root = '/'] = this.context.roots
    if (cwd === undefined) return root
    const folder = await realpath(path.resolve(root, cwd)).catch(() => undefined)
    if (folder === undefined || !this.context.roots.some(one => contains(one, folder)))
      throw SandboxErrors.sandbox_folder_outside()
    return folder
  }
}
