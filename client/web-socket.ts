import { on } from 'node:events'
import { connect } from 'node:net'
import type { WebSocket } from 'ws'
import { apiError, ConnectionError } from './error.js'
import { authorization, readText, type Target } from './exchange.js'

/** Maximum bytes of a message; the daemon sends no larger ones. */
const MESSAGE_LIMIT = 64 * 1024 * 1024
/** Messages buffered for the caller before backpressure is applied. */
const AHEAD = 64

/**
 * The messages of a WebSocket until the daemon ends it. Throws ApiError when it is refused, ConnectionError `unreachable` when the
 * daemon does not answer and `stream_cut` when it ends early, and the signal's reason.
 */
export async function* readMessages(
  target: Target,
  path: string,
  headers: Readonly<Record<string, string>>,
  signal?: AbortSignal,
): AsyncGenerator<unknown> {
  const { WebSocket } = await import('ws')
  const base = 'socket' in target ? 'ws://localhost' : target.baseUrl.replace(/^http:/, 'ws:').replace(/\/$/, '')
  const socket = new WebSocket(base + path, {
    headers: { ...authorization(target), ...headers },
    perMessageDeflate: false,
    maxPayload: MESSAGE_LIMIT,
    // A Unix socket path in the address could not contain a colon.
    ...('socket' in target && { createConnection: () => connect(target.socket) }),
  })
  let ended = { code: 1006, why: '' }
  socket.once('close', (code, why) => {
    ended = { code, why: String(why) }
  })
  const limits = { close: ['close'], highWaterMark: AHEAD, lowWaterMark: AHEAD / 2 }
  const messages = on(socket, 'message', signal ? { ...limits, signal } : limits)
  try {
    await opened(socket, signal)
    for await (const [data] of messages) yield JSON.parse(String(data))
    if (ended.code !== 1000)
      throw new ConnectionError('stream_cut', `the channel ended with ${ended.code} ${ended.why}`)
  } catch (error) {
    throw signal?.aborted ? signal.reason : error
  } finally {
    socket.terminate()
  }
}

function opened(socket: WebSocket, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.addEventListener('abort', reject, { once: true })
    socket.once('open', () => resolve())
    socket.once('unexpected-response', (_request, response) => {
      const { statusCode = 0, headers } = response
      readText(response).then(text => reject(apiError(statusCode, text, headers['retry-after'])), reject)
    })
    socket.on('error', cause =>
      reject(new ConnectionError('unreachable', `no reply of the daemon: ${cause.message}`, cause)),
    )
  })
}
