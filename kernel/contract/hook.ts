import type { Awaitable, Scope } from './basics.js'
import type { Fault } from './errors.js'
import type { Tx } from './storage.js'

/** The owner of a tap. Taps run by depth, then by owner, then in order of registration; the order of loading has no effect. */
export interface Tapper {
  readonly owner: string
  /** Longest chain of plugins that the owner requires: 0 for one that requires none. */
  readonly depth: number
  readonly scope: Scope
  /** The owner is a drop-in, also one that replaces a plugin of the program and runs under its name. */
  readonly isDropIn?: boolean
}

/** The side of a hook that others see: it can be tapped, not called. */
export interface Hook<F> {
  readonly name: string
  tap(tapper: Tapper, fn: F): void
}

/** The side of a hook that its owner has. */
export interface OwnHook<F> extends Hook<F> {
  /** Whether there is a tap: asked where it costs something to build what taps are called with. */
  isUsed(): boolean
}

export type NotifyTap<A extends readonly unknown[]> = (...args: A) => unknown

/** Announces that something happened. A tap that fails is reported and the next one runs. */
export interface Notify<A extends readonly unknown[]> extends OwnHook<NotifyTap<A>> {
  call(...args: A): Promise<void>
}

export type PipelineTap<V, A extends readonly unknown[]> = (value: V, ...args: A) => Awaitable<V | undefined>

/** Hands on a changed value. `undefined` means "no opinion", `null` is a value; when a tap fails the previous one stays. */
export interface Pipeline<V, A extends readonly unknown[] = []> extends OwnHook<PipelineTap<V, A>> {
  run(value: V, ...args: A): Promise<V>
}

export type GateTap<A extends readonly unknown[], R = never> = (...args: A) => Awaitable<Fault | R | undefined>

/** Asks taps that may have to wait whether something may happen. A tap refuses with a fault; one that fails refuses too. */
export interface Gate<A extends readonly unknown[], R = never> extends OwnHook<GateTap<A, R>> {
  /** The first answer, or nothing. */
  ask(...args: A): Promise<Fault | R | undefined>
  /** The same; `done` is called at once when no tap has to wait. */
  askNow(args: A, done: (answer: Fault | R | undefined) => void): void
}

export type GuardTap<A extends readonly unknown[]> = (t: Tx, ...args: A) => Fault | undefined

/** Decides inside a transaction, which taps may read through. A tap that returns a promise or throws refuses. */
export interface Guard<A extends readonly unknown[]> extends OwnHook<GuardTap<A>> {
  /** Throws the first refusal. */
  check(t: Tx, ...args: A): void
}

/** Receives each failure of a tap: the owner, the name of the hook and the error. */
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

declare const calls: unique symbol

/** One hook of a table as plain data. `C` is the type of the hook that {@link HookFactory.of} makes of it. */
export interface HookEntry<C> {
  readonly kind: 'notify' | 'announce' | 'pipeline' | 'gate' | 'guard' | 'guards'
  /** As faults and logs have it, after the name of the plugin: `turn.start`. */
  readonly name: string
  /** When it is called, in the first sentence; then what a tap may do. */
  readonly summary: string
  readonly deadlineMs?: number
  // biome-ignore lint/suspicious/noExplicitAny: the erasing line of hooks
  readonly isAnswer?: (value: unknown) => value is any
  readonly [calls]?: C
}

// biome-ignore lint/suspicious/noExplicitAny: the erasing line of hooks
export type HookTable = Readonly<Record<string, HookEntry<any>>>

/** The hooks of a table as their owner has them: they can be called. */
export type HooksOf<T> = { readonly [K in keyof T]: T[K] extends HookEntry<infer C> ? C : never }

/** The hooks of a table as other plugins see them: they can be tapped. */
export type TapsOf<T> = {
  readonly [K in keyof T]: T[K] extends HookEntry<infer C> ? (C extends Hook<infer F> ? Hook<F> : never) : never
}

/** All hooks of a plugin, by the names of their members. @throws TypeError where two of them have one name */
export function hookTable<const T extends HookTable>(table: T): T {
  const names = new Set<string>()
  for (const { name } of Object.values(table)) {
    if (name === '' || names.has(name))
      throw new TypeError(`a table of hooks names ${JSON.stringify(name)} twice, or not at all`)
    names.add(name)
  }
  return Object.freeze(table)
}

type Timed = Pick<HookOptions, 'deadlineMs'>

/** An entry of a table: something happened. */
export const notify = <A extends readonly unknown[]>(
  name: string,
  summary: string,
  options?: Timed,
): HookEntry<Notify<A>> => ({ kind: 'notify', name, summary, ...options })

/** An entry of a table: a value that taps may change. */
export const pipeline = <V, A extends readonly unknown[] = []>(
  name: string,
  summary: string,
  options?: Timed,
): HookEntry<Pipeline<V, A>> => ({ kind: 'pipeline', name, summary, ...options })

/** An entry of a table: may something happen; taps may take time. */
export const gate = <A extends readonly unknown[], R = never>(
  name: string,
  summary: string,
  options?: HookOptions<R>,
): HookEntry<Gate<A, R>> => ({ kind: 'gate', name, summary, ...options })

/** An entry of a table: may something happen, decided in the transaction that does it. */
export const guard = <A extends readonly unknown[]>(name: string, summary: string): HookEntry<Guard<A>> => ({
  kind: 'guard',
  name,
  summary,
})

/** Makes the hooks that a service offers; failures of taps are attributed to their owners. */
export interface HookFactory {
  /** The hooks of a table, for one kernel; called once by the plugin whose table it is. */
  of<T extends HookTable>(table: T): HooksOf<T>
  // One hook without a table, for extensions of `apiVersion: 1`: no reference or catalogue shows it.
  notify<A extends readonly unknown[]>(name: string, options?: HookOptions): Notify<A>
  pipeline<V, A extends readonly unknown[] = []>(name: string, options?: HookOptions): Pipeline<V, A>
  gate<A extends readonly unknown[], R = never>(name: string, options?: HookOptions<R>): Gate<A, R>
  guard<A extends readonly unknown[]>(name: string): Guard<A>
}
