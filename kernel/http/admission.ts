import type { ServerResponse } from 'node:http'
import type { Clock } from '../contract/basics.js'
import type { Fault } from '../contract/errors.js'
import type { Actor } from '../contract/record.js'
import type { KernelHooks } from '../hooks/kernel-hooks.js'
import { HttpErrors } from './errors.js'

const WAIT_MS = 5000
/** Owner of the hold for requests over TCP while the authenticating plugin is away. No plugin can have this name. */
export const AUTHENTICATOR = '(authenticator)'

const reloading = () => HttpErrors.reloading(undefined, { retryAfter: 1 })

/** One admitted request of a plugin, from its routing until its handler is done. */
export class Call {
  /** The reason for its abort; undefined while it may run. */
  reason: Fault | undefined
  #abort: AbortController | undefined
  #reject: ((fault: Fault) => void) | undefined
  /** Resolvers of {@link left}. */
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

  /** Aborts when the caller hangs up or the plugin leaves. Made on first use: few handlers need one, and making it costs time. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    if (this.reason && !this.#abort.signal.aborted) this.#abort.abort(this.reason)
    return this.#abort.signal
  }

  abort(reason: Fault): void {
    this.reason ??= reason
    this.#abort?.abort(this.reason)
  }

  /** The handler is done, and a drain no longer waits for it. The signal stays usable, since a stream may continue. */
  leave(): void {
    if (this.all.delete(this)) for (const wake of this.#awaited) wake()
  }

  /** Settles like the work, or rejects when the call is turned out before the work is done. */
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

/**
 * Admits requests. Those for a plugin under change wait; admitted ones are counted, so that a drain can wait for them or abort
 * them.
 */
export class Admission {
  readonly #held = new Set<string>()
  readonly #running = new Map<string, Set<Call>>()
  /** Checks of waiting requests, repeated whenever the holds end. */
  readonly #waiting = new Set<() => void>()

  /** The plugin without which requests over TCP wait; empty when there is none. */
  authenticator = ''

  constructor(
    private readonly clock: Clock,
    private readonly authenticate?: Pick<KernelHooks['authenticate'], 'has'>,
  ) {}

  /** Requests for these owners wait until {@link open}. */
  hold(owners: readonly string[]): void {
    for (const owner of owners) this.#held.add(owner)
  }

  /** Ends all holds. */
  open(): void {
    this.#held.clear()
    for (const check of [...this.#waiting]) check()
  }

  mustWait(owner: string): boolean {
    if (owner !== AUTHENTICATOR || this.authenticator === '') return this.#held.has(owner)
    return this.#held.has(owner) || !this.authenticate?.has(this.authenticator)
  }

  /** Resolves when the owner is not held; rejects with `reloading` after five seconds, or when the caller hangs up. */
  wait(owner: string, response: ServerResponse): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = () => {
        if (!this.mustWait(owner)) end(resolve)
      }
      const late = () => end(() => reject(reloading()))
      const end = (settle: () => void) => {
        this.#waiting.delete(check)
        timer.cancel()
        response.off('close', late)
        settle()
      }
      const timer = this.clock.timeout(WAIT_MS, late)
      response.once('close', late)
      this.#waiting.add(check)
    })
  }

  /** Admits a request. */
  enter(owner: string, actor: Actor): Call {
    const mine = this.#running.get(owner) ?? new Set()
    if (!this.#running.has(owner)) this.#running.set(owner, mine)
    return new Call(mine, actor)
  }

  /** Answers the admitted requests of matching callers with this fault. */
  dismiss(isOne: (caller: Actor) => boolean, why: Fault): void {
    for (const call of [...this.#running.values()].flatMap(calls => [...calls]))
      if (isOne(call.actor)) call.turnOut(why)
  }

  /** Resolves when the owner has no admitted request. After `ms` the remaining ones are aborted and answered with 503. */
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
