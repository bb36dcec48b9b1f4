import type { Awaitable, Scope } from './basics.js'
import type { Fault } from './errors.js'
import type { Tx } from './storage.js'

/** Who taps. Taps run by depth, then by owner, then in order of registration, whatever was loaded when. */
export interface Tapper {
  readonly owner: string
  /** Longest chain of plugins that the owner requires: 0 for one that requires none. */
  readonly depth: number
  readonly scope: Scope
  /** The owner is a drop-in, or runs in the place of a plugin of the program under the name of that one. */
  readonly isDropIn?: boolean
}

/** The side of a hook that others see: it can be tapped, not called. */
export interface Hook<F> {
  readonly name: string
  tap(tapper: Tapper, fn: F): void
}

export type NotifyTap<A extends readonly unknown[]> = (...args: A) => unknown

/** Announces that something happened. A tap that fails is reported and the next one runs. */
export interface Notify<A extends readonly unknown[]> extends Hook<NotifyTap<A>> {
  call(...args: A): Promise<void>
}

export type PipelineTap<V, A extends readonly unknown[]> = (value: V, ...args: A) => Awaitable<V | undefined>

/** Hands on a changed value. `undefined` means "no opinion", `null` is a value; when a tap fails the previous one stays. */
export interface Pipeline<V, A extends readonly unknown[] = []> extends Hook<PipelineTap<V, A>> {
  run(value: V, ...args: A): Promise<V>
}

export type GateTap<A extends readonly unknown[], R = never> = (...args: A) => Awaitable<Fault | R | undefined>

/** Asks taps that may have to wait whether something may happen. A tap refuses with a fault; one that fails refuses too. */
export interface Gate<A extends readonly unknown[], R = never> extends Hook<GateTap<A, R>> {
  /** The first answer, or nothing. */
  ask(...args: A): Promise<Fault | R | undefined>
  /** The same; `done` is called at once when no tap has to wait. */
  askNow(args: A, done: (answer: Fault | R | undefined) => void): void
}

export type GuardTap<A extends readonly unknown[]> = (t: Tx, ...args: A) => Fault | undefined

/** Decides inside a transaction, which taps may read through. A tap that returns a promise or throws refuses. */
export interface Guard<A extends readonly unknown[]> extends Hook<GuardTap<A>> {
  /** Throws the first refusal. */
  check(t: Tx, ...args: A): void
}

/** Told of every tap that failed: whose, on which hook, how. */
export type Report = (fault: { owner: string; hook: string; error: unknown }) => void

/** One entry of a registry with the plugin that contributed it. */
export interface Contribution<T> {
  readonly owner: string
  readonly entry: T
}

export interface HookOptions<R = never> {
  /** Of a gate that also takes answers which are no refusal. */
  readonly isAnswer?: (value: unknown) => value is R
  /** Milliseconds that each tap has, 5000 unless given; `Infinity` where a person may have to answer. */
  readonly deadlineMs?: number
}

/** Makes the hooks that a service offers; failures of taps are attributed to their owners. */
export interface HookFactory {
  notify<A extends readonly unknown[]>(name: string, options?: HookOptions): Notify<A>
  pipeline<V, A extends readonly unknown[] = []>(name: string, options?: HookOptions): Pipeline<V, A>
  gate<A extends readonly unknown[], R = never>(name: string, options?: HookOptions<R>): Gate<A, R>
  guard<A extends readonly unknown[]>(name: string): Guard<A>
}
