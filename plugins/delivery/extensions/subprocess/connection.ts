import type { Readable, Writable } from 'node:stream'
import { Serial } from '../../../../kernel/kit/serial.js'
import { parseJson } from '../../../../kernel/kit/text.js'
import { type Clock, messageOf } from '../../../../kernel/plugin.js'
import { readLines } from '../../../platform/processes/api.js'
import { RateLimiter } from '../../../platform/resources/api.js'
import { RpcError, rpcError } from './rpc-error.js'

/** What one process may do to us before it is taken for broken; bytes, counts, milliseconds. */
export const BOUNDS = {
  lineBytes: 8 * 1024 * 1024,
  /** Written by us and not read by it. */
  unreadBytes: 16 * 1024 * 1024,
  /** Requests of ours that wait for an answer. */
  asked: 256,
  /** Requests of its own that are being answered. */
  answering: 64,
  /** Lines in a row that are no message, answers that nobody waits for among them. */
  junk: 100,
  /** Requests and notifications: so many at once, then one each window / requests. */
  messages: { requests: 1000, window: '10s', queue: 0 },
} as const

/** What the other side asks for, and what it says that is no message. */
export interface ConnectionHandlers {
  /** Whose process it is: what its messages cost is attributed to it. */
  readonly owner: string
  /** The answer to a request; a throw is its error, an {@link RpcError} as it is and anything else without its text. */
  answer(method: string, params: unknown): Promise<unknown>
  junk(line: string): void
}

/** A request that the other side was surely not sent. */
export class NotSent extends Error {
  override readonly name = 'NotSent'
}

/** The time that a request has is over. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
}

/** `hungUp`: the other side closed a pipe; else it went beyond a bound, or we closed. */
export interface Closed {
  readonly why: string
  readonly hungUp: boolean
}

interface Pending {
  readonly timer: ReturnType<Clock['timeout']>
  resolve(result: unknown): void
  reject(error: Error): void
}

interface Message {
  readonly jsonrpc?: unknown
  readonly id?: unknown
  readonly method?: unknown
  readonly params?: unknown
  readonly result?: unknown
  readonly error?: unknown
}

/**
 * JSON-RPC 2.0 over the pipes of a process, a message a line, requests in both directions at once. Whatever the other side
 * does is bounded by {@link BOUNDS}; beyond them, or when its output ends, the connection is over and {@link closed} says why.
 */
export class Connection {
  /** That it is over, and why. Resolves once; everything that waited for an answer is rejected then. */
  readonly closed: Promise<Closed>
  #close: (closed: Closed) => void = () => {}
  #over: string | undefined
  #nextId = 0
  readonly #asked = new Map<unknown, Pending>()
  readonly #answering = new Set<unknown>()
  readonly #flood: RateLimiter
  readonly #notifying = new Serial()

  constructor(
    private readonly pipes: { readonly stdin: Writable; readonly stdout: Readable },
    private readonly clock: Clock,
    private readonly handlers: ConnectionHandlers,
  ) {
    this.#flood = new RateLimiter(BOUNDS.messages, clock)
    this.closed = new Promise(resolve => {
      this.#close = resolve
    })
    void this.#read()
  }

