import type { ServerResponse } from 'node:http'
import type { Clock } from '../clock.js'
import type { Frame } from '../route.js'

const HEARTBEAT_MS = 15_000

interface OpenStream {
  readonly owner: string
  end(closing: boolean): void
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

  get size(): number {
    return this.#open.size
  }

  /** Writes frames until the source ends, the caller hangs up or the owner goes. Never rejects. */
  async serve(
    owner: string,
    response: ServerResponse,
    source: AsyncIterable<Frame>,
    failed: (error: unknown) => Frame,
  ): Promise<void> {
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    })
    response.flushHeaders()
    const iterator = source[Symbol.asyncIterator]()
    let over: () => void = () => {}
    const ended = new Promise<void>(resolve => {
      over = resolve
    })
    const stream: OpenStream = {
      owner,
      end: closing => {
        if (closing && response.writable) response.write('event: closing\ndata: {}\n\n')
        over()
      },
    }
    this.#open.add(stream)
    response.once('close', over)
    const beat = this.#heartbeat(response)
    try {
      for (;;) {
        const next = await Promise.race([iterator.next(), ended])
        if (!next || next.done || response.destroyed) break
        await this.durable()
        if (!response.write(encode(next.value))) await Promise.race([drained(response), ended])
      }
    } catch (error) {
      if (response.writable) response.write(encode(failed(error)))
    } finally {
      beat.stop()
      this.#open.delete(stream)
      // Not awaited: a source that waits for its next frame returns only when its signal aborts.
      void Promise.resolve(iterator.return?.()).catch(() => {})
      response.end()
    }
  }

  /** Ends the streams of one owner, or all; readers resume elsewhere with Last-Event-ID. */
  end(owner?: string): void {
    for (const stream of [...this.#open]) if (owner === undefined || stream.owner === owner) stream.end(true)
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
function encode({ id, event, data }: Frame): string {
  const line = (name: string, value: string) => `${name}: ${value.replace(/[\r\n]/g, ' ')}\n`
  return `${id === undefined ? '' : line('id', id)}${event === undefined ? '' : line('event', event)}data: ${JSON.stringify(data)}\n\n`
}
