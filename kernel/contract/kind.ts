import type * as v from 'valibot'

/** A resource family: how its spec is decoded, validated and made canonical, and who may write it directly. */
export interface Kind<S = unknown> {
  /** `[a-z][a-z0-9_]*(\.[a-z0-9_]+)*`, at most 64 characters. */
  readonly name: string
  /** The codec: decodes leniently (unknown members are dropped) or strictly, as its schema says. */
  readonly spec: v.GenericSchema<unknown, S>
  /** Largest size of a spec, in bytes of its canonical JSON. */
  readonly maxBytes: number
  /** `owner`: a service keeps the lifecycle of these records, direct PUT and DELETE are refused with 403. */
  readonly writers?: 'anyone' | 'owner'
  /** The records are read when somebody asks for them: no reconciler is lacking. */
  readonly onDemand?: boolean
  /** What the schema alone cannot say: spec against id and scope. Returns what is wrong, or undefined. */
  check?(record: { readonly id: string; readonly scope: RecordScope; readonly spec: S }): string | undefined
}

/** Where a record applies. `user` and `global` mean the same; each is stored and returned as written. */
export interface RecordScope {
  readonly kind: 'user' | 'global' | 'workspace'
  readonly id?: string
}

export const KIND_NAME = /^(?=.{1,64}$)[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$/

/** Declares a kind. */
export function kind<S>(definition: Kind<S>): Kind<S> {
  if (!KIND_NAME.test(definition.name)) throw new TypeError(`kind name ${JSON.stringify(definition.name)} is not valid`)
  return definition
}
