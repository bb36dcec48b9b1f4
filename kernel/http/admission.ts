import type { ServerResponse } from 'node:http'
import type { Clock } from '../contract/clock.js'
import { type Fault, KernelErrors } from '../contract/errors.js'

const WAIT_MS = 5000

/** One admitted request of a plugin, from its routing until its handler is done. */
export class Call {
  /** Why it was told to stop, if it was. */
  reason: Fault | undefined
  #abort: AbortController | undefined
  #reject: ((fault: Fault) => void) | undefined

  constructor(
    private readonly all: Set<Call>,
    private readonly emptied: () => void,
  ) {
    all.add(this)
  }

  /** Aborts when the caller hangs up or the plugin leaves. Made when asked for: few handlers do, and making one costs. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    if (this.reason && !this.#abort.signal.aborted) this.#abort.abort(this.reason)
    return this.#abort.signal
  }

  abort(reason: Fault): void {
    this.reason ??= reason
    this.#abort?.abort(this.reason)
  }

  /** The handler is done; a drain waits no longer. The signal stays, for a stream goes on. */
  leave(): void {
    if (this.all.delete(this) && this.all.size === 0) this.emptied()
  }

  /** Settles like the work, or rejects with 503 when the plugin leaves without waiting any longer. */
  orLeaving<T>(work: T | PromiseLike<T>): T | Promise<T> {
    if (typeof work !== 'object' || work === null || !('then' in work)) return work
    return new Promise((resolve, reject) => {
      this.#reject = reject
      work.then(resolve, reject)
    })
  }

  turnOut(fault: Fault): void {
    this.abort(fault)
    this.#reject?.(fault)
    this.leave()
  }
}

export interface Hold {
  readonly owner: string
  /** Those who hold; none: it ends with the next generation. */
  holders: number
  readonly over: Promise<void>
  readonly open: () => void
}

/** Who may come in: requests for a plugin that is being changed wait; those that are in are counted and can be sent away. */
export class Admission {
  readonly #holds = new Map<string, Hold>()
  readonly #running = new Map<string, Set<Call>>()
  readonly #emptied = new Set<() => void>()

  constructor(private readonly clock: Clock) {}

  /**
   * From now on requests for these owners wait. The returned function says that what is to come is there: a generation
   * that begins to be built after that and then serves is what lets them in. Holds of one owner add up.
   */
  hold(owners: readonly string[]): () => void {
    const holds = owners.map(owner => {
      const there = this.#holds.get(owner)
      // One that nobody holds any more ends with a generation that may not know of this change.
      const hold = there && there.holders > 0 ? there : newHold(owner)
      hold.holders++
      if (there !== hold) there?.open()
      this.#holds.set(owner, hold)
      return hold
    })
    return () => {
      for (const hold of holds.splice(0)) hold.holders--
    }
  }

  /** Holds by whether somebody still holds them. */
  holds(): { readonly held: Set<string>; readonly over: readonly Hold[] } {
    const all = [...this.#holds.values()]
    return {
      held: new Set(all.filter(({ holders }) => holders > 0).map(({ owner }) => owner)),
      over: all.filter(({ holders }) => holders === 0),
    }
  }

  letIn(holds: readonly Hold[]): void {
    for (const hold of holds) {
      if (this.#holds.get(hold.owner) === hold) this.#holds.delete(hold.owner)
      hold.open()
    }
  }

  mustWait(owner: string): boolean {
    return this.#holds.has(owner)
  }

  /** Resolves when nothing holds the owner; rejects with `reloading` after five seconds, or when the caller hangs up. */
  async wait(owner: string, response: ServerResponse): Promise<void> {
    const until = this.clock.monotonic() + WAIT_MS
    for (let hold = this.#holds.get(owner); hold; hold = this.#holds.get(owner)) {
      const late = new AbortController()
      response.once('close', () => late.abort())
      const timer = this.clock.timeout(until - this.clock.monotonic(), () => late.abort())
      const given = new Promise<never>((_, reject) =>
        late.signal.addEventListener('abort', () => reject(KernelErrors.reloading(undefined, { retryAfter: 1 }))),
      )
      await Promise.race([hold.over, given]).finally(() => timer.cancel())
    }
  }

  /** Lets a request in. */
  enter(owner: string): Call {
    const mine = this.#running.get(owner) ?? new Set()
    this.#running.set(owner, mine)
    return new Call(mine, () => {
      if (this.#running.get(owner) === mine) this.#running.delete(owner)
      for (const look of [...this.#emptied]) look()
    })
  }

  /** Resolves when no request of the owner is in; after `ms` the rest is aborted, and answered with 503. */
  async drain(owner: string, ms: number): Promise<void> {
    if (!this.#running.has(owner)) return
    const empty = new Promise<void>(resolve => {
      const look = () => {
        if (this.#running.has(owner)) return
        this.#emptied.delete(look)
        resolve()
      }
      this.#emptied.add(look)
    })
    const timer = this.clock.timeout(ms, () => {
      for (const call of this.#running.get(owner) ?? [])
        call.turnOut(KernelErrors.reloading(undefined, { retryAfter: 1 }))
    })
    await empty
    timer.cancel()
  }
}

function newHold(owner: string): Hold {
  let open: () => void = () => {}
  const over = new Promise<void>(resolve => {
    open = resolve
  })
  return { owner, holders: 0, over, open }
}
