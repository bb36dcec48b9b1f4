import { Readable } from 'node:stream'
import type { ReadableStream as NodeStream } from 'node:stream/web'
import { boundedStream, readLines } from '../../../platform/processes/api.js'
import { MOST_BYTES, MOST_JUNK } from './process-transport.js'

/** Called at the end of an event stream. `limit`: the stream was ended because it exceeded this limit. */
export type StreamOver = (limit: Error | undefined) => void

/**
 * Range in milliseconds for the reconnect delay that a server may set. The client obeys the server: without a delay it
 * would open one stream after the other, and a number beyond the timer's range counts as none.
 */
const RETRY_MS = { least: 1000, most: 60_000 }

const encoder = new TextEncoder()

/**
 * Bounds an event stream like a program's output: the rates of bytes and lines, the bytes of a line and an event, and
 * the number of unread ones. Only a few lines are handled per event loop turn.
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
      // Whole events are passed on, because each chunk of a stream costs as much as many lines.
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

/** Limits a line that sets the reconnect delay to {@link RETRY_MS}. */
function withinRetries(line: string): string {
  if (!line.startsWith('retry:')) return line
  const wanted = Number(line.slice('retry:'.length))
  return `retry: ${Math.min(Math.max(wanted || 0, RETRY_MS.least), RETRY_MS.most)}`
}
