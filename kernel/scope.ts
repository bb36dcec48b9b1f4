import { within } from './clock.js'
import type { Clock, Scope } from './contract/basics.js'
import { messageOf } from './contract/errors.js'
import type { HookEntry } from './contract/hook.js'

/** A scope with the release, for its owner. */
export class OwnedScope implements Scope {
  readonly #stack = new Map<symbol, { label: string; release: () => unknown; deadlineMs: number | undefined }>()
  readonly #abort = new AbortController()
  /** Hooks that its owner made. */
  readonly hooks: HookEntry<unknown>[] = []
  #dead = false

  constructor(
    readonly owner: string,
    private readonly clock: Clock,
  ) {}

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  defer(label: string, release: () => unknown, deadlineMs?: number): () => Promise<void> {
    if (this.#dead) throw new Error(`${this.owner} is already released and cannot acquire ${label}`)
    const key = Symbol(label)
    this.#stack.set(key, { label, release, deadlineMs })
    return async () => {
      const entry = this.#stack.get(key)
      this.#stack.delete(key)
      await entry?.release()
    }
  }

  readonly held = (): string[] => [...this.#stack.values()].map(entry => entry.label)

  /**
   * Releases everything in reverse; each step gets `usualMs`, unless it named a deadline of its own. Errors are collected and
   * returned, later steps run.
   */
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
