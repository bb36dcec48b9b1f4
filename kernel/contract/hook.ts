import type { Awaitable, Scope } from './basics.js'
import type { Fault } from './errors.js'
import type { Tx } from './storage.js'

/** The owner of a tap. Taps run by depth, then by owner, then in order of registration; the order of loading has no effect. */
export interface Tapper {
  readonly owner: string
  /** Length of the longest chain of plugins that the owner requires, 0 without requirements. */
  readonly depth: number
  readonly scope: Scope
  /** Whether the owner is a drop-in, including one that replaces a plugin of the program and runs under its name. */
  readonly isDropIn?: boolean
}

/** A hook for other plugins: it can be tapped, not called. */
export interface Hook<F> {
  readonly name: string
  tap(tapper: Tapper, fn: F): void
}

/** A hook for its owner. */
export interface OwnHook<F> extends Hook<F> {
  /** Whether there is a tap; lets the owner skip the preparation of expensive arguments. */
  isUsed(): boolean
}

export type NotifyTap<A extends readonly unknown[]> = (...args: A) => unknown

/** Announces that something happened. A tap that fails is reported and the next one runs. */
export interface Notify<A extends readonly unknown[]> extends OwnHook<NotifyTap<A>> {
  call(...args: A): Promise<void>
}

export type PipelineTap<V, A extends readonly unknown[]> = (value: V, ...args: A) => Awaitable<V | undefined>

/** Passes a value through the taps. `undefined` keeps it, `null` is a value; the value also stays when a tap fails. */
export interface Pipeline<V, A extends readonly unknown[] = []> extends OwnHook<PipelineTap<V, A>> {
  run(value: V, ...args: A): Promise<V>
}

export type GateTap<A extends readonly unknown[], R = never> = (...args: A) => Awaitable<Fault | R | undefined>

/** Decides whether something may happen; taps may be asynchronous. A fault refuses, and so does a failure of a tap. */
export interface Gate<A extends readonly unknown[], R = never> extends OwnHook<GateTap<A, R>> {
  /** The first answer of a tap; undefined when all agree. */
  ask(...args: A): Promise<Fault | R | undefined>
  /** Like {@link ask}; `done` is called in the same turn when no tap has to wait. */
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
  /** For a gate whose taps may also return answers that are no refusal. */
  readonly isAnswer?: (value: unknown) => value is R
  /** Deadline of each tap in milliseconds; default 5000, `Infinity` when a person may have to answer. */
  readonly deadlineMs?: number
}

declare const calls: unique symbol

/** One hook of a table as plain data. `C` is the type of the hook that {@link HookFactory.of} makes of it. */
export interface HookEntry<C> {
  readonly kind: 'notify' | 'announce' | 'pipeline' | 'gate' | 'guard'
  /** Name in faults and logs, after that of the plugin: `turn.start`. */
  readonly name: string
  /** The first sentence states when the hook is called, the rest what a tap may do. */
  readonly summary: string
  readonly deadlineMs?: number
  // biome-ignore lint/suspicious/noExplicitAny: the erasing line of hooks
  readonly isAnswer?: (value: unknown) => value is any
  readonly [calls]?: C
}

// biome-ignore lint/suspicious/noExplicitAny: the erasing line of hooks
export type HookTable = Readonly<Record<string, HookEntry<any>>>

/** The hooks of a table for their owner, who can call them. */
export type HooksOf<T> = { readonly [K in keyof T]: T[K] extends HookEntry<infer C> ? C : never }

/** The hooks of a table for other plugins, which can tap them. */
export type TapsOf<T> = {
  readonly [K in keyof T]: T[K] extends HookEntry<infer C> ? (C extends Hook<infer F> ? Hook<F> : never) : never
}

/** All hooks of a plugin, by member name. @throws TypeError for duplicate names */
export function hookTable<const T extends HookTable>(table: T): T {
  const names = new Set<string>()
  for (const { name } of Object.values(table)) {
    if (name === '' || names.has(name))
      throw new TypeError(`a hook table must name ${JSON.stringify(name)} exactly once`)
    names.add(name)
  }
  return Object.freeze(table)
}

type Timed = Pick<HookOptions, 'deadlineMs'>

/** A table entry for a hook that announces something. */
export const notify = <A extends readonly unknown[]>(
  name: string,
  summary: string,
  options?: Timed,
): HookEntry<Notify<A>> => ({ kind: 'notify', name, summary, ...options })

/** A table entry for a hook that passes a value through taps. */
export const pipeline = <V, A extends readonly unknown[] = []>(
  name: string,
  summary: string,
  options?: Timed,
): HookEntry<Pipeline<V, A>> => ({ kind: 'pipeline', name, summary, ...options })

/** A table entry for a hook that decides, with asynchronous taps. */
export const gate = <A extends readonly unknown[], R = never>(
  name: string,
  summary: string,
  options?: HookOptions<R>,
): HookEntry<Gate<A, R>> => ({ kind: 'gate', name, summary, ...options })

/** A table entry for a hook that decides inside a transaction. */
export const guard = <A extends readonly unknown[]>(name: string, summary: string): HookEntry<Guard<A>> => ({
  kind: 'guard',
  name,
  summary,
})

/** Makes the hooks of a service; failures of taps are attributed to the owners of the taps. */
export interface HookFactory {
  /** The hooks of a table, for one kernel; called once, by the plugin that owns the table. */
  of<T extends HookTable>(table: T): HooksOf<T>
  // Single hooks without a table, for extensions of `apiVersion: 1`; they are in no reference or catalogue.
  notify<A extends readonly unknown[]>(name: string, options?: HookOptions): Notify<A>
  pipeline<V, A extends readonly unknown[] = []>(name: string, options?: HookOptions): Pipeline<V, A>
  gate<A extends readonly unknown[], R = never>(name: string, options?: HookOptions<R>): Gate<A, R>
  guard<A extends readonly unknown[]>(name: string): Guard<A>
}
