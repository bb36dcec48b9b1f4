import { spawn } from 'node:child_process'
import type { AgentContext, ClientCapabilities } from '@agentclientprotocol/sdk/unstable'
import { SECRET_VARIABLES } from '../settings.js'
import { reasonOf } from '../text.js'
import { Refused } from './paths.js'

/** Bytes of output kept while a command runs. */
const OUTPUT_BYTES = 256 * 1024

export interface CommandResult {
  /** Undefined if a signal ended it. */
  readonly exitCode: number | undefined
  readonly output: string
  readonly isTimedOut: boolean
}

export interface CommandRequest {
  readonly client: AgentContext
  readonly capabilities: ClientCapabilities
  readonly sessionId: string
  /** Interpreted by `/bin/sh`. */
  readonly line: string
  readonly cwd: string
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Called when a terminal of the client runs the command. */
  started(terminalId: string): Promise<void>
}

/**
 * Runs a command in a terminal of the client, else as a process group. The whole group is killed at its exit, at the timeout or on
 * the signal. Its environment lacks the endpoint's key.
 * @throws {Refused}
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
    // A terminal created after the cancellation would run on, because nothing else releases it.
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
    // Release also kills a running command.
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
        // The group has exited.
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
    // Background processes may keep the pipes open, so the group is killed when the shell exits.
    child.once('exit', kill)
    child.once('close', code => {
      ended()
      if (signal.aborted) reject(signal.reason)
      else resolve({ exitCode: code ?? undefined, output: Buffer.concat(parts).toString(), isTimedOut })
    })
  })
}

/** Settles like `work`, or rejects with the signal's reason once it aborts. */
function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
