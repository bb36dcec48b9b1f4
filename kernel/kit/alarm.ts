import type { Clock } from '../contract/basics.js'
import { DueHeap } from './due-heap.js'

/** Longest wait between two checks of the wall clock: a timer notices neither a changed clock nor a suspended machine. */
const LONGEST_SLEEP_MS = 60_000

/** The callbacks of an {@link Alarm}. */
export interface AlarmWork {
  /**
   * Handles due keys, the earliest first; each fires once per setting. When this rejects, keys that it has not set again are due
   * after `retryMs`.
   */
  readonly fire: (keys: readonly string[]) => Promise<void>
  /** Receives every rejection of `fire`. */
  readonly failed: (error: unknown, keys: readonly string[]) => void
  /**
   * The wall clock was set back by so many milliseconds: recomputes times that came from the old clock, before anything fires. With
   * this callback the clock is watched even while no key is set. Must not reject.
   */
  readonly setBack?: ((ms: number) => Promise<void>) | undefined
}

export interface AlarmOptions {
  /** Maximum number of keys for one call of `fire`. Default: all that are due. */
  readonly batch?: number
  /** Milliseconds until the keys of a failed `fire` are due again. */
  readonly retryMs: number
}

/**
 * Fires keys at times of the wall clock: one heap and one timer for all keys. A clock that was set forward and a machine that was
 * suspended are noticed within a minute.
 */
export class Alarm {
  readonly #heap = new DueHeap()
  #stir: () => void = () => {}

  constructor(
    private readonly clock: Clock,
    private readonly options: AlarmOptions,
  ) {}

  /** Number of waiting keys. */
  get size(): number {
    return this.#heap.size
  }

  /** Time of the earliest key, in epoch milliseconds. */
  get next(): number | undefined {
    return this.#heap.peek()?.at
  }

  /** Sets or moves the time of a key, in epoch milliseconds; undefined removes it. */
  set(key: string, at: number | undefined): void {
    if (at === undefined) this.#heap.delete(key)
    else this.#heap.set(key, at)
    this.#stir()
  }

  /** Fires due keys until the signal aborts; only one run at a time. */
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

  /**
   * Waits until the next key is due, a key is set, or the signal aborts. No timer while no key is set and the clock is not watched.
   */
  #sleep(signal: AbortSignal, watches: boolean): Promise<void> {
    const next = this.next ?? (watches ? Number.POSITIVE_INFINITY : undefined)
    return new Promise(resolve => {
      const end = () => {
        timer?.cancel()
        signal.removeEventListener('abort', end)
        this.#stir = () => {}
        resolve()
      }
      // The time is read again: `setBack` may have taken long.
      const ms = next !== undefined && Math.min(next - this.clock.now(), LONGEST_SLEEP_MS)
      const timer = ms === false ? undefined : this.clock.timeout(ms, end, { unref: true })
      this.#stir = end
      if (signal.aborted) end()
      else signal.addEventListener('abort', end, { once: true })
    })
  }
}
