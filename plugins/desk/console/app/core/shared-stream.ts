import { type Signal, signal } from '@preact/signals'
import { faultOf, ownHeaders, signedIn } from './api.js'
import { type Frame, readFrames } from './sse.js'

/** `connecting`: the first or a further attempt; `live`: frames arrive; `lost`: several attempts in a row failed. */
export type Link = 'connecting' | 'live' | 'lost'

type Message = { readonly frame: Frame } | { readonly link: Link } | { readonly asks: true }

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 15_000
/** Pause before reopening a stream that the daemon has ended, such as that of a stopped session. */
const ENDED_PAUSE_MS = 10_000

/**
 * A stream that all tabs of the browser share. The tab that holds the lock of that name reads the stream and passes its frames
 * on; when that tab closes, another tab gets the lock and continues after its last frame. The first reader opens the stream.
 */
export class SharedStream {
  readonly link: Signal<Link> = signal('connecting')
  readonly #readers = new Set<(frame: Frame) => void>()
  #lastId: string | undefined
  #channel: BroadcastChannel | undefined
  #over: AbortController | undefined
  #wake: (() => void) | undefined

  /** @param url the address, requested before each attempt */
  constructor(
    private readonly name: string,
    private readonly url: () => string,
  ) {}

  /** Calls `read` for each frame until the returned function is called. */
  follow(read: (frame: Frame) => void): () => void {
    this.#readers.add(read)
    if (this.#readers.size === 1) this.#open()
    return () => {
      this.#readers.delete(read)
      if (this.#readers.size === 0) this.#close()
    }
  }

  /** Starts after this id, unless a frame has already arrived. */
  startAfter(id: string): void {
    this.#lastId ??= id
  }

  /** Ends a pause. */
  wake(): void {
    this.#wake?.()
  }

  #open(): void {
    const over = new AbortController()
    this.#over = over
    const channel = new BroadcastChannel(`svc ${this.name}`)
    this.#channel = channel
    let isLeader = false
    channel.onmessage = ({ data }: MessageEvent<Message>) => {
      if ('frame' in data) this.#take(data.frame)
      else if ('link' in data) this.link.value = data.link
      else if (isLeader) channel.postMessage({ link: this.link.value })
    }
    channel.postMessage({ asks: true })
    const lead = async () => {
      isLeader = true
      if (!over.signal.aborted) await this.#lead(over.signal)
    }
    navigator.locks.request(`svc ${this.name}`, { signal: over.signal }, lead).catch(() => {})
    const wake = () => this.wake()
    addEventListener('online', wake, { signal: over.signal })
    document.addEventListener('visibilitychange', wake, { signal: over.signal })
  }

  #close(): void {
    this.#over?.abort()
    this.#channel?.close()
    this.link.value = 'connecting'
  }

  async #lead(over: AbortSignal): Promise<void> {
    let failures = 0
    while (!over.aborted && signedIn.value) {
      let pause = ENDED_PAUSE_MS
      try {
        await this.#read(over, () => {
          failures = 0
        })
      } catch {
        if (over.aborted || !signedIn.value) return
        failures++
        this.#tell(failures > 2 || !navigator.onLine ? 'lost' : 'connecting')
        const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1))
        // A random pause keeps browsers that lost the daemon together from reconnecting together.
        pause = longest * (0.75 + Math.random() / 4)
      }
      await this.#pause(pause, over)
    }
  }

  /** Reads until the stream ends; throws when the connection breaks. */
  async #read(over: AbortSignal, begun: () => void): Promise<void> {
    const cut = new AbortController()
    const stop = () => cut.abort()
    over.addEventListener('abort', stop)
    // Without this, a connection stays open for minutes after the network is gone.
    addEventListener('offline', stop)
    try {
      const after: Record<string, string> = this.#lastId === undefined ? {} : { 'last-event-id': this.#lastId }
      const headers = { accept: 'text/event-stream', ...ownHeaders(), ...after }
      const reply = await fetch(this.url(), {
        headers,
        credentials: 'same-origin',
        cache: 'no-store',
        signal: cut.signal,
      })
      if (!reply.ok || !reply.body) throw await faultOf(reply)
      begun()
      this.#tell('live')
      for await (const frame of readFrames(reply.body)) {
        if (frame.event === 'closing' || frame.event === 'error')
          throw new Error('the daemon closes the stream for now')
        this.#channel?.postMessage({ frame })
        this.#take(frame)
      }
    } finally {
      over.removeEventListener('abort', stop)
      removeEventListener('offline', stop)
    }
  }

  #take(frame: Frame): void {
    if (frame.id !== undefined) this.#lastId = frame.id
    for (const read of this.#readers) read(frame)
  }

  #tell(link: Link): void {
    this.link.value = link
    this.#channel?.postMessage({ link })
  }

  #pause(ms: number, over: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(done, ms)
      function done() {
        clearTimeout(timer)
        resolve()
      }
      this.#wake = done
      over.addEventListener('abort', done, { once: true })
    })
  }
}
