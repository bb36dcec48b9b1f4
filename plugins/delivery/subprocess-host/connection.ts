import type { Readable, Writable } from 'node:stream'
import { Serial } from '../../../kernel/kit/serial.js'
import { parseJson } from '../../../kernel/kit/text.js'
import { type Clock, messageOf } from '../../../kernel/plugin.js'
import { readLines } from '../../platform/processes/api.js'
import { RateLimiter } from '../../platform/resources/api.js'
import { RpcError, rpcError } from './rpc-error.js'

/** Limits for one process, beyond which it counts as broken; bytes, counts, milliseconds. */
export const BOUNDS = {
  lineBytes: 8 * 1024 * 1024,
  /** Bytes written to the process that it has not read. */
  unreadBytes: 16 * 1024 * 1024,
  /** Requests of the daemon without an answer. */
  asked: 256,
  /** Requests of the process that are being handled. */
  answering: 64,
  /** Invalid lines in a row, including answers to no pending request. */
  junk: 100,
  /** Requests and notifications: the burst, and one per window / requests sustained. */
  messages: { requests: 1000, window: '10s', queue: 0 },
} as const

/** Handlers for requests and invalid lines of the process. */
export interface ConnectionHandlers {
  /** Owner that the cost of its messages is attributed to. */
  readonly owner: string
  /** Answers a request; a thrown {@link RpcError} is sent as it is, any other error without its text. */
  answer(method: string, params: unknown): Promise<unknown>
  junk(line: string): void
}

/** A request that was certainly not sent. */
export class NotSent extends Error {
  override readonly name = 'NotSent'
}

/** A request timed out. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
}

/** `hungUp`: the process closed a pipe; otherwise a limit was exceeded, or the daemon closed the connection. */
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
 * JSON-RPC 2.0 over the pipes of a process, one message per line, with requests in both directions. {@link BOUNDS}
 * limits the process; exceeding them or closing its output ends the connection, and {@link closed} has the reason.
 */
export class Connection {
  /** Resolves once with the reason when the connection ends; all pending requests are then rejected. */
  readonly closed: Promise<Closed>
  #close: (closed: Closed) => void = () => {}
  #over: string | undefined
  #nextId = 0
  readonly #pending = new Map<unknown, Pending>()
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
   * Sends a request. Rejects with the {@link RpcError} of the process, or with an Error on timeout, with too many
   * pending requests, or when the connection ends.
   */
  request(method: string, params: unknown, timeoutMs: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#over !== undefined) throw new NotSent(this.#over)
      if (this.#pending.size >= BOUNDS.asked)
        throw new NotSent(`${BOUNDS.asked} requests are already waiting for an answer`)
      const id = ++this.#nextId
      const timer = this.clock.timeout(timeoutMs, () => {
        this.#pending.delete(id)
        reject(new NoAnswer(`no answer to ${method} within ${timeoutMs / 1000} s`))
      })
      this.#pending.set(id, { timer, resolve, reject })
      this.#send({ jsonrpc: '2.0', id, method, params })
    })
  }

  /**
   * Sends notifications one after the other. Resolves when the pipe accepted it: a slow reader delays the next one.
   * Rejects when the connection ends.
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

  /** Closes the connection without ending the process. */
  close(why: string, hungUp = false): void {
    if (this.#over !== undefined) return
    this.#over = why
    for (const { timer, reject } of this.#pending.values()) {
      timer.cancel()
      reject(new Error(why))
    }
    this.#pending.clear()
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

  /** Handles a line; false for an invalid one. Throws if a limit is exceeded or the connection is closed. */
  #take(line: string): boolean {
    if (this.#over !== undefined) throw new Error(this.#over)
    const message = parse(line)
    if (message === undefined || !(isRequest(message) || this.#settle(message))) {
      if (line !== '') this.handlers.junk(line)
      return false
    }
    if (!isRequest(message)) return true
    this.#flood.take(() => new Error('it floods the daemon with messages'))
    // Notifications have no id and need no answer; none is known.
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
      const failure = error instanceof RpcError ? error : rpcError('internal_error', 'an internal error')
      return { error: failure.toWire() }
    } finally {
      this.#answering.delete(id)
    }
  }

  /** Settles the pending request of an answer; false if there is none. */
  #settle({ id, result, error }: Message): boolean {
    const pending = this.#pending.get(id)
    if (pending === undefined) return false
    this.#pending.delete(id)
    pending.timer.cancel()
    if (error === undefined) pending.resolve(result)
    else pending.reject(toError(error))
    return true
  }

  #send(message: unknown): void {
    const line = `${JSON.stringify(message)}\n`
    if (this.pipes.stdin.writableLength + line.length > BOUNDS.unreadBytes) {
      this.close('it does not read its input')
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
