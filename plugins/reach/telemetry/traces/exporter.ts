import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import { backoff } from '../../../../kernel/kit/backoff.js'
import { wholeOf } from '../../../../kernel/kit/whole.js'
import { type Clock, type Ids, messageOf, type Timer, within } from '../../../../kernel/plugin.js'

/** Maximum waiting spans, and spans per request. */
export const MOST_WAITING = 2048
export const MOST_AT_ONCE = 512
/** Milliseconds for collecting spans, for a request, and for the last request on shutdown. */
const GATHER_MS = 2000
export const REQUEST_MS = 10_000
const LAST_MS = 1000
const PAUSES = { firstMs: 1000, longestMs: 60_000 }
const MOST_BYTES = 64 * 1024
/** Statuses of a temporarily unavailable collector; other errors are final. */
const AGAIN = new Set([408, 429, 502, 503, 504])

export interface ExporterContext {
  readonly clock: Clock
  readonly ids: Pick<Ids, 'random'>
  readonly url: URL
  /** Resolved for each request, because a secret may have changed. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>
}

/** Counts of spans, and the state of the endpoint. */
export interface ExporterState {
  readonly waiting: number
  readonly sent: number
  /** Spans dropped for lack of space. */
  readonly dropped: number
  /** Spans rejected by the endpoint. */
  readonly refused: number
  /** Error of the latest request; undefined if it succeeded. */
  readonly error: string | undefined
  /** Epoch milliseconds. */
  readonly failedSince: number | undefined
  readonly sentAt: number | undefined
}

class Refused extends Error {}

/**
 * Sends spans to a collector in batches, one request at a time. Callers do not wait, and the number of held spans is
 * bounded.
 */
export class Exporter {
  #waiting: ReadableSpan[] = []
  #timer: Timer | undefined
  #sending: Promise<void> | undefined
  #failures = 0
  #closed = false
  #sent = 0
  #dropped = 0
  #refused = 0
  #error: string | undefined
  #failedSince: number | undefined
  #sentAt: number | undefined

  constructor(private readonly context: ExporterContext) {}

  get state(): ExporterState {
    return {
      waiting: this.#waiting.length,
      sent: this.#sent,
      dropped: this.#dropped,
      refused: this.#refused,
      error: this.#error,
      failedSince: this.#failedSince,
      sentAt: this.#sentAt,
    }
  }

  add(span: ReadableSpan): void {
    if (this.#closed) return
    if (this.#waiting.length >= MOST_WAITING) {
      this.#dropped++
      return
    }
    this.#waiting.push(span)
    if (this.#waiting.length >= MOST_AT_ONCE && this.#failures === 0) this.#send()
    else this.#timer ??= this.#after(GATHER_MS)
  }

  /** Sends the waiting spans once, and accepts no more. */
  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    const last = async () => {
      await this.#sending
      if (this.#waiting.length > 0) await this.#post(this.#waiting.splice(0, MOST_AT_ONCE), LAST_MS)
    }
    await within(this.context.clock, 2 * LAST_MS, last()).catch(() => {})
    this.#dropped += this.#waiting.splice(0).length
  }

  #after(ms: number): Timer {
    return this.context.clock.timeout(ms, () => this.#send(), { unref: true })
  }

  #send(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
    })
  }

  async #sendAll(): Promise<void> {
    const { ids } = this.context
    while (this.#waiting.length > 0 && !this.#closed) {
      const batch = this.#waiting.slice(0, MOST_AT_ONCE)
      if (await this.#post(batch, REQUEST_MS)) this.#waiting.splice(0, batch.length)
      else {
        this.#timer ??= this.#after(backoff(this.#failures, () => ids.random(), PAUSES))
        return
      }
    }
  }

  /** Resolves with whether the batch is settled: accepted, or rejected permanently. */
  async #post(batch: readonly ReadableSpan[], ms: number): Promise<boolean> {
    const { clock } = this.context
    const stop = new AbortController()
    try {
      const refused = await within(clock, ms, this.#request(batch, stop.signal))
      this.#refused += refused
      this.#sent += batch.length - refused
      this.#failures = 0
      this.#sentAt = clock.now()
      this.#error = undefined
      this.#failedSince = undefined
      return true
    } catch (error) {
      this.#failures++
      this.#error = reasonOf(error)
      this.#failedSince ??= clock.now()
      if (error instanceof Refused) this.#refused += batch.length
      return error instanceof Refused
    } finally {
      stop.abort()
    }
  }

  /** Resolves with the number of spans that the collector rejected. */
  async #request(batch: readonly ReadableSpan[], signal: AbortSignal): Promise<number> {
    const { url, headers } = this.context
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'error',
      credentials: 'omit',
      headers: { ...(await headers()), 'content-type': 'application/json' },
      body: JsonTraceSerializer.serializeRequest([...batch]) as Uint8Array<ArrayBuffer>,
      signal,
    })
    const tooMuch = () => new Error(`its answer is larger than ${MOST_BYTES} bytes`)
    const { status, ok } = response
    if (AGAIN.has(status)) throw new Error(`it answered ${status}`)
    if (!ok) throw new Refused(`it answered ${status}`)
    const text = response.body ? (await wholeOf(response.body, MOST_BYTES, tooMuch)).toString('utf8') : ''
    return Math.min(batch.length, refusedIn(text))
  }
}

/** Number of rejected spans in a collector's reply. */
function refusedIn(text: string): number {
  try {
    const { partialSuccess } = JSON.parse(text) as { partialSuccess?: { rejectedSpans?: unknown } }
    const refused = Number(partialSuccess?.rejectedSpans ?? 0)
    return refused > 0 ? Math.floor(refused) : 0
  } catch {
    return 0
  }
}

/** The cause has the details: `fetch failed` has none. */
function reasonOf(error: unknown): string {
  const { cause } = Object(error) as { cause?: unknown }
  return messageOf(error instanceof TypeError && cause instanceof Error ? cause : error)
}
