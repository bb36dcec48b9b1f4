import type { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { EncodedFrame, Frame, StreamReply } from '../../../kernel/plugin.js'
import { encodeFrame, type Wire } from './api.js'

/** Content type of server-sent events. */
export const EVENT_STREAM = 'text/event-stream'
const LINE_END = Buffer.from('\r\n')
/** Bytes of a frame up to which one buffer is made of its chunk. Slow readers share larger ones. */
const MOST_COPIED = 16 * 1024

/** Server-sent events. A slow reader is not disconnected, because people pause their terminals. */
export function eventWire(response: ServerResponse, headers: StreamReply['headers']): Wire<Frame | EncodedFrame> {
  response.writeHead(200, {
    ...headers,
    'content-type': `${EVENT_STREAM}; charset=utf-8`,
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  response.flushHeaders()
  // A response makes four buffers of a chunk. It has no socket while another one precedes it, and never when it is injected.
  const socket = response.chunkedEncoding && response.socket instanceof Socket ? response.socket : undefined
  return {
    get into() {
      return socket?.writable ? socket : response
    },
    watch: over => response.once('close', () => over('gone')),
    send(frame) {
      const bytes = frame instanceof Uint8Array ? frame : encodeFrame(frame)
      if (socket?.writable && bytes.byteLength > 0) {
        if (socket.writableCorked === 0) {
          socket.cork()
          process.nextTick(() => socket.uncork())
        }
        for (const part of chunkOf(bytes)) socket.write(part)
      } else response.write(bytes)
    },
    beat() {
      if (response.writable && !this.into.writableNeedDrain) this.send(Buffer.from(': keep-alive\n\n'))
      return undefined
    },
    end(how) {
      if (how === 'replaced' || how === 'shutdown') response.write('event: closing\ndata: {}\n\n')
      response.end()
    },
  }
}

/** The last chunk: until the end of the turn, further readers of its frame may come. */
let last: { readonly bytes: Uint8Array; readonly parts: readonly Uint8Array[] } | undefined

/** The buffers of a chunk of HTTP/1.1. One without bytes would be the end of the body. */
function chunkOf(bytes: Uint8Array): readonly Uint8Array[] {
  if (last?.bytes === bytes) return last.parts
  if (!last) process.nextTick(() => (last = undefined))
  const parts = [Buffer.from(`${bytes.byteLength.toString(16)}\r\n`), bytes, LINE_END]
  last = { bytes, parts: bytes.byteLength > MOST_COPIED ? parts : [Buffer.concat(parts)] }
  return last.parts
}
