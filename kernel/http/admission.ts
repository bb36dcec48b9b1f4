import type { ServerResponse } from 'node:http'
import type { Clock } from '../contract/basics.js'
import type { Fault } from '../contract/errors.js'
import type { Actor } from '../contract/record.js'
import { HttpErrors } from './errors.js'

const WAIT_MS = 5000

const reloading = () => HttpErrors.reloading(undefined, { retryAfter: 1 })

/** One admitted request of a plugin, from its routing until its handler is done. */
export class Call {
  /** Why it was told to stop, if it was. */
  reason: Fault | undefined
  #abort: AbortController | undefined
  #reject: ((fault: Fault) => void) | undefined
  /** Those who wait for it to be done. */
  readonly #awaited: (() => void)[] = []

  constructor(
    private readonly all: Set<Call>,
    readonly actor: Actor,
  ) {
    all.add(this)
  }

  /** Resolves when its handler is done. */
  left(): Promise<void> {
    return new Promise(resolve => this.#awaited.push(resolve))
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
    if (this.all.delete(this)) for (const wake of this.#awaited) wake()
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

/** What one change holds: `isOver` once what is to come is there. */
export interface Hold {
  isOver: boolean
}

/** Who may come in: requests for a plugin that is being changed wait; those that are in are counted and can be sent away. */
export class Admission {
  readonly #holds = new Map<string, Set<Hold>>()
  readonly #running = new Map<string, Set<Call>>()
  /** Those who wait to come in, asked again when something is let in. */
  readonly #waiting = new Set<() => void>()

  constructor(private readonly clock: Clock) {}

  /**
   * From now on requests for these owners wait. The returned function says that what is to come is there: a generation
   * that begins to be built after that and then serves is what lets them in, once nobody else holds them.
   */
  hold(owners: readonly string[]): () => void {
    const hold: Hold = { isOver: false }
    for (const owner of owners) this.#holds.set(owner, (this.#holds.get(owner) ?? new Set()).add(hold))
    return () => {
      hold.isOver = true
    }
  }

  /** Whose requests still wait for something to come, and the holds that the next generation ends. */
  holds(): { readonly held: Set<string>; readonly over: ReadonlySet<Hold> } {
    const all = [...this.#holds].map(([owner, holds]) => ({ owner, holds: [...holds] }))
    return {
      held: new Set(all.filter(({ holds }) => holds.some(({ isOver }) => !isOver)).map(({ owner }) => owner)),
      over: new Set(all.flatMap(({ holds }) => holds.filter(({ isOver }) => isOver))),
    }
  }

  letIn(over: ReadonlySet<Hold>): void {
    for (const [owner, holds] of this.#holds) {
      for (const hold of over) holds.delete(hold)
      if (holds.size === 0) this.#holds.delete(owner)
    }
    for (const look of [...this.#waiting]) look()
  }

  mustWait(owner: string): boolean {
    return this.#holds.has(owner)
  }

  /** Resolves when nothing holds the owner; rejects with `reloading` after five seconds, or when the caller hangs up. */
  wait(owner: string, response: ServerResponse): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (!this.mustWait(owner)) end(resolve)
      }
      const late = () => end(() => reject(reloading()))
      const end = (settle: () => void) => {
        this.#waiting.delete(look)
        timer.cancel()
        response.off('close', late)
        settle()
      }
      const timer = this.clock.timeout(WAIT_MS, late)
      response.once('close', late)
      this.#waiting.add(look)
    })
  }

  /** Lets a request in. */
  enter(owner: string, actor: Actor): Call {
    const mine = this.#running.get(owner) ?? new Set()
    if (!this.#running.has(owner)) this.#running.set(owner, mine)
    return new Call(mine, actor)
  }

  /** Answers the requests of these callers that are in with this fault. */
  dismiss(isOne: (caller: Actor) => boolean, why: Fault): void {
    for (const call of [...this.#running.values()].flatMap(calls => [...calls]))
      if (isOne(call.actor)) call.turnOut(why)
  }

  /** Resolves when no request of the owner is in; after `ms` the rest is aborted, and answered with 503. */
  async drain(owner: string, ms: number): Promise<void> {
    const mine = this.#running.get(owner)
    if (!mine?.size) return
    const timer = this.clock.timeout(ms, () => {
      for (const call of mine) call.turnOut(reloading())
    })
    await Promise.all([...mine].map(call => call.left()))
    timer.cancel()
  }
}
