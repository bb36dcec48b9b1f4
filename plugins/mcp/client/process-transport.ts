import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import type { ProcessHandle } from '../../processes/api.js'
import { LineSplitter } from '../../sessions/api.js'

/** Bytes of one message; a server that sends more is ended. */
export const MOST_BYTES = 4 * 1024 * 1024
const STDERR_BYTES = 2048

/** A server that was started: messages are lines of its standard input and output. */
export class ProcessTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  #stderr = Buffer.alloc(0)
  #problem: Error | undefined
  #isClosed = false

  constructor(private readonly handle: ProcessHandle) {}

  /** Why it ended, and the end of what it wrote to its standard error. */
  get lastWords(): string {
    const said = this.#stderr.toString().trim()
    return [this.#problem?.message, said && `it said: ${said}`].filter(Boolean).join('; ')
  }

  async start(): Promise<void> {
    const { stdout, stderr, stdin, exited } = this.handle
    const lines = new LineSplitter(MOST_BYTES)
    stdout.on('data', (chunk: Buffer) => {
      try {
        for (const line of lines.push(chunk)) this.#take(line)
      } catch (error) {
        this.#problem ??= error as Error
        void this.close()
      }
    })
    stderr.on('data', (chunk: Buffer) => {
      this.#stderr = Buffer.concat([this.#stderr, chunk]).subarray(-STDERR_BYTES)
    })
    for (const stream of [stdin, stdout, stderr]) stream.on('error', error => this.onerror?.(error))
    void exited.then(() => this.#closed())
  }

  send(message: JSONRPCMessage): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(new Error('it has ended'))
      this.handle.stdin.write(`${JSON.stringify(message)}\n`, error => (error ? reject(error) : resolve()))
    })
  }

  async close(): Promise<void> {
    this.#closed()
    await this.handle.stop({ graceMs: 300, termMs: 1000 })
  }

  #take(line: string): void {
    if (this.#isClosed || line === '') return
    let message: unknown
    try {
      message = JSON.parse(line)
    } catch {
      // Some servers log to their standard output; what is no message is skipped, as other clients do.
      return
    }
    if (typeof message === 'object' && message !== null) this.onmessage?.(message as JSONRPCMessage)
  }

  #closed(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.onclose?.()
  }
}
