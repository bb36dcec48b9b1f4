import { Readable } from 'node:stream'
import type { ReadableStream as NodeStream } from 'node:stream/web'
import { boundedStream, readLines } from '../../../platform/processes/api.js'
import { MOST_BYTES, MOST_JUNK } from './process-transport.js'

/** Called once a stream of events is over. `limit`: it was ended for exceeding this limit. */
export type StreamOver = (limit: Error | undefined) => void

/**
 * Milliseconds after which a server may have its stream opened again. The client obeys what a server says of this: without a pause
 * it would open one stream after the other, and a number beyond those of a timer counts as none.
 */
const RETRY_MS = { least: 1000, most: 60_000 }

const encoder = new TextEncoder()

/**
 * A stream of events, bounded like the output of a program: by the pace of its bytes and of its lines, by the bytes of a line and of
 * an event, and by how many of them the reader has not taken yet. A few lines pass in each turn of the event loop.
 */
export function boundedEvents(body: ReadableStream<Uint8Array>, over: StreamOver): ReadableStream<Uint8Array> {
  let isCancelled = false
  let isFlood = false
  let broken: Error | undefined
  const network = Readable.fromWeb(body as NodeStream).once('error', error => {
    broken = error
  })
  const source = boundedStream(network, 'mcp', () => {
    isFlood = true
  })
  let resume: (() => void) | undefined
  const release = () => {
    resume?.()
    resume = undefined
  }
  return new ReadableStream<Uint8Array>({
    start(controller) {
      // An event is handed on as a whole: each piece of a stream costs as much as many lines.
      let event = ''
      const read = readLines(source, {
        ...{ owner: 'mcp', lineBytes: MOST_BYTES, junk: MOST_JUNK, unfinished: true },
        take(line) {
          event += `${withinRetries(line)}\n`
          if (event.length > MOST_BYTES) throw new Error(`an event of more than ${MOST_BYTES} bytes`)
          if (line === '') {
            if (!isCancelled && event !== '\n') controller.enqueue(encoder.encode(event))
            event = ''
          }
          return line.startsWith('data:')
        },
        room: () => {
          if (isCancelled || (controller.desiredSize ?? 0) > 0) return undefined
          return new Promise<void>(resolve => {
            resume = resolve
          })
        },
      })
      read.then(
        () => {
          if (!isCancelled) controller.close()
          over(undefined)
        },
        error => {
          if (!isCancelled) controller.error(error)
          over(isCancelled || (error === broken && !isFlood) ? undefined : error)
        },
      )
    },
    pull: release,
    cancel() {
      isCancelled = true
      release()
      source.destroy()
    },
  })
}

/** A line of a stream; one that says when the stream may be opened again says so within {@link RETRY_MS}. */
function withinRetries(line: string): string {
  if (!line.startsWith('retry:')) return line
  const wanted = Number(line.slice('retry:'.length))
  return `retry: ${Math.min(Math.max(wanted || 0, RETRY_MS.least), RETRY_MS.most)}`
}
