import type * as v from 'valibot'

declare const carries: unique symbol

/** Typed reference to a service; its identity is the id with a major (`store@1`), never the module it was imported from. */
export interface Token<T> {
  readonly id: string
  readonly [carries]?: T
}

/** A need that may stay unmet: `{ current?: T }`, no order edge, never restarts its holder. */
export interface MaybeToken<T> {
  readonly maybe: Token<T>
}

/** Reference to a registry that one plugin declares and others contribute to. */
export interface RegistryToken<T> {
  readonly registry: string
  /** What an entry has to be. One of a drop-in that is not is left out and reported as a fault of the drop-in; its others stay. */
  readonly entry?: v.GenericSchema
  readonly [carries]?: T
}

export interface Maybe<T> {
  readonly current?: T
}

/** Makes the reference of a service, `name@major`. */
export function token<T>(id: string): Token<T> {
  return { id: checked(id) }
}

/** Marks a need as optional. */
export function maybe<T>(wanted: Token<T>): MaybeToken<T> {
  return { maybe: wanted }
}

/**
 * Makes the reference of a registry, `owner.what@major`.
 * @param entry the schema of an entry; functions in it are checked to be functions
 */
export function registry<T>(id: string, entry?: v.GenericSchema): RegistryToken<T> {
  return { registry: checked(id), ...(entry ? { entry } : {}) }
}

// biome-ignore lint/suspicious/noExplicitAny: the erasing line of needs
export type Needs = Readonly<Record<string, Token<any> | MaybeToken<any>>>

/** What a plugin with these needs is handed. */
export type Resolved<N extends Needs> = {
  readonly [K in keyof N]: N[K] extends Token<infer T> ? T : N[K] extends MaybeToken<infer T> ? Maybe<T> : never
}

function checked(id: string): string {
  if (!/^[a-z][a-z0-9_.-]*@[1-9][0-9]*$/.test(id))
    throw new TypeError(`token id must be name@major, got ${JSON.stringify(id)}`)
  return id
}
