import type * as v from 'valibot'
import type { Party } from '../actor.js'
import type { Awaitable } from '../awaitable.js'
import type { Tx } from '../store/index.js'

export { EventLog } from './log.js'

/** A fact that others may be told of: its name and the schema of its JSON payload. */
export interface EventType<P = unknown> {
  /** `workspace.created`; families are the part before the last dot. */
  readonly name: string
  readonly payload: v.GenericSchema<unknown, P>
}

/** Declares an event. */
export function event<P>(name: string, payload: v.GenericSchema<unknown, P>): EventType<P> {
  return { name, payload }
}

/** A stored event. */
export interface StoredEvent<P = unknown> {
  /** Position in the log, ascending, without gaps inside one transaction. */
  readonly seq: number
  /** `evt_` and 16 hex. */
  readonly id: string
  /** Epoch milliseconds. */
  readonly at: number
  readonly name: string
  readonly actor: Party
  /** Id of the event or request that led to it. */
  readonly cause?: string
  /** What day counts and overviews group by: a scope id and the id of what it is about. */
  readonly scope?: string
  readonly subject?: string
  readonly payload: P
}

export interface EmitOptions {
  readonly actor?: { readonly kind: string; readonly id: string; readonly cause?: string }
  /** Default: the actor's cause. */
  readonly cause?: string | undefined
  readonly scope?: string | undefined
  readonly subject?: string | undefined
}

/** The event log as a plugin sees it. */
export interface Events {
  /** Appends in the transaction of the state that the event tells of. Returns its id, for the `cause` of what follows. */
  emit<P>(t: Tx, type: EventType<P>, payload: P, options?: EmitOptions): { readonly id: string; readonly seq: number }
  /**
   * Calls `fn` for every event of that type (or all) that becomes durable from now on, in order, one at a time; a slow or
   * failing consumer delays only itself. Ends with the plugin's scope.
   */
  on<P>(type: EventType<P> | '*', fn: (event: StoredEvent<P>) => Awaitable<void>): void
  /** Events after a position, oldest first, at most `limit` (default 200, at most 1000). */
  list(filter: {
    readonly after?: number
    readonly name?: string
    readonly subject?: string
    readonly limit?: number
  }): StoredEvent[]
  /** Position of the newest event, 0 when there is none. */
  last(): number
}
