import { request as httpRequest, type IncomingMessage } from 'node:http'
import { StringDecoder } from 'node:string_decoder'
import { type Address, unreachableFault } from './address.js'
import { CliFault, exitCodes, replyFault } from './fault.js'
import { type ServerEvent, SseParser } from './sse.js'

/** How long a cut stream is tried again before the command gives up, in milliseconds. */
const resumeMs = 15_000
const resumePauseMs = 200

interface Exchange {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal: AbortSignal
}

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
    const text = body === undefined ? undefined : JSON.stringify(body)
    const response = await this.#send({
      method,
      path,
      headers: { accept: 'application/json', ...(text !== undefined && { 'content-type': 'application/json' }) },
      ...(text !== undefined && { body: text }),
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
  async *stream(path: string, options: { lastEventId?: string } = {}): AsyncGenerator<ServerEvent> {
    let lastEventId = options.lastEventId
    /** When the stream was cut, in milliseconds since 1970; undefined while it flows. */
    let cutAt: number | undefined
    for (;;) {
      try {
        for await (const frame of this.#readStream(path, lastEventId)) {
          cutAt = undefined
          lastEventId = frame.id ?? lastEventId
          yield frame
        }
        return
      } catch (error) {
        if (this.signal.aborted || !(error instanceof StreamCut || (cutAt !== undefined && mayComeBack(error))))
          throw error
        if (cutAt === undefined) this.notice('the stream was cut; waiting for the daemon')
        cutAt ??= Date.now()
        if (Date.now() - cutAt > resumeMs) {
          throw new CliFault('stream_cut', 'the stream was cut and the daemon did not come back', {
            exit: 3,
            cause: error,
          })
        }
        await pause(resumePauseMs, this.signal)
      }
    }
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
    const decoder = new StringDecoder('utf8')
    const parser = new SseParser()
    try {
      for await (const chunk of response) {
        for (const frame of parser.push(decoder.write(chunk))) {
          if (frame.event === 'closing') throw new StreamCut('the daemon closes the stream for now')
          yield frame
        }
      }
    } catch (error) {
      if (this.signal.aborted || error instanceof StreamCut) throw error
      throw new StreamCut('the connection was cut', { cause: error })
    }
    if (!response.complete) throw new StreamCut('the connection was cut')
  }

  async #send({ method, path, headers, body, signal }: Exchange): Promise<IncomingMessage> {
    const address = await this.address()
    try {
      return await new Promise((resolve, reject) => {
        const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
        const options = {
          socketPath: address.socket,
          method,
          path,
          headers: { host: 'localhost', ...headers, ...length },
          // Found out otherwise, for TLS, by expressions whose compilation takes milliseconds.
          servername: '',
        }
        httpRequest({ ...options, agent: false, signal }, resolve)
          .on('error', reject)
          .end(body)
      })
    } catch (error) {
      if (signal.aborted) throw error
      if (isUnreachable(error)) throw await unreachableFault(address, error)
      throw new CliFault('connection', `the connection to the daemon failed: ${(error as Error).message}`, {
        cause: error,
      })
    }
  }
}

class StreamCut extends Error {}

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

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
  })
}
