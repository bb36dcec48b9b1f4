import type { Readable } from 'node:stream'
import type { Awaitable } from './basics.js'
import type { Fault } from './errors.js'
import type { RecordScope } from './kind.js'
import type { Plugin, PluginState } from './plugin.js'
import type { Actor, Party, RecordChange } from './record.js'
import type { Redactor } from './redact.js'
import type { Door, Route } from './route.js'
import type { Tx } from './storage.js'

/** One change of what runs: a boot, or a plugin that is loaded, reloaded or unloaded. */
export interface Change {
  /** The first one. */
  readonly boot: boolean
  /** Names of the plugins that this change started. */
  readonly started: ReadonlySet<string>
  /** Takes a plugin, and what requires it, out of the change: it fails with this text, the rest goes on. */
  fail(owner: string, error: string): void
}

/** Plugins that go, dependents first. Their routes, streams and background work end before they are released. */
export interface Leaving {
  readonly owners: readonly string[]
  /** `change`: others stay, and requests for these wait for what takes their place. */
  readonly why: 'change' | 'shutdown'
  /** The change that they leave in; absent in a shutdown. */
  readonly change?: Change
}

/** A record change inside its transaction, once it is written. */
export interface Written {
  readonly change: RecordChange
  /** Id of the event that tells of it; set by the tap that emits one. */
  event?: string
}

/** A request at the door, before anything of it is believed. */
export interface Incoming {
  /** `req_` and 16 hex. */
  readonly id: string
  readonly door: Door
  readonly method: string
  /** Path and query as they were sent. */
  readonly url: string
  /** By lower-case names. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Of the other end of a TCP connection, which may be a proxy; trust goes by the door, never by this. */
  readonly remoteAddress: string | undefined
  /** The `net.Socket` that it came over; nothing for what is injected, and once it is over. */
  readonly connection?: object | undefined
}

/** A request whose caller is known. */
export interface Identified extends Incoming {
  readonly actor: Actor
  /** From now on its actor says that it acts for somebody else: for a tap of `admit` to which that was proven. */
  actFor(whom: Party): void
  /** From now on its handler is called by this: for a tap of `admit` that gives what it does an asynchronous context. */
  callBy(caller: <T>(handle: () => T) => T): void
}

/** Hands on a reply as it is to be sent; throws for one that is not as its route declares it. */
export type ReplyCheck = <R extends object>(route: Route, reply: R) => R

/** A body as `JSON.stringify` has it. */
export type Encode = (body: unknown) => string | Readable

/** A request that changed something and is about to be answered. */
export interface Handled {
  readonly id: string
  readonly actor: Actor
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
  /** The body of the reply, before it is encoded; absent where it has none or is a stream. */
  readonly body?: unknown
}

/** A request that is over: answered, refused, or left by its caller. */
export interface Exchange extends Incoming {
  /** Path template of its route, and the plugin that serves it; absent where no route matched. */
  readonly path?: string
  readonly owner?: string
  /** Absent where nobody was identified. */
  readonly actor?: Actor
  /** Absent where the caller went before the reply began. */
  readonly status?: number
  /** From its head to the end of the reply, for a stream as long as that was open. */
  readonly milliseconds: number
}

/**
 * Functions of a plugin on the hooks of the kernel; `self` is its service. The host taps them in plan order, and they go with
 * the plugin. What a failure means stands at each.
 */
export interface KernelTaps<S> {
  /** Refuses a plugin before anything that runs is released for it. A throw refuses. */
  readonly check?: (self: S, plugin: Plugin) => Promise<Fault | undefined>
  /** Replaces registered values in all that leaves; the first entry counts. A throw is the plugin's fault: it replaces nothing. */
  readonly redact?: (self: S) => readonly Redactor[]
  /** Kinds and settings of a change are set. A throw is the plugin's fault; the change goes on. */
  readonly known?: (self: S, change: Change) => void
  /** The routes of a change are served. A throw is the plugin's fault; the change goes on. */
  readonly published?: (self: S, change: Change) => Awaitable<void>
  /** The boot is over: opens a door. A fault, or a throw, stops the start. */
  readonly open?: (self: S) => Awaitable<Fault | undefined>
  /** The boot is over and TCP is served, where it is; the socket is opened when every tap is done. A throw is the plugin's fault. */
  readonly listening?: (self: S) => Awaitable<void>
  /** Boot reconcilers of a change have run. A throw is the plugin's fault; the change goes on. */
  readonly projected?: (self: S, change: Change) => Awaitable<void>
  /** Background loops of a change are started. A throw is the plugin's fault; the change goes on. */
  readonly running?: (self: S, change: Change) => Awaitable<void>
  /** A plugin changed state after the boot, or failed. A throw is reported. */
  readonly changed?: (self: S, name: string, state: PluginState) => void
  /** Plugins are about to be released. A throw is the plugin's fault; they are released all the same. */
  readonly leaving?: (self: S, leaving: Leaving) => Awaitable<void>
  /**
   * Says who makes a request over TCP, or refuses it; `undefined` leaves that to the next. Not asked about the Unix socket. A throw refuses.
   */
  readonly authenticate?: (self: S, incoming: Incoming) => Awaitable<Actor | Fault | undefined>
  /** Refuses a request for a route, before its body is read. A throw refuses. */
  readonly admit?: (self: S, incoming: Identified, route: Route) => Awaitable<Fault | undefined>
  /**
   * Asked about a request that no route matches, by its path. `true` has it routed again, once; a fault refuses it. For the plugin
   * that knows of routes which are not there yet. A throw refuses.
   */
  readonly unrouted?: (self: S, path: string) => Awaitable<Fault | true | undefined>
  /** Checks what handlers reply; the first entry counts, of a generation of routes. A throw of a check is the fault that is sent. */
  readonly reply?: (self: S) => readonly ReplyCheck[]
  /** Writes the body of a JSON reply; the first entry counts, of a generation of routes. A throw is the fault that is sent. */
  readonly encode?: (self: S) => readonly Encode[]
  /**
   * A handler succeeded at a route with another method than GET. What is committed here is on disk before the reply is sent. A
   * throw is the plugin's fault; the reply is sent all the same.
   */
  readonly handled?: (self: S, handled: Handled) => Awaitable<void>
  /** A request is over. A throw is logged. */
  readonly replied?: (self: S, exchange: Exchange) => void
  /** Refuses a record scope, inside the transaction. A throw refuses. */
  readonly scope?: (self: S, t: Tx, scope: RecordScope) => Fault | undefined
  /** Refuses a change of a record, inside the transaction, by the name of its kind; `*` is asked for every kind. A throw refuses. */
  readonly write?: Readonly<Record<string, (self: S, t: Tx, change: RecordChange) => Fault | undefined>>
  /** A record is written; its transaction is still open. A throw aborts the transaction. */
  readonly written?: (self: S, t: Tx, written: Written) => void
}
