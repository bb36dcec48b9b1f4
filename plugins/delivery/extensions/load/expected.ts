import { type Clock, within } from '../../../../kernel/plugin.js'
import { isLinkOf } from '../identity.js'

/** Milliseconds that a request waits for an extension that the daemon has not loaded yet. */
const WAIT_MS = 5000

interface Wait {
  readonly over: Promise<void>
  readonly end: () => void
}

/**
 * Extensions that this daemon has not looked at yet, by key. Extensions load behind the boot; this tells "not
 * loaded yet" from "gone".
 */
export class Expected {
  readonly #waits = new Map<string, Wait>()
  /** Until when anybody waits for all of them: one that hangs must not slow down each request anew. */
  #until = 0

  constructor(private readonly clock: Clock) {}

  add(keys: readonly string[]): void {
    this.#until = this.clock.monotonic() + WAIT_MS
    for (const key of keys) {
      let end = () => {}
      const over = new Promise<void>(resolve => {
        end = resolve
      })
      this.#waits.set(key, { over, end })
    }
  }

  /** The extension has loaded, failed to, or turned out to be none; without a key, all of them have. */
  end(key?: string): void {
    for (const one of key === undefined ? [...this.#waits.keys()] : [key]) {
      this.#waits.get(one)?.end()
      this.#waits.delete(one)
    }
  }

  /** Keys of those that are still to come. */
  keys(): string[] {
    return [...this.#waits.keys()]
  }

  /** Whether an extension of that name, installed or linked, or any at all, is still to come. */
  has(name?: string): boolean {
    return this.#of(name).length > 0
  }

  /** Waits until none of that name, or none at all, is still to come, 5 s at most. @returns whether so */
  async none(name?: string): Promise<boolean> {
    const waits = this.#of(name)
    if (waits.length === 0) return true
    const ms = name === undefined ? Math.max(0, this.#until - this.clock.monotonic()) : WAIT_MS
    return within(this.clock, ms, Promise.all(waits)).then(
      () => true,
      () => false,
    )
  }

  #of(name: string | undefined): Promise<void>[] {
    return [...this.#waits].flatMap(([key, { over }]) =>
      name === undefined || key === name || isLinkOf(key, name) ? [over] : [],
    )
  }
}
