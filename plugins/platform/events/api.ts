/** `svc/plugins/events`: the event log. */
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
   * `origin` is where the actor acted from: `cli`, `uds`, `http`, `web`, `daemon`, `extension` …; events of former versions have
   * none. `on_behalf_of` is the session of the agent for which it acted, as `kind/id`.
   */
  readonly actor: Party & { readonly origin?: string; readonly on_behalf_of?: string }
  /** Id of the event or request that led to it. */
  readonly cause?: string
  /** Keys of day counts and overviews: a scope id, and the id of the thing that the event is about. */
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

/** The arguments of one {@link EventsApi.emit}. */
export type Emission<P = unknown> = readonly [type: EventType<P>, payload: P, options?: EmitOptions]

/** A position in the log that outlives the process: its name, unique in its plugin, and the type of its events. */
export interface DurableCursor<P = unknown> {
  readonly cursor: string
  readonly type: EventType<P> | '*'
  /**
   * Number of events that may be handled concurrently, started in order; default 1. The cursor stays before the first unfinished
   * event: after a crash the later ones are delivered again.
   */
  readonly atOnce?: number
}

/**
 * Delivered to a durable cursor instead of events that are over 7 days old: positions `from` to `to` are skipped. `missed` counts
 * events of its type, plus all events, of any type, that had left the table.
 */
export interface GapEvent extends StoredEvent<{ readonly from: number; readonly to: number; readonly missed: number }> {
  readonly name: 'gap'
}

/** Whether an event is a gap. */
export function isGap(event: StoredEvent): event is GapEvent {
  return event.name === 'gap'
}

/** Selects the events of a list or count; strings are compared exactly. */
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
 * Number of events of one name and scope in one time slot, which is epoch milliseconds divided by the length of a slot; `last` is
 * the time of the newest.
 */
export type EventSum = Readonly<Record<'slot' | 'n' | 'last', number> & { name: string; scope: string | null }>

/** The hooks of the event log. */
export const points = hookTable({
  written: guard<[event: StoredEvent]>(
    'written',
    'An event was appended, in the transaction that caused it. A throw aborts that transaction.',
  ),
})

/** The event log for a plugin that requires it. */
export interface EventsApi extends TapsOf<typeof points> {
  /**
   * Appends an event in the transaction of the state that it describes. Returns its id, for the `cause` of later events. Throws
   * TypeError for a payload that does not match, `payload_too_large`, and for a drop-in `event_flood` beyond a burst of 10,000 and
   * a sustained 100 events/s.
   */
  emit<P>(t: Tx, type: EventType<P>, payload: P, options?: EmitOptions): { readonly id: string; readonly seq: number }
  /** {@link emit} for several events in one statement, in their order. */
  emitAll(t: Tx, emissions: readonly Emission[]): { readonly id: string; readonly seq: number }[]
  /**
   * Calls `fn` for every later durable event of that type (or all), in order, one at a time. A failure is reported, and the next
   * event follows; a slow consumer delays only itself. Ends with the plugin's scope.
   */
  on<P>(type: EventType<P> | '*', fn: (event: StoredEvent<P>) => Awaitable<void>): void
  /**
   * Like the above, from the position of this cursor at the plugin's last run, at first from now: at least once, in order. The
   * cursor advances when `fn` has resolved; when `fn` fails, it is called again with the same event, 50 ms to 30 s later. Over 7
   * days behind it is skipped forward with a {@link GapEvent}. Throws when the cursor has a consumer, `tx_nested` in a transaction.
   */
  on<P>(cursor: DurableCursor<P>, fn: (event: StoredEvent<P> | GapEvent) => Awaitable<void>): void
  /**
   * Events after a position, oldest first, at most `limit` (default 200, at most 1000). The newest 100,000 come from the database,
   * older ones from the journal within its retention.
   * @throws StoreError `journal_damaged`, Fault `events_ahead`, for events in the journal
   */
  list(filter: EventFilter & { readonly after?: number; readonly limit?: number }): Promise<StoredEvent[]>
  /** The newest matching event in the database; synchronous, also inside a transaction. */
  latest(filter: EventFilter): StoredEvent | undefined
  /**
   * Events per day and name, from the first to the last day (`YYYY-MM-DD`, UTC, both included), by day and name; days without
   * events are left out. Counts outlive retention by a year. Throws `invalid_filter`.
   */
  counts(filter: EventFilter & { readonly scope?: string; readonly from: string; readonly to: string }): DayCount[]
  /**
   * Events after a position by time slot, name and scope, over at most `limit` positions, with the last position that is counted.
   * Synchronous, without reading the events themselves. Undefined if some of them are only in the journal.
   */
  sums(after: number, slotMs: number, limit: number): { readonly upTo: number; readonly sums: EventSum[] } | undefined
  /** Position of the newest event, 0 when there is none. */
  last(): number
  /**
   * An event in the database by its id, synchronously, for following causes. The search goes backwards from the newest event, or
   * from the position `before`, because a cause is usually close to its effect; an index on ids would cost every
   * event something.
   */
  find(id: string, before?: number): StoredEvent | undefined
  /** Deletes a durable cursor that its plugin no longer uses. Resolves to whether it existed. */
  retire(owner: string, cursor: string): Promise<boolean>
  /** `on` as a hook, for a tap on the surface: `tap(Events, events => events.of(Made), service => event => …)`. */
  of<P>(type: EventType<P> | '*'): Hook<(event: StoredEvent<P>) => Awaitable<void>>
  of<P>(cursor: DurableCursor<P>): Hook<(event: StoredEvent<P> | GapEvent) => Awaitable<void>>
}

export const EventErrors = defineErrors({
  event_flood: { status: 429, message: 'this plugin emits too many events; try again later' },
  events_ahead: {
    status: 500,
    message: 'the journal of events is ahead of the database',
    next: 'restore both from the same backup, or move the folder away',
  },
})

export const Events = token<EventsApi>('events@1')

const pluginState = v.object({ name: v.string(), status: v.string(), error: v.optional(v.string()) })
/** A plugin started or restarted after the boot. */
export const PluginLoaded = event('plugin.loaded', pluginState)
export const PluginFailed = event('plugin.failed', pluginState)
/** A plugin no longer runs. When it is only reloaded, `plugin.loaded` follows at once. */
export const PluginUnloaded = event('plugin.unloaded', pluginState)

const changed = v.object({ kind: v.string(), id: v.string(), version: v.number(), created: v.optional(v.boolean()) })
/** Events about records, emitted in the transaction of the change. */
export const RecordPut = event('record.put', changed)
export const RecordDeleted = event('record.deleted', changed)
