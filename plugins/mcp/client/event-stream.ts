import { Readable } from 'node:stream'
import type { ReadableStream as NodeStream } from 'node:stream/web'
import { readLines } from '../../processes/api.js'
import { MOST_BYTES, MOST_JUNK } from './process-transport.js'

/** Called once a stream of events is over. `limit`: it was ended for exceeding this limit. */
export type StreamOver = (limit: Error | undefined) => void

const encoder = new TextEncoder()

/**
 * A stream of events, bounded like the output of a program: by the bytes of a line and of an event, by the pace of its lines, and
 * by how many of them the reader has not taken yet. A few lines pass in each turn of the event loop.
 */
export function boundedEvents(body: ReadableStream<Uint8Array>, over: StreamOver): ReadableStream<Uint8Array> {
  const source = Readable.fromWeb(body as NodeStream)
  let isCancelled = false
  let resume: (() => void) | undefined
  const release = () => {
    resume?.()
    resume = undefined
  }
  return new ReadableStream<Uint8Array>({
    start(controller) {
      let eventBytes = 0
      const read = readLines(source, {
        ...{ owner: 'mcp', lineBytes: MOST_BYTES, junk: MOST_JUNK, unfinished: true },
        take(line) {
          eventBytes = line === '' ? 0 : eventBytes + line.length
          if (eventBytes > MOST_BYTES) throw new Error(`an event of more than ${MOST_BYTES} bytes`)
          if (!isCancelled) controller.enqueue(encoder.encode(`${line}\n`))
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
          // The source has no error of its own when a limit ended the reading.
          over(isCancelled || source.errored ? undefined : error)
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
