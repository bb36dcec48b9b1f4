import type { Clock, Timer } from './contract/clock.js'
import { messageOf } from './contract/errors.js'
import type { Release, Scope } from './contract/scope.js'

/** Scope with its owner's side: the release. */
export class OwnedScope implements Scope {
  readonly #stack = new Map<symbol, { label: string; release: Release; deadlineMs: number | undefined }>()
  readonly #abort = new AbortController()
  #dead = false

  constructor(
    readonly owner: string,
    private readonly clock: Clock,
  ) {}

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  defer(label: string, release: Release, deadlineMs?: number): () => Promise<void> {
    if (this.#dead) throw new Error(`${this.owner} is released already and cannot acquire ${label}`)
    const key = Symbol(label)
    this.#stack.set(key, { label, release, deadlineMs })
    return async () => {
      const entry = this.#stack.get(key)
      this.#stack.delete(key)
      await entry?.release()
    }
  }

  held(): string[] {
    return [...this.#stack.values()].map(entry => entry.label)
  }

  /** Releases everything in reverse; each step gets `usualMs`, unless it named a deadline of its own. Errors are collected and returned, later steps run. */
  async release(usualMs: number): Promise<Error[]> {
    if (this.#dead) return []
    this.#dead = true
    this.#abort.abort(new Error(`${this.owner} is released`))
    const errors: Error[] = []
    for (const [key, { label, release, deadlineMs = usualMs }] of [...this.#stack].reverse()) {
      this.#stack.delete(key)
      try {
        await within(this.clock, deadlineMs, Promise.resolve(release()))
      } catch (error) {
        errors.push(new Error(`${this.owner}: releasing ${label}: ${messageOf(error)}`, { cause: error }))
      }
    }
    return errors
  }
}

/** Settles like `work`, or rejects after `ms` milliseconds; the work itself is not stopped. */
export function within<T>(clock: Clock, ms: number, work: PromiseLike<T>): Promise<T> {
  const due = clock.monotonic() + ms
  return new Promise((resolve, reject) => {
    let timer: Timer | undefined
    // Most work has ended when this turn is over, and a timer costs more than such work.
    const turn = setImmediate(() => {
      timer = clock.timeout(due - clock.monotonic(), () => reject(new Error(`no end within ${ms} ms`)))
    })
    const settle = <V>(how: (value: V) => void) => {
      return (value: V) => {
        clearImmediate(turn)
        timer?.cancel()
        how(value)
      }
    }
    work.then(settle(resolve), settle(reject))
  })
}
