import type * as v from 'valibot'
import type { Party } from './actor.js'
import type { Awaitable } from './awaitable.js'
import type { Tx } from './db.js'

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

/** A position in the log that outlives the process: its name, unique in its plugin, and what it is told of. */
export interface DurableCursor<P = unknown> {
  readonly cursor: string
  readonly type: EventType<P> | '*'
}

/**
 * Handed to a durable cursor in place of what it fell over 7 days behind: positions `from` to `to` are skipped. `missed` are
 * events of its type, and with them all those that had left the table, of whatever type.
 */
export interface GapEvent extends StoredEvent<{ readonly from: number; readonly to: number; readonly missed: number }> {
  readonly name: 'gap'
}

/** Tells a gap from an event. */
export function isGap(event: StoredEvent): event is GapEvent {
  return event.name === 'gap'
}

/** Which events a list or a count is about; strings are compared exactly. */
export interface EventFilter {
  readonly name?: string
  readonly subject?: string
}

/** Events of one name on one day, UTC, `YYYY-MM-DD`. */
export interface DayCount {
  readonly day: string
  readonly name: string
  readonly n: number
}

/** The event log as a plugin sees it. */
export interface Events {
  /**
   * Appends in the transaction of the state that the event tells of. Returns its id, for the `cause` of what follows. Throws
   * TypeError for a payload that does not match, `payload_too_large`, and for a drop-in `event_flood` beyond 10,000 at once
   * and 100 a second in the long run.
   */
  emit<P>(t: Tx, type: EventType<P>, payload: P, options?: EmitOptions): { readonly id: string; readonly seq: number }
  /**
   * Calls `fn` for every event of that type (or all) that becomes durable from now on, in order, one at a time. When it fails,
   * that is reported and the next event comes; a slow one delays only itself. Ends with the plugin's scope.
   */
  on<P>(type: EventType<P> | '*', fn: (event: StoredEvent<P>) => Awaitable<void>): void
  /**
   * The same from where this cursor stood when the plugin last ran, at its first time from now: at least once, in order. It
   * advances when `fn` has resolved; when `fn` fails, it is called again with the same event, 50 ms to 30 s later. Over 7 days
   * behind it is skipped forward with a {@link GapEvent}. Throws when the cursor has a consumer, `tx_nested` in a transaction.
   */
  on<P>(cursor: DurableCursor<P>, fn: (event: StoredEvent<P> | GapEvent) => Awaitable<void>): void
  /**
   * Events after a position, oldest first, at most `limit` (default 200, at most 1000). The newest 100,000 come from the
   * database, older ones from the journal as far as retention has left them, read from `after` on.
   * @throws StoreError `journal_damaged`, `events_ahead`, when older ones are wanted
   */
  list(filter: EventFilter & { readonly after?: number; readonly limit?: number }): Promise<StoredEvent[]>
  /** The newest such event of those in the database, at once, also inside a transaction. */
  latest(filter: EventFilter): StoredEvent | undefined
  /**
   * Events a day and name, from the first to the last day (`YYYY-MM-DD`, UTC, both included), by day and name; days without
   * any are left out. Counts outlive retention by a year. Throws `invalid_filter`.
   */
  counts(filter: EventFilter & { readonly scope?: string; readonly from: string; readonly to: string }): DayCount[]
  /** Position of the newest event, 0 when there is none. */
  last(): number
}
