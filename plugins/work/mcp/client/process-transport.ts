import { finished } from 'node:stream/promises'
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { parseJson } from '../../../../kernel/kit/text.js'
import { type Clock, messageOf, within } from '../../../../kernel/plugin.js'
import { keep, OutputEnd, type ProcessHandle, readLines } from '../../../platform/processes/api.js'

/** Bytes of one message; a server that sends more is stopped. */
export const MOST_BYTES = 4 * 1024 * 1024
/** Invalid lines in a row: some servers log to standard output, but none this much. */
export const MOST_JUNK = 1000
/** Written bytes that the server has not read; beyond this it counts as unresponsive. */
const MOST_UNREAD = 16 * 1024 * 1024
const STDERR_BYTES = 2048
/** Milliseconds for the last standard error output: another process can keep that pipe open after the server's exit. */
const LAST_WORDS_MS = 500

/** Transport to a started server: one message per line of its standard input and output. */
export class ProcessTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #stderr = new OutputEnd(STDERR_BYTES)
  #problem: Error | undefined
  #isClosed = false

  #said: Promise<void> = Promise.resolve()

  constructor(
    private readonly handle: ProcessHandle,
    private readonly clock: Clock,
  ) {}

  /** The reason of its end, and the end of its standard error output. */
  get lastWords(): string {
    const said = this.#stderr.lines().trim()
    return [this.#problem?.message, said && `it said: ${said}`].filter(Boolean).join('; ')
  }

  async start(): Promise<void> {
    const { stdout, stderr, stdin, exited } = this.handle
    const read = readLines(stdout, {
      ...{ owner: 'mcp', lineBytes: MOST_BYTES, junk: MOST_JUNK },
      take: line => this.#take(line),
    })
    read.catch(error => {
      if (this.#isClosed) return
      this.#problem ??= new Error(messageOf(error))
      void this.close()
    })
    keep(stderr, this.#stderr)
    this.#said = finished(stderr).catch(() => {})
    for (const stream of [stdin, stdout, stderr]) stream.on('error', error => this.onerror?.(error))
    void exited.then(() => this.#end())
  }

  send(message: JSONRPCMessage): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(new Error('it has ended'))
      if (this.handle.stdin.writableLength > MOST_UNREAD) {
        this.#problem ??= new Error('it does not read its input')
        void this.close()
        return reject(this.#problem)
      }
      this.handle.stdin.write(`${JSON.stringify(message)}\n`, error => {
        if (!error) return resolve()
        // A server's exit breaks the pipe first: the rejection waits for the end, whose reason is more precise.
        void this.#end().then(() => reject(error))
      })
    })
  }

  async close(): Promise<void> {
    this.#closed()
    await this.handle.stop({ graceMs: 300, termMs: 1000 })
  }

  /** Some servers log to standard output: invalid lines are skipped, as other clients do. */
  #take(line: string): boolean {
    if (this.#isClosed) throw new Error('it has ended')
    if (line[0] !== '{') return false
    let message: { readonly jsonrpc?: unknown }
    try {
      message = parseJson(line) as typeof message
    } catch {
      return false
    }
    if (message.jsonrpc !== '2.0') return false
    this.onmessage?.(message as JSONRPCMessage)
    return true
  }

  /** Reads the last standard error output before the end is reported. */
  async #end(): Promise<void> {
    await within(this.clock, LAST_WORDS_MS, this.#said).catch(() => {})
    this.#closed()
  }

  #closed(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.onclose?.()
  }
}
