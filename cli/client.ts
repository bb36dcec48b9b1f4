import type { IncomingMessage } from 'node:http'
import { type Exchange, exchange, readBytes, readEvents, readText, resuming } from '../client/exchange.js'
import type { ServerEvent } from '../client/sse.js'
import { type Address, brokenFault, hangingFault, unreachableFault } from './address.js'
import { CliFault, exitCodes, replyFault } from './fault.js'
import type { Progress } from './show/progress.js'

/** A request may take any time while the daemon answers probes: one every `everyMs`, each within `withinMs`. */
const defaultProbe = { everyMs: 5000, withinMs: 5000 }
/** Identifies the CLI to the daemon: events record the origin `cli`. */
const program = { 'user-agent': 'svc/cli' }
/** Maximum wait for the version of the daemon. */
const versionMs = 200
const identityPath = '/api/status/identity'

/** Options of a {@link Client}. */
export interface ClientOptions {
  readonly address: () => Promise<Address>
  readonly signal: AbortSignal
  /** Sent with each request. */
  readonly headers?: Readonly<Record<string, string>>
  /** Called when a stream was interrupted and is retried, with a text for people. */
  readonly notice?: (text: string) => void
  readonly progress?: Progress
  /** Called once with the version of the daemon, requested along with the first request. */
  readonly onVersion?: (version: string) => void
  /** Milliseconds; defaults 5,000 each. */
  readonly probe?: { readonly everyMs: number; readonly withinMs: number }
}

/** The part of a {@link Client} that commands use. */
export type DaemonClient = Pick<Client, 'request' | 'stream'>

/** HTTP and JSON over the daemon's Unix socket. Every failure is a {@link CliFault}. */
export class Client {
  readonly #options: ClientOptions
  #hasRequested = false

  constructor(options: ClientOptions) {
    this.#options = options
  }

  /**
   * Sends one request; returns the JSON body of the reply, undefined when empty. Error replies are thrown with their code.
   * @param path absolute path and query
   */
  async request(
    method: string,
    path: string,
    body?: unknown,
    options: { signal?: AbortSignal; waits?: boolean | string; headers?: Readonly<Record<string, string>> } = {},
  ): Promise<unknown> {
    const { signal = this.#options.signal, headers = {} } = options
    const call = { method, path, headers, body }
    const work = () => this.#whileItLives(signal, both => this.#request({ ...call, signal: both }))
    const { progress } = this.#options
    const isRead = method === 'GET' || path.endsWith('/wait')
    const left = isRead ? undefined : 'the daemon completes what it has received'
    const note = options.waits === true ? '' : options.waits || 'waiting for the daemon'
    return progress ? progress.during(note, work, left) : work()
  }

  /**
   * A server-sent stream. After an interruption, or a `closing` event, it continues after the last ID; it ends when the daemon ends
   * it.
   */
  stream(path: string, options: { lastEventId?: string; signal?: AbortSignal } = {}): AsyncGenerator<ServerEvent> {
    const own = this.#options.signal
    const signal = options.signal ? AbortSignal.any([own, options.signal]) : own
    return resuming(lastEventId => this.#readStream(path, lastEventId, signal), {
      ...options,
      signal,
      mayPass: mayComeBack,
      onCut: () => this.#options.notice?.('the stream was cut; waiting for the daemon'),
      givenUp: cause =>
        new CliFault('stream_cut', 'the stream was cut and the daemon did not come back', { exit: 3, cause }),
    })
  }

  async #request(request: Exchange & { readonly signal: AbortSignal }): Promise<unknown> {
    const { method, path, signal } = request
    const version = this.#tellVersion(signal)
    const asBytes = request.headers?.accept !== undefined
    const response = await this.#send({ ...request, headers: { accept: 'application/json', ...request.headers } })
    const status = response.statusCode ?? 0
    if (asBytes && status < 400) return this.#reading(readBytes(response), signal)
    const reply = await this.#read(response, signal)
    await version
    if (status >= 400) throw replyFault(status, reply)
    if (reply === '') return undefined
    if (!/\bjson\b/.test(response.headers['content-type'] ?? '')) return reply
    try {
      return JSON.parse(reply)
    } catch (cause) {
      throw new CliFault('protocol', `the daemon answered ${method} ${path} with something that is not JSON`, { cause })
    }
  }

  async *#readStream(path: string, lastEventId: string | undefined, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    const headers = { accept: 'text/event-stream', ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) }
    const response = await this.#whileItLives(signal, signal => this.#send({ method: 'GET', path, headers, signal }))
    const status = response.statusCode ?? 0
    if (status >= 400) throw replyFault(status, await this.#read(response, signal))
    yield* readEvents(response, signal)
  }

  async #send(request: Exchange): Promise<IncomingMessage> {
    const address = await this.#options.address()
    try {
      return await exchange(
        { socket: address.socket },
        { ...request, headers: { ...request.headers, ...program, ...this.#options.headers } },
      )
    } catch (error) {
      if (request.signal?.aborted) throw error
      if (isUnreachable(error)) throw await unreachableFault(address, error)
      if (String((error as NodeJS.ErrnoException).code).startsWith('HPE_')) {
        const text = `the program that answers on ${address.socket} is not an svc daemon`
        throw new CliFault('socket_foreign', text, { exit: exitCodes.noDaemon, next: 'svc daemon start', cause: error })
      }
      throw await brokenFault(address, error)
    }
  }

  #read(response: IncomingMessage, signal: AbortSignal): Promise<string> {
    return this.#reading(readText(response), signal)
  }

  async #reading<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await work
    } catch (error) {
      throw signal.aborted ? signal.reason : await brokenFault(await this.#options.address(), error)
    }
  }

  /** Waits as long as the daemon answers probes; when it does not, the work is aborted as unresponsive. */
  async #whileItLives<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { everyMs, withinMs } = this.#options.probe ?? defaultProbe
    const hung = new AbortController()
    const timer = setInterval(async () => {
      const late = AbortSignal.timeout(withinMs)
      // A refused connection is accepted: a stopping daemon still finishes its requests.
      await this.#identity(AbortSignal.any([signal, late])).catch(() => {})
      if (late.aborted) hung.abort(await hangingFault(await this.#options.address(), everyMs + withinMs))
    }, everyMs)
    timer.unref()
    try {
      return await work(AbortSignal.any([signal, hung.signal]))
    } finally {
      clearInterval(timer)
    }
  }

  async #identity(signal: AbortSignal): Promise<string> {
    const { socket } = await this.#options.address()
    return readText(await exchange({ socket }, { method: 'GET', path: identityPath, signal }))
  }

  /** Requests the version once, along with the first request; its errors are ignored. */
  async #tellVersion(signal: AbortSignal): Promise<void> {
    const { onVersion } = this.#options
    if (onVersion === undefined || this.#hasRequested) return
    this.#hasRequested = true
    try {
      const { version } = JSON.parse(
        await this.#identity(AbortSignal.any([signal, AbortSignal.timeout(versionMs)])),
      ).daemon
      if (typeof version === 'string') onVersion(version)
    } catch {}
  }
}

const unreachableCodes = ['ENOENT', 'ECONNREFUSED', 'EACCES', 'EPERM', 'ENOTSOCK', 'ENOTDIR']

function isUnreachable(error: unknown): boolean {
  return unreachableCodes.includes(String((error as NodeJS.ErrnoException).code))
}

/** Errors that also occur while the daemon restarts. */
function mayComeBack(error: unknown): boolean {
  return (
    error instanceof CliFault &&
    [exitCodes.noDaemon, exitCodes.unavailable, exitCodes.failed].some(code => code === error.exit)
  )
}
