import type { Clock } from '../contract/basics.js'
import { DueHeap } from './due-heap.js'

/** The wall clock is looked at least so often: timers do not notice that it was set, or that the machine slept. */
const LONGEST_SLEEP_MS = 60_000

/** What an {@link Alarm} calls. */
export interface AlarmWork {
  /**
   * These keys are due, the earliest first; each comes once, and again when it is set again. When this rejects, those that it
   * has not set again are due after the `retryMs` of the alarm.
   */
  readonly fire: (keys: readonly string[]) => Promise<void>
  /** Told of every rejection of `fire`. */
  readonly failed: (error: unknown, keys: readonly string[]) => void
  /**
   * The wall clock was set back by so many milliseconds: sets anew what was reckoned with the old time, before anything fires.
   * With it the clock is watched also while nothing is set. Must not reject.
   */
  readonly setBack?: (ms: number) => Promise<void>
}

export interface AlarmOptions {
  /** At most so many keys fire together. Default: all that are due. */
  readonly batch?: number
  /** How long keys rest whose `fire` rejected. */
  readonly retryMs: number
}

/**
 * Fires keys at their times of the wall clock: one heap and one timer, however many keys. A clock that is set forward, and a
 * machine that slept, are noticed within a minute.
 */
export class Alarm {
  readonly #heap = new DueHeap()
  #stir: () => void = () => {}

  constructor(
    private readonly clock: Clock,
    private readonly options: AlarmOptions,
  ) {}

  /** Keys that wait. */
  get size(): number {
    return this.#heap.size
  }

  /** When the earliest key is due, in epoch milliseconds. */
  get next(): number | undefined {
    return this.#heap.peek()?.at
  }

  /** Sets or moves when a key is due, in epoch milliseconds; undefined: never. */
  set(key: string, at: number | undefined): void {
    if (at === undefined) this.#heap.delete(key)
    else this.#heap.set(key, at)
    this.#stir()
  }

  /** Fires what is due until the signal aborts; one run at a time. */
  async run(signal: AbortSignal, work: AlarmWork): Promise<void> {
    let latest = this.clock.now()
    while (!signal.aborted) {
      const now = this.clock.now()
      if (now < latest) await work.setBack?.(latest - now)
      latest = now
      const due: string[] = []
      while (due.length < (this.options.batch ?? Number.POSITIVE_INFINITY)) {
        const first = this.#heap.take(now)
        if (!first) break
        due.push(first.key)
      }
      if (due.length > 0) await this.#fire(due, work)
      else await this.#sleep(signal, work.setBack !== undefined)
    }
  }

  async #fire(due: readonly string[], work: AlarmWork): Promise<void> {
    try {
      await work.fire(due)
    } catch (error) {
      const again = this.clock.now() + this.options.retryMs
      for (const key of due) if (this.#heap.get(key) === undefined) this.#heap.set(key, again)
      work.failed(error, due)
    }
  }

  /** Until the next key is due, something is set, or the signal aborts; without a timer where there is nothing to look for. */
  #sleep(signal: AbortSignal, watches: boolean): Promise<void> {
    const next = this.next ?? (watches ? Number.POSITIVE_INFINITY : undefined)
    return new Promise(resolve => {
      const end = () => {
        timer?.cancel()
        signal.removeEventListener('abort', end)
        this.#stir = () => {}
        resolve()
      }
      // Setting everything anew took its time.
      const ms = next !== undefined && Math.min(next - this.clock.now(), LONGEST_SLEEP_MS)
      const timer = ms === false ? undefined : this.clock.timeout(ms, end, { unref: true })
      this.#stir = end
      if (signal.aborted) end()
      else signal.addEventListener('abort', end, { once: true })
    })
  }
}
