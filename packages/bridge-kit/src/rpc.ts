import type { Readable, Writable } from 'node:stream'

/** Maximum characters of one line from the daemon; a longer one breaks the connection. */
const LONGEST_LINE = 16 * 1024 * 1024

/** An error response of the other side. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message)
  }

  /** The stable error code. */
  get reason(): string {
    const { code } = (this.data ?? {}) as { code?: unknown }
    return typeof code === 'string' ? code : ''
  }

  /** Milliseconds after which the request may be repeated. */
  get retryAfterMs(): number | undefined {
    const { retry_after_ms: ms } = (this.data ?? {}) as { retry_after_ms?: unknown }
    return typeof ms === 'number' && Number.isFinite(ms) && ms >= 0 ? ms : undefined
  }
}

interface Message {
  readonly id?: unknown
  readonly method?: unknown
  readonly params?: unknown
  readonly result?: unknown
  readonly error?: { readonly code?: unknown; readonly message?: unknown; readonly data?: unknown }
}

/** JSON-RPC 2.0 over two streams: one message per line, concurrent requests in both directions. */
export class RpcConnection {
  /** Resolves with the reason when the other side closes the stream or sends an invalid message. */
  readonly closed: Promise<string>
  #close: (why: string) => void = () => {}
  #over: string | undefined
  #nextId = 0
  readonly #waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>()

  constructor(
    input: Readable,
    private readonly output: Writable,
    private readonly answer: (method: string, params: unknown) => Promise<unknown>,
  ) {
    this.closed = new Promise(resolve => {
      this.#close = resolve
    })
    output.on('error', error => this.#end(`the output is closed: ${error.message}`))
    void this.#read(input)
  }

  /** Sends a request. Rejects with the {@link RpcError} of the response, or with an Error when the connection ends. */
  request(method: string, params: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#over !== undefined) throw new Error(this.#over)
      const id = ++this.#nextId
      this.#waiting.set(id, { resolve, reject })
      this.#send({ jsonrpc: '2.0', id, method, params })
    })
  }

  async #read(input: Readable): Promise<void> {
    let held: Buffer[] = []
    let bytes = 0
    try {
      for await (const part of input) {
        const chunk = typeof part === 'string' ? Buffer.from(part) : (part as Buffer)
        let from = 0
        for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
          this.#take(Buffer.concat([...held, chunk.subarray(from, at)]).toString('utf8'))
          held = []
          bytes = 0
          from = at + 1
        }
        held.push(chunk.subarray(from))
        bytes += chunk.length - from
        if (bytes > LONGEST_LINE) throw new Error(`a line of more than ${LONGEST_LINE} bytes`)
      }
      this.#end('the input has ended')
    } catch (error) {
      this.#end(error instanceof Error ? error.message : String(error))
    }
  }

  #take(line: string): void {
    if (line.trim() === '') return
    const message = JSON.parse(line) as Message
    if (typeof message.method === 'string') void this.#answer(message.id, message.method, message.params)
    else this.#settle(message)
  }

  async #answer(id: unknown, method: string, params: unknown): Promise<void> {
    const reply = await this.answer(method, params).then(
      result => ({ result: result ?? {} }),
      error => ({
        error:
          error instanceof RpcError
            ? { code: error.code, message: error.message, data: error.data }
            : { code: -32000, message: error instanceof Error ? error.message : String(error) },
      }),
    )
    if (id !== undefined) this.#send({ jsonrpc: '2.0', id, ...reply })
  }

  #settle({ id, result, error }: Message): void {
    const waiting = this.#waiting.get(id as number)
    if (waiting === undefined) return
    this.#waiting.delete(id as number)
    if (error === undefined) waiting.resolve(result)
    else waiting.reject(new RpcError(Number(error.code) || 0, String(error.message ?? 'refused'), error.data))
  }

  #send(message: unknown): void {
    if (this.#over === undefined) this.output.write(`${JSON.stringify(message)}\n`)
  }

  #end(why: string): void {
    if (this.#over !== undefined) return
    this.#over = why
    for (const { reject } of this.#waiting.values()) reject(new Error(why))
    this.#waiting.clear()
    this.#close(why)
  }
}
