/** `svc/plugins/events`: the log of what happened. */
import * as v from 'valibot'
import {
  type Actor,
  type Awaitable,
  defineErrors,
  type EventType,
  event,
  guard,
  type Hook,
  hookTable,
  type Party,
  type TapsOf,
  type Tx,
  token,
} from '../../../kernel/plugin.js'

/** A stored event. */
export interface StoredEvent<P = unknown> {
  /** Position in the log, ascending, without gaps inside one transaction. */
  readonly seq: number
  /** `evt_` and 16 hex. */
  readonly id: string
  /** Epoch milliseconds. */
  readonly at: number
  readonly name: string
  /**
   * Its origin says where it acted from: `cli`, `uds`, `http`, `web`, `daemon`, `extension` … Events of former versions have none.
   * `on_behalf_of` is the session of the agent for which it acted, as `kind/id`.
   */
  readonly actor: Party & { readonly origin?: string; readonly on_behalf_of?: string }
  /** Id of the event or request that led to it. */
  readonly cause?: string
  /** What day counts and overviews group by: a scope id and the id of what it is about. */
  readonly scope?: string
  readonly subject?: string
  readonly payload: P
}

export interface EmitOptions {
  readonly actor?: Pick<Actor, 'id' | 'origin' | 'cause' | 'onBehalfOf'> & { readonly kind: string }
  /** Default: the actor's cause. */
  readonly cause?: string | undefined
  readonly scope?: string | undefined
  readonly subject?: string | undefined
}

/** A position in the log that outlives the process: its name, unique in its plugin, and what it is told of. */
export interface DurableCursor<P = unknown> {
  readonly cursor: string
  readonly type: EventType<P> | '*'
  /**
   * So many events may be handed over before the first of them is done with, in their order; default 1. The cursor stays in
   * front of the first that is not: after a crash those behind it come again.
   */
  readonly atOnce?: number
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

/**
 * Events of one name and scope in one slot of time, which is epoch milliseconds divided by the length of a slot; `last` is when the
 * newest of them happened.
 */
export type EventSum = Readonly<Record<'slot' | 'n' | 'last', number> & { name: string; scope: string | null }>

/** The hooks of the event log. */
export const points = hookTable({
  written: guard<[event: StoredEvent]>(
    'written',
    'An event was appended; the transaction of its state is still open. A throw aborts that transaction.',
  ),
})

/** The event log as the plugin that requires it sees it. */
export interface EventsApi extends TapsOf<typeof points> {
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
   * @throws StoreError `journal_damaged`, Fault `events_ahead`, when older ones are wanted
   */
  list(filter: EventFilter & { readonly after?: number; readonly limit?: number }): Promise<StoredEvent[]>
  /** The newest such event of those in the database, at once, also inside a transaction. */
  latest(filter: EventFilter): StoredEvent | undefined
  /**
   * Events a day and name, from the first to the last day (`YYYY-MM-DD`, UTC, both included), by day and name; days without
   * any are left out. Counts outlive retention by a year. Throws `invalid_filter`.
   */
  counts(filter: EventFilter & { readonly scope?: string; readonly from: string; readonly to: string }): DayCount[]
  /**
   * Events after a position by slots of time, name and scope, and the position up to which they are counted: at most `limit` positions
   * on. At once, and without reading the events themselves. Undefined where some of them are in the journal alone.
   */
  sums(after: number, slotMs: number, limit: number): { readonly upTo: number; readonly sums: EventSum[] } | undefined
  /** Position of the newest event, 0 when there is none. */
  last(): number
  /**
   * One of those in the database, by its id, at once: for who follows causes. They are looked through from the newest on, or
   * from the one before the position `before`: a cause is mostly near to what follows from it.
   */
  find(id: string, before?: number): StoredEvent | undefined
  /** Forgets a durable cursor of a plugin that follows by it no longer. Resolves to whether there was one. */
  retire(owner: string, cursor: string): Promise<boolean>
  /** `on` as a hook, for a tap on the surface: `tap(Events, events => events.of(Made), self => event => …)`. */
  of<P>(type: EventType<P> | '*'): Hook<(event: StoredEvent<P>) => Awaitable<void>>
  of<P>(cursor: DurableCursor<P>): Hook<(event: StoredEvent<P> | GapEvent) => Awaitable<void>>
}

export const EventErrors = defineErrors({
  event_flood: { status: 429, message: 'this plugin tells of too many events; try again later' },
  events_ahead: {
    status: 500,
    message: 'the journal of events is ahead of the database',
    next: 'restore both from the same backup, or move the folder away',
  },
})

export const Events = token<EventsApi>('events@1')

const pluginState = v.object({ name: v.string(), status: v.string(), error: v.optional(v.string()) })
/** A plugin began to run after the boot, also when it was loaded again. */
export const PluginLoaded = event('plugin.loaded', pluginState)
export const PluginFailed = event('plugin.failed', pluginState)
/** It runs no longer; when it is loaded again, it is told of at once afterwards. */
export const PluginUnloaded = event('plugin.unloaded', pluginState)

const changed = v.object({ kind: v.string(), id: v.string(), version: v.number(), created: v.optional(v.boolean()) })
/** A record was written, in the transaction that tells of it; and it was removed. */
export const RecordPut = event('record.put', changed)
export const RecordDeleted = event('record.deleted', changed)
