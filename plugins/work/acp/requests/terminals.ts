import { type Clock, type Ids, within } from '../../../../kernel/plugin.js'
import { keep, OutputEnd, type ProcessHandle } from '../../../platform/processes/api.js'
import { notPossible } from '../protocol/error.js'
import type { CreateTerminalParams } from '../protocol/schemas.js'
import { terminalArgv } from './command-line.js'
import { endOf, type TerminalOutput, TerminalOutputs } from './terminal-output.js'

const MAX_TERMINALS = 32
const DEFAULT_OUTPUT_BYTES = 1024 * 1024
const MAX_OUTPUT_BYTES = 4 * 1024 * 1024
/** Milliseconds to read the output that is still in the pipe when its process ends. */
const DRAIN_MS = 500

interface Terminal {
  readonly handle: ProcessHandle
  readonly output: OutputEnd
  /** The process ended and its output was read. */
  readonly done: Promise<void>
  exit: { exitCode: number | null; signal: string | null } | undefined
}

/** The session as its terminals see it. */
export interface TerminalsContext {
  readonly clock: Clock
  readonly ids: Ids
  readonly env: Readonly<Record<string, string>>
  spawn(request: {
    label: string
    argv: readonly string[]
    cwd: string
    env: Readonly<Record<string, string>>
    stdio: 'pipe'
  }): Promise<ProcessHandle>
}

/** The terminals of one session (ACP `terminal/*`): separate processes, started by argument lists. */
export class Terminals {
  readonly #terminals = new Map<string, Terminal>()
  readonly #released = new TerminalOutputs()
  #opening = 0
  #closed = false

  constructor(private readonly context: TerminalsContext) {}

  /** Whether a terminal process runs or is being started. */
  get isRunning(): boolean {
    return this.#opening > 0 || [...this.#terminals.values()].some(({ exit }) => exit === undefined)
  }

  /** @param cwd already checked */
  async create(params: CreateTerminalParams, cwd: string): Promise<string> {
    if (this.#closed) throw notPossible('stopping', 'this session is being stopped')
    if (this.#terminals.size + this.#opening >= MAX_TERMINALS) {
      throw notPossible('terminal_limit', `${MAX_TERMINALS} terminals are open; release one first`)
    }
    this.#opening++
    try {
      const id = this.context.ids.id('trm')
      const handle = await this.context.spawn({
        label: `terminal ${id}`,
        argv: await terminalArgv(params, cwd),
        cwd,
        env: { ...this.context.env, ...variables(params.env ?? []) },
        stdio: 'pipe',
      })
      if (this.#closed) {
        await handle.stop({ graceMs: 0, termMs: 0 })
        throw notPossible('stopping', 'this session is being stopped')
      }
      this.#terminals.set(id, this.#watch(handle, params.outputByteLimit ?? DEFAULT_OUTPUT_BYTES))
      return id
    } finally {
      this.#opening--
    }
  }

  output(id: string) {
    const { output, exit } = this.#find(id)
    return { output: output.text(), truncated: output.truncated, ...(exit && { exitStatus: exit }) }
  }

  /** Output of a terminal, also after its release; undefined when it is unknown or was released long ago. */
  printed(id: string): TerminalOutput | undefined {
    const terminal = this.#terminals.get(id)
    return terminal ? printedOf(terminal) : this.#released.get(id)
  }

  async waitForExit(id: string) {
    const terminal = this.#find(id)
    await terminal.done
    return { ...terminal.exit }
  }

  kill(id: string): void {
    this.#find(id).handle.kill()
  }

  async release(id: string): Promise<void> {
    const terminal = this.#find(id)
    this.#terminals.delete(id)
    this.#released.set(id, printedOf(terminal))
    await end(terminal)
  }

  /** Ends all terminals and refuses new ones. */
  async close(): Promise<void> {
    this.#closed = true
    const all = [...this.#terminals.values()]
    this.#terminals.clear()
    await Promise.all(all.map(end))
  }

  #find(id: string): Terminal {
    const terminal = this.#terminals.get(id)
    if (!terminal) throw notPossible('terminal_not_found', 'no such terminal; it may be released already')
    return terminal
  }

  #watch(handle: ProcessHandle, limit: number): Terminal {
    const output = new OutputEnd(Math.max(0, Math.min(limit, MAX_OUTPUT_BYTES)))
    const closed = [handle.stdout, handle.stderr].map(stream => {
      keep(stream, output)
      return new Promise<void>(resolve => stream.once('close', resolve))
    })
    handle.stdin.end()
    const finish = async () => {
      const { code, signal } = await handle.exited
      // A grandchild may keep the pipe open without limit.
      await within(this.context.clock, DRAIN_MS, Promise.all(closed)).catch(() => {})
      terminal.exit = { exitCode: code, signal }
    }
    const terminal: Terminal = { handle, output, done: Promise.resolve().then(finish), exit: undefined }
    return terminal
  }
}

function printedOf({ output, exit }: Terminal): TerminalOutput {
  const { output: text, truncated } = endOf(output.text())
  return { output: text, truncated: truncated || output.truncated, ...(exit && { exitCode: exit.exitCode }) }
}

async function end({ handle }: Terminal): Promise<void> {
  handle.kill()
  await handle.stop({ graceMs: 0, termMs: 0 })
}

/** Variables set by the agent, without those with which the daemon identifies its own processes. */
function variables(wanted: readonly { name: string; value: string }[]): Record<string, string> {
  return Object.fromEntries(
    wanted.filter(({ name }) => !name.startsWith('SVC_')).map(({ name, value }) => [name, value]),
  )
}
