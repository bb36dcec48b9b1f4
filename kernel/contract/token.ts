import type * as v from 'valibot'

declare const carries: unique symbol

/** Typed reference to a service. Its identity is the id with a major version (`store@1`), not the module that exports it. */
export interface Token<T> {
  readonly id: string
  readonly [carries]?: T
}

/**
 * An optional need: `{ current?: T }`. It does not affect the start order, and changes of the service do not restart its holder.
 */
export interface MaybeToken<T> {
  readonly maybe: Token<T>
}

/** Reference to a registry that one plugin declares and others contribute to. */
export interface RegistryToken<T> {
  readonly registry: string
  /** The schema of entries. A drop-in's entry that does not match is left out and reported as its fault; its other entries stay. */
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
 * @param entry the schema of an entry; functions in it are only checked to be functions
 */
export function registry<T>(id: string, entry?: v.GenericSchema): RegistryToken<T> {
  return { registry: checked(id), ...(entry ? { entry } : {}) }
}

// biome-ignore lint/suspicious/noExplicitAny: the erasing line of needs
export type Needs = Readonly<Record<string, Token<any> | MaybeToken<any>>>

/** The resolved needs of a plugin. */
export type Resolved<N extends Needs> = {
  readonly [K in keyof N]: N[K] extends Token<infer T> ? T : N[K] extends MaybeToken<infer T> ? Maybe<T> : never
}

function checked(id: string): string {
  if (!/^[a-z][a-z0-9_.-]*@[1-9][0-9]*$/.test(id))
    throw new TypeError(`token id must be name@major, got ${JSON.stringify(id)}`)
  return id
}