  /**
   * Asks the other side. Rejects with its {@link RpcError}, or with an Error when no answer came within `timeoutMs`, too many
   * requests wait already, or the connection is over.
   */
  request(method: string, params: unknown, timeoutMs: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#over !== undefined) throw new NotSent(this.#over)
      if (this.#asked.size >= BOUNDS.asked) throw new NotSent(`${BOUNDS.asked} requests wait for an answer already`)
      const id = ++this.#nextId
      const timer = this.clock.timeout(timeoutMs, () => {
        this.#asked.delete(id)
        reject(new NoAnswer(`no answer to ${method} within ${timeoutMs / 1000} s`))
      })
      this.#asked.set(id, { timer, resolve, reject })
      this.#send({ jsonrpc: '2.0', id, method, params })
    })
  }

  /**
   * Tells the other side something, one after the other. Resolves when it was handed to its pipe: a side that does not read is
   * waited for. Rejects when the connection is over.
   */
  notify(method: string, params: unknown): Promise<void> {
    return this.#notifying.run(
      () =>
        new Promise((resolve, reject) => {
          if (this.#over !== undefined) throw new NotSent(this.#over)
          void this.closed.then(({ why }) => reject(new NotSent(why)))
          this.pipes.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`, error => {
            if (error) this.close(`it closed its input: ${messageOf(error)}`, true)
            else resolve()
          })
        }),
    )
  }

  get isOver(): boolean {
    return this.#over !== undefined
  }

  /** Ends the connection; the process is left alone. */
  close(why: string, hungUp = false): void {
    if (this.#over !== undefined) return
    this.#over = why
    for (const { timer, reject } of this.#asked.values()) {
      timer.cancel()
      reject(new Error(why))
    }
    this.#asked.clear()
    this.#close({ why, hungUp })
  }

  async #read(): Promise<void> {
    const { owner } = this.handlers
    try {
      await readLines(this.pipes.stdout, {
        ...{ owner, lineBytes: BOUNDS.lineBytes, junk: BOUNDS.junk },
        take: line => this.#take(line),
      })
      this.close('it closed its output', true)
    } catch (error) {
      this.close(messageOf(error))
    }
  }

  /** False for a line that is no message. Throws when the other side has gone beyond a bound, or the connection is over. */
  #take(line: string): boolean {
    if (this.#over !== undefined) throw new Error(this.#over)
    const message = parse(line)
    if (message === undefined || !(isRequest(message) || this.#settle(message))) {
      if (line !== '') this.handlers.junk(line)
      return false
    }
    if (!isRequest(message)) return true
    this.#flood.take(() => new Error('it floods the daemon with messages'))
    // A notification asks for nothing, and there is none that we know.
    if (message.id !== undefined) void this.#answer(message.id, message)
    return true
  }

  async #answer(id: unknown, { method, params }: Message & { readonly method: string }): Promise<void> {
    const reply = await this.#outcome(id, method, params)
    if (this.#over === undefined) this.#send({ jsonrpc: '2.0', id, ...reply })
  }

  async #outcome(id: unknown, method: string, params: unknown): Promise<{ result: unknown } | { error: unknown }> {
    if (this.#answering.has(id) || this.#answering.size >= BOUNDS.answering) {
      return {
        error: rpcError('too_many_requests', `${BOUNDS.answering} requests at a time, each with its own id`).toWire(),
      }
    }
    this.#answering.add(id)
    try {
      return { result: (await this.handlers.answer(method, params)) ?? null }
    } catch (error) {
      const told = error instanceof RpcError ? error : rpcError('internal_error', 'an internal error')
      return { error: told.toWire() }
    } finally {
      this.#answering.delete(id)
    }
  }

  /** Hands an answer to who waits for it; false when nobody does. */
  #settle({ id, result, error }: Message): boolean {
    const pending = this.#asked.get(id)
    if (pending === undefined) return false
    this.#asked.delete(id)
    pending.timer.cancel()
    if (error === undefined) pending.resolve(result)
    else pending.reject(toError(error))
    return true
  }

  #send(message: unknown): void {
    const line = `${JSON.stringify(message)}\n`
    if (this.pipes.stdin.writableLength + line.length > BOUNDS.unreadBytes) {
      this.close('it does not read what it is sent')
      return
    }
    this.pipes.stdin.write(line, error => {
      if (error) this.close(`it closed its input: ${messageOf(error)}`, true)
    })
  }
}

function parse(line: string): Message | undefined {
  if (line[0] !== '{') return undefined
  try {
    const message = parseJson(line) as Message
    return message.jsonrpc === '2.0' ? message : undefined
  } catch {
    return undefined
  }
}

function isRequest(message: Message): message is Message & { readonly method: string } {
  const { id, method } = message
  return typeof method === 'string' && (id === undefined || typeof id === 'string' || Number.isFinite(id))
}

function toError(error: unknown): RpcError {
  const { code, message, data } = (error ?? {}) as { code?: unknown; message?: unknown; data?: unknown }
  return new RpcError(Number.isFinite(code) ? (code as number) : 0, String(message ?? 'an error without a text'), data)
}
