import type { IncomingMessage } from 'node:http'
import { type Exchange, exchange, readEvents, readText, resuming } from '../client/exchange.js'
import type { ServerEvent } from '../client/sse.js'
import { type Address, unreachableFault } from './address.js'
import { CliFault, exitCodes, replyFault } from './fault.js'

/** HTTP and JSON over the daemon's Unix socket. Every failure is a {@link CliFault}. */
export class Client {
  constructor(
    private readonly address: () => Promise<Address>,
    private readonly signal: AbortSignal,
    /** Told, for people, when a stream was cut and is tried again. */
    private readonly notice: (text: string) => void = () => {},
  ) {}

  /**
   * One request; the reply's body from JSON, undefined when it is empty. Error replies are thrown with their code.
   * @param path absolute path and query
   */
  async request(
    method: string,
    path: string,
    body?: unknown,
    options: { signal?: AbortSignal } = {},
  ): Promise<unknown> {
    const response = await this.#send({
      method,
      path,
      headers: { accept: 'application/json' },
      body,
      signal: options.signal ?? this.signal,
    })
    const reply = await readText(response)
    const status = response.statusCode ?? 0
    if (status >= 400) throw replyFault(status, reply)
    if (reply === '') return undefined
    if (!/\bjson\b/.test(response.headers['content-type'] ?? '')) return reply
    try {
      return JSON.parse(reply)
    } catch (cause) {
      throw new CliFault('protocol', `the daemon answered ${method} ${path} with something that is not JSON`, { cause })
    }
  }

  /**
   * A server-sent stream. When it is cut, or the daemon says `closing`, it goes on after the last id; it ends when the
   * daemon ends it.
   */
  stream(path: string, options: { lastEventId?: string } = {}): AsyncGenerator<ServerEvent> {
    return resuming(lastEventId => this.#readStream(path, lastEventId), {
      ...options,
      signal: this.signal,
      mayPass: mayComeBack,
      onCut: () => this.notice('the stream was cut; waiting for the daemon'),
      givenUp: cause =>
        new CliFault('stream_cut', 'the stream was cut and the daemon did not come back', { exit: 3, cause }),
    })
  }

  async *#readStream(path: string, lastEventId: string | undefined): AsyncGenerator<ServerEvent> {
    const response = await this.#send({
      method: 'GET',
      path,
      headers: { accept: 'text/event-stream', ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) },
      signal: this.signal,
    })
    const status = response.statusCode ?? 0
    if (status >= 400) throw replyFault(status, await readText(response))
    yield* readEvents(response, this.signal)
  }

  async #send(request: Exchange): Promise<IncomingMessage> {
    const address = await this.address()
    try {
      return await exchange({ socket: address.socket }, request)
    } catch (error) {
      if (request.signal?.aborted) throw error
      if (isUnreachable(error)) throw await unreachableFault(address, error)
      throw new CliFault('connection', `the connection to the daemon failed: ${(error as Error).message}`, {
        cause: error,
      })
    }
  }
}

const unreachableCodes = ['ENOENT', 'ECONNREFUSED', 'EACCES', 'EPERM', 'ENOTSOCK', 'ENOTDIR']

function isUnreachable(error: unknown): boolean {
  return unreachableCodes.includes(String((error as NodeJS.ErrnoException).code))
}

/** A daemon that is being restarted refuses in these ways. */
function mayComeBack(error: unknown): boolean {
  return (
    error instanceof CliFault &&
    [exitCodes.noDaemon, exitCodes.unavailable, exitCodes.failed].some(code => code === error.exit)
  )
}
