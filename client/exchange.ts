import { request as httpRequest, type IncomingMessage } from 'node:http'
import { StringDecoder } from 'node:string_decoder'
import { type ServerEvent, SseParser } from './sse.js'

/** The address of a daemon: the path of its Unix socket, or `http://localhost:<port>` with a token or an API key. */
export type Target = { readonly socket: string } | { readonly baseUrl: string; readonly token?: string }

/** The header that authenticates the caller over HTTP. */
export const authorization = (target: Target): Readonly<Record<string, string>> =>
  'token' in target && target.token !== undefined ? { authorization: `Bearer ${target.token}` } : {}

export interface Exchange {
  readonly method: string
  /** Absolute path and query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, bytes unchanged; undefined for no body. */
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/** One request; resolves with the head of the reply. Rejects with Node's error, or the signal's reason. */
export function exchange(target: Target, { method, path, headers, body, signal }: Exchange): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const isBytes = body instanceof Uint8Array
    const sends = body === undefined || isBytes ? body : JSON.stringify(body)
    const sent = {
      ...(sends !== undefined && !isBytes && { 'content-type': 'application/json' }),
      ...(sends !== undefined && { 'content-length': String(Buffer.byteLength(sends)) }),
    }
    // A server name is only for TLS, and determining one takes milliseconds of a short process.
    const where = 'socket' in target ? { socketPath: target.socket, host: 'localhost' } : addressOf(target.baseUrl)
    const all = { ...authorization(target), ...headers, ...sent }
    const options = { ...where, method, path, headers: all, agent: false as const, servername: '' }
    httpRequest({ ...options, ...(signal && { signal }) }, resolve)
      .on('error', error => reject(signal?.aborted ? signal.reason : error))
      .end(sends)
  })
}

function addressOf(baseUrl: string): { host: string; port: string } {
  const { protocol, hostname, port, pathname } = new URL(baseUrl)
  if (protocol !== 'http:' || pathname !== '/')
    throw new TypeError(`a base URL is http://host:port, and ${JSON.stringify(baseUrl)} is none`)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port || '80' }
}

/** The whole body as text. */
export async function readText(response: IncomingMessage): Promise<string> {
  return (await readBytes(response)).toString('utf8')
}

export async function readBytes(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** A stream ended early: the connection was interrupted, or the daemon sent `closing`. */
export class StreamCut extends Error {
  override readonly name = 'StreamCut'
}

/** The events of a reply; throws {@link StreamCut} when it ends early. */
export async function* readEvents(response: IncomingMessage, signal?: AbortSignal): AsyncGenerator<ServerEvent> {
  const decoder = new StringDecoder('utf8')
  const parser = new SseParser()
  try {
    for await (const chunk of response) {
      for (const event of parser.push(decoder.write(chunk))) {
        if (event.event === 'closing') throw new StreamCut('the daemon closes the stream for now')
        yield event
      }
    }
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    throw error instanceof StreamCut ? error : new StreamCut('the connection was cut', { cause: error })
  }
  if (!response.complete) throw new StreamCut('the connection was cut')
}

export interface Resuming {
  readonly lastEventId?: string | undefined
  readonly signal?: AbortSignal | undefined
  /** Whether an error of a resume attempt may be temporary: the daemon may be restarting. */
  readonly mayPass: (error: unknown) => boolean
  /** Called once for each interruption of the stream. */
  readonly onCut?: () => void
  /** Makes the error for a daemon that does not come back. */
  readonly givenUp: (cause: unknown) => Error
  /** Milliseconds to try again; default 15,000. */
  readonly resumeMs?: number
}

const RESUME_MS = 15_000
const PAUSE_MS = 200

/** A stream that is resumed after the last id when it is interrupted, until the daemon ends it. `open` begins after an id. */
export async function* resuming(
  open: (lastEventId: string | undefined) => AsyncIterable<ServerEvent>,
  { signal, mayPass, onCut, givenUp, resumeMs = RESUME_MS, ...first }: Resuming,
): AsyncGenerator<ServerEvent> {
  let { lastEventId } = first
  /** When the stream was interrupted, in milliseconds since 1970; undefined while it flows. */
  let cutAt: number | undefined
  for (;;) {
    try {
      for await (const event of open(lastEventId)) {
        cutAt = undefined
        lastEventId = event.id ?? lastEventId
        yield event
      }
      return
    } catch (error) {
      if (signal?.aborted || !(error instanceof StreamCut || (cutAt !== undefined && mayPass(error)))) throw error
      if (cutAt === undefined) onCut?.()
      cutAt ??= Date.now()
      if (Date.now() - cutAt > resumeMs) throw givenUp(error)
      await pause(PAUSE_MS, signal)
    }
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise(resolve => {
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done)
  })
}
