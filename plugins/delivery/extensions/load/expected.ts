import { type Clock, within } from '../../../../kernel/plugin.js'
import { isLinkOf } from '../identity.js'

/** Milliseconds that a request waits for an extension that is not loaded yet. */
const WAIT_MS = 5000

interface Wait {
  readonly over: Promise<void>
  readonly end: () => void
}

/**
 * Keys of extensions that this daemon has not read yet. Extensions load after the boot, and this distinguishes "not
 * loaded yet" from "gone".
 */
export class Expected {
  readonly #waits = new Map<string, Wait>()
  /** Deadline of a wait for all extensions: one that hangs must not delay every request. */
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

  /** Marks an extension as loaded, failed or absent; without a key, all of them. */
  end(key?: string): void {
    for (const one of key === undefined ? [...this.#waits.keys()] : [key]) {
      this.#waits.get(one)?.end()
      this.#waits.delete(one)
    }
  }

  /** Keys of extensions that are not loaded yet. */
  keys(): string[] {
    return [...this.#waits.keys()]
  }

  /** Whether any extension, or one of that name, installed or linked, is not loaded yet. */
  has(name?: string): boolean {
    return this.#of(name).length > 0
  }

  /** Waits at most 5 s until no extension, or none of that name, is left to load. @returns whether that was reached */
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
