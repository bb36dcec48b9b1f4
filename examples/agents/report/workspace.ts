import { constants } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, opendir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  type AgentContext,
  type ClientCapabilities,
  methods,
  type ReadTextFileRequest,
  type WriteTextFileRequest,
} from '@agentclientprotocol/sdk'
import type { Command } from './git-log.js'
import { type DirectoryEntry, LIMITS, type Readers } from './inspect.js'

export interface CommandResult {
  readonly exitCode: number | undefined
  readonly output: string
}

const COMMAND_TIMEOUT_MS = 30_000
const OUTPUT_LIMIT_BYTES = 256 * 1024

/**
 * A session's workspace, seen through the client wherever the client offers a method: it may know unsaved buffers, and
 * it can refuse. What it lacks is done with node:fs. Every wait ends when the turn is cancelled.
 */
export class Workspace implements Readers {
  constructor(
    private readonly client: AgentContext,
    private readonly capabilities: ClientCapabilities,
    private readonly sessionId: string,
    readonly cwd: string,
    private readonly signal: AbortSignal,
  ) {}

  get clientReads(): boolean {
    return this.capabilities.fs?.readTextFile === true
  }

  get clientWrites(): boolean {
    return this.capabilities.fs?.writeTextFile === true
  }

  get clientRunsCommands(): boolean {
    return this.capabilities.terminal === true
  }

  /** Lists with node:fs, for ACP has no method for it. Stops one entry past the limit, which tells the caller. */
  async list(directory: string): Promise<DirectoryEntry[]> {
    const entries: DirectoryEntry[] = []
    for await (const entry of await opendir(join(this.cwd, directory))) {
      this.signal.throwIfAborted()
      if (entry.isDirectory()) entries.push({ name: entry.name, kind: 'directory', size: 0 })
      if (entry.isFile()) {
        const size = await fileSize(join(this.cwd, directory, entry.name))
        if (size !== undefined) entries.push({ name: entry.name, kind: 'file', size })
      }
      if (entries.length > LIMITS.entriesPerDirectory) break
    }
    return entries
  }

  async read(path: string): Promise<string> {
    this.signal.throwIfAborted()
    const params: ReadTextFileRequest = { sessionId: this.sessionId, path: join(this.cwd, path) }
    if (!this.clientReads) return readOwn(params.path)
    const { content } = await this.client.request(methods.client.fs.readTextFile, params, this.#cancellable())
    return content
  }

  async write(absolute: string, content: string): Promise<void> {
    this.signal.throwIfAborted()
    if (!this.clientWrites) return writeOwn(absolute, content)
    const params: WriteTextFileRequest = { sessionId: this.sessionId, path: absolute, content }
    await this.client.request(methods.client.fs.writeTextFile, params, this.#cancellable())
  }

  /** The text of a file that the report would replace; undefined when there is none or it cannot be read. */
  async readExisting(path: string): Promise<string | undefined> {
    const size = await fileSize(join(this.cwd, path))
    if (size === undefined || size > LIMITS.fileSize) return undefined
    return this.read(path).catch(() => {
      this.signal.throwIfAborted()
      return undefined
    })
  }

  /**
   * Runs a command in a terminal of the client: create, wait, read the output, release. `started` hears the terminal's
   * id, for a client shows the output of a terminal that a tool call names.
   */
  async run(command: Command, started: (terminalId: string) => Promise<void>): Promise<CommandResult> {
    this.signal.throwIfAborted()
    const created = this.client.createTerminal({
      sessionId: this.sessionId,
      command: command.command,
      args: [...command.args],
      cwd: this.cwd,
      outputByteLimit: OUTPUT_LIMIT_BYTES,
    })
    const terminal = await abortable(created, this.signal).catch(error => {
      // A terminal that comes after the turn was cancelled would otherwise run on with nobody to release it.
      created.then(late => late.release()).catch(() => {})
      throw error
    })
    try {
      await started(terminal.id)
      const limit = AbortSignal.any([this.signal, AbortSignal.timeout(COMMAND_TIMEOUT_MS)])
      const { exitCode } = await abortable(terminal.waitForExit(), limit)
      const { output } = await abortable(terminal.currentOutput(), limit)
      return { exitCode: exitCode ?? undefined, output }
    } finally {
      // Also ends a command that still runs.
      await abortable(terminal.release(), this.signal).catch(() => {})
    }
  }

  #cancellable() {
    return { cancellationSignal: this.signal, stopWaitingOnCancel: true }
  }
}

/** Settles like `work`, or rejects with the signal's reason as soon as that aborts. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

async function fileSize(absolute: string): Promise<number | undefined> {
  const stats = await lstat(absolute).catch(() => undefined)
  return stats?.isFile() ? stats.size : undefined
}

// A link or a pipe may have taken the file's place since it was looked at: the one is refused, the other not waited for.
async function openPlain(absolute: string, flags: number): Promise<FileHandle> {
  const file = await open(absolute, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o644)
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw new Error(`${absolute} is not a regular file`)
}

async function readOwn(absolute: string): Promise<string> {
  await using file = await openPlain(absolute, constants.O_RDONLY)
  const { bytesRead, buffer } = await file.read(Buffer.alloc(LIMITS.fileSize), 0, LIMITS.fileSize, 0)
  return buffer.toString('utf8', 0, bytesRead)
}

async function writeOwn(absolute: string, content: string): Promise<void> {
  await mkdir(dirname(absolute), { recursive: true })
  await using file = await openPlain(absolute, constants.O_WRONLY | constants.O_CREAT)
  await file.truncate()
  await file.writeFile(content)
}
