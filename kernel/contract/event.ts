import type * as v from 'valibot'

/** A fact that others may be told of: its name and the schema of its JSON payload, at most 256 KiB. */
export interface EventType<P = unknown> {
  /** `workspace.created`; families are the part before the last dot. */
  readonly name: string
  readonly payload: v.GenericSchema<unknown, P>
}

/** Declares an event; the name `gap` is the log's own. */
export function event<P>(name: string, payload: v.GenericSchema<unknown, P>): EventType<P> {
  if (name === 'gap') throw new TypeError('no event can be named gap: that is what a cursor is told of what it missed')
  return { name, payload }
}
