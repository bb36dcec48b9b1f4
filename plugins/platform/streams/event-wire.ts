import type { ServerResponse } from 'node:http'
import type { EncodedFrame, Frame, StreamReply } from '../../../kernel/plugin.js'
import { encodeFrame, type Wire } from './api.js'

/** Content type of server-sent events. */
export const EVENT_STREAM = 'text/event-stream'

/** Server-sent events. A slow reader is not disconnected, because people pause their terminals. */
export function eventWire(into: ServerResponse, headers: StreamReply['headers']): Wire<Frame | EncodedFrame> {
  into.writeHead(200, {
    ...headers,
    'content-type': `${EVENT_STREAM}; charset=utf-8`,
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  into.flushHeaders()
  return {
    into,
    watch: over => into.once('close', () => over('gone')),
    send: frame => into.write(frame instanceof Uint8Array ? frame : encodeFrame(frame)),
    beat() {
      if (into.writable && !into.writableNeedDrain) into.write(': keep-alive\n\n')
      return undefined
    },
    end(how) {
      if (how === 'replaced' || how === 'shutdown') into.write('event: closing\ndata: {}\n\n')
      into.end()
    },
  }
}
