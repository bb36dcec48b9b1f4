import type { ServerResponse } from 'node:http'
import type { Clock } from '../clock.js'
import { KernelErrors } from '../errors.js'
import type { EncodedFrame, Frame, StreamReply } from '../route.js'

const HEARTBEAT_MS = 15_000
/** Characters of one frame's data: room for the largest record of a journal and what is put around it. */
const FRAME_LIMIT = 32 * 1024 * 1024

interface OpenStream {
  readonly owner: string
  close(): void
}

/**
 * Server-sent event streams, kept here and not in a generation, so that another plugin's reload touches none. Backpressure
 * goes to the source: the next frame is asked for when the socket took the last.
 */
export class StreamHub {
  readonly #open = new Set<OpenStream>()

  constructor(
    private readonly clock: Clock,
    private readonly durable: () => Promise<void>,
  ) {}

  /** Open streams by owner. */
  counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {}
    for (const { owner } of this.#open) counts[owner] = (counts[owner] ?? 0) + 1
    return counts
  }

  /**
   * Writes frames until the source ends or throws, the caller hangs up or the owner goes. Never rejects, and settles at
   * once when the caller or the owner is gone, whatever the source is doing.
   */
  async serve(
    owner: string,
    response: ServerResponse,
    source: StreamReply['stream'],
    failed: (error: unknown) => Frame,
  ): Promise<void> {
    let over = 'no' as 'no' | 'closing' | 'gone'
    let end: () => void = () => {}
    // Not Promise.race: what it was called with keeps all of its calls, and a stream has many.
    const unlessOver = <T>(work: Promise<T>) =>
      new Promise<T | undefined>((resolve, reject) => {
        end = () => resolve(undefined)
        work.then(resolve, reject)
        if (over !== 'no') end()
      })
    const stop = (how: 'closing' | 'gone') => {
      if (over === 'no') over = how
      end()
    }
    const stream: OpenStream = { owner, close: () => stop('closing') }
    this.#open.add(stream)
    response.once('close', () => stop('gone'))
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    })
    response.flushHeaders()
    const beat = this.#heartbeat(response)
    const iterator = source[Symbol.asyncIterator]()
    try {
      while (over === 'no') {
        const next = await unlessOver(iterator.next())
        if (!next || next.done) break
        const frame = next.value instanceof Uint8Array ? next.value : encodeFrame(next.value)
        await unlessOver(this.durable())
        // A frame after `closing` would be lost: the reader has gone to ask again for what follows the last id it has.
        if (over === 'no' && !response.write(frame)) await unlessOver(drained(response))
      }
    } catch (error) {
      // The source may throw because it was told to stop; that is nobody's failure.
      if (over === 'no') response.write(encodeFrame(failed(error)))
    }
    beat.stop()
    this.#open.delete(stream)
    // Not awaited: a source that waits for its next frame returns only when its signal aborts.
    void Promise.resolve(iterator.return?.()).catch(() => {})
    if (over === 'closing') response.write('event: closing\ndata: {}\n\n')
    response.end()
  }

  /** Ends the streams of one owner, or all; readers resume elsewhere with Last-Event-ID. */
  end(owner?: string): void {
    for (const stream of [...this.#open]) if (owner === undefined || stream.owner === owner) stream.close()
  }

  #heartbeat(response: ServerResponse): { stop(): void } {
    let timer = this.clock.timeout(HEARTBEAT_MS, beat)
    const clock = this.clock
    function beat() {
      if (response.writable && !response.writableNeedDrain) response.write(': keep-alive\n\n')
      timer = clock.timeout(HEARTBEAT_MS, beat)
    }
    return { stop: () => timer.cancel() }
  }
}

const drained = (response: ServerResponse) => new Promise<void>(resolve => response.once('drain', resolve))

/** A frame in the wire format; line breaks cannot occur in JSON text, and are taken out of the id and the name. */
export function encodeFrame({ id, event, data }: Frame): EncodedFrame {
  const line = (name: string, value: string) => `${name}: ${value.replace(/[\r\n\0]/g, ' ')}\n`
  const text = JSON.stringify(data) ?? 'null'
  if (text.length > FRAME_LIMIT) throw KernelErrors.frame_too_large()
  const head = (id === undefined ? '' : line('id', id)) + (event === undefined ? '' : line('event', event))
  return Buffer.from(`${head}data: ${text}\n\n`)
}
