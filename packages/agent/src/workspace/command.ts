import { spawn } from 'node:child_process'
import type { AgentContext, ClientCapabilities } from '@agentclientprotocol/sdk/unstable'
import { SECRET_VARIABLES } from '../settings.js'
import { reasonOf } from '../text.js'
import { Refused } from './places.js'

/** Bytes of output that are kept while a command runs. */
const OUTPUT_BYTES = 256 * 1024

export interface CommandResult {
  /** Undefined: a signal ended it. */
  readonly exitCode: number | undefined
  readonly output: string
  readonly isTimedOut: boolean
}

export interface CommandRequest {
  readonly client: AgentContext
  readonly capabilities: ClientCapabilities
  readonly sessionId: string
  /** Read by `/bin/sh`. */
  readonly line: string
  readonly cwd: string
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** A terminal of the client runs it. */
  started(terminalId: string): Promise<void>
}

/**
 * Runs a command line in a terminal of the client, else as a process group of its own. Ends with it, with its time, or with
 * the signal; nothing of it is left running. The key of the endpoint is not in its environment. Throws {@link Refused}.
 */
export function runCommand(request: CommandRequest): Promise<CommandResult> {
  return request.capabilities.terminal === true ? inTerminal(request) : inProcess(request)
}

async function inTerminal(request: CommandRequest): Promise<CommandResult> {
  const { client, sessionId, line, cwd, signal } = request
  const created = client.createTerminal({
    sessionId,
    command: '/bin/sh',
    args: ['-c', line],
    cwd,
    env: SECRET_VARIABLES.map(name => ({ name, value: '' })),
    outputByteLimit: OUTPUT_BYTES,
  })
  const terminal = await abortable(created, signal).catch(error => {
    // One that comes after the turn was cancelled would run on with nobody to release it.
    created.then(late => late.release()).catch(() => {})
    signal.throwIfAborted()
    throw new Refused(`the client refuses: ${reasonOf(error)}`)
  })
  const limit = AbortSignal.timeout(request.timeoutMs)
  try {
    await request.started(terminal.id)
    const exit = await abortable(terminal.waitForExit(), AbortSignal.any([signal, limit])).catch(async error => {
      if (signal.aborted || !limit.aborted) throw error
      await terminal.kill()
      return { exitCode: undefined }
    })
    const { output } = await abortable(terminal.currentOutput(), signal)
    return { exitCode: exit.exitCode ?? undefined, output, isTimedOut: limit.aborted }
  } catch (error) {
    signal.throwIfAborted()
    throw new Refused(`the terminal of the client failed: ${reasonOf(error)}`)
  } finally {
    // Also ends a command that still runs.
    await terminal.release().catch(() => {})
  }
}

function inProcess({ line, cwd, timeoutMs, signal }: CommandRequest): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env }
    for (const name of SECRET_VARIABLES) delete env[name]
    const child = spawn('/bin/sh', ['-c', line], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    const parts: Buffer[] = []
    let kept = 0
    let isTimedOut = false
    const take = (part: Buffer) => {
      parts.push(part)
      kept += part.length
      while (kept > OUTPUT_BYTES && parts.length > 1) kept -= parts.shift()?.length ?? 0
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    const kill = () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
      } catch {
        // The group is gone.
      }
    }
    const timer = setTimeout(() => {
      isTimedOut = true
      kill()
    }, timeoutMs)
    signal.addEventListener('abort', kill, { once: true })
    if (signal.aborted) kill()
    const ended = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', kill)
    }
    child.once('error', error => {
      ended()
      reject(new Refused(`the command cannot be started: ${reasonOf(error)}`))
    })
    // What it left in the background may hold the pipes: with the shell its group ends.
    child.once('exit', kill)
    child.once('close', code => {
      ended()
      if (signal.aborted) reject(signal.reason)
      else resolve({ exitCode: code ?? undefined, output: Buffer.concat(parts).toString(), isTimedOut })
    })
  })
}

/** Settles like `work`, or rejects with the signal's reason as soon as that aborts. */
function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
