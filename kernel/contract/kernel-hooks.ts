import type { Fault } from './errors.js'
import { gate, guard, type HookEntry, hookTable, notify, type OwnHook } from './hook.js'
import type { RecordScope } from './kind.js'
import type { Plugin, PluginState } from './plugin.js'
import { type Actor, isActor, type Party, type RecordChange } from './record.js'
import type { Door, Route } from './route.js'
import type { Tx } from './storage.js'

/** One change of the running plugins: a boot, or one plugin that is loaded, reloaded or unloaded. */
export interface Change {
  /** Whether the change is the boot. */
  readonly boot: boolean
  /** Names of the plugins that this change started. */
  readonly started: ReadonlySet<string>
  /** Fails a plugin and its dependents with this text; the rest of the change goes on. */
  fail(owner: string, error: string): void
}

/** Plugins that leave, dependents first. Their routes, streams and background work end before they are released. */
export interface Leaving {
  readonly owners: readonly string[]
  /** `change`: other plugins stay, and requests for the leaving ones wait for their successors. */
  readonly why: 'change' | 'shutdown'
  /** The change that they leave in; absent in a shutdown. */
  readonly change?: Change
}

/** A record change inside its transaction, after the write. */
export interface Written {
  readonly change: RecordChange
  /** Id of the event about it; set by the tap that emits one. */
  event?: string
}

/** A request at the door, before its caller is authenticated. */
export interface Incoming {
  /** `req_` and 16 hex. */
  readonly id: string
  readonly door: Door
  readonly method: string
  /** Path and query as sent. */
  readonly url: string
  /** Headers by lower-case name. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** Address of the peer of a TCP connection, which may be a proxy; trust depends on the door alone. */
  readonly remoteAddress: string | undefined
  /** The `net.Socket` of the request; absent for injected requests, and after the request has ended. */
  readonly connection?: object | undefined
}

/** A request with a known caller. */
export interface Identified extends Incoming {
  readonly actor: Actor
  /** Makes the actor act on behalf of another party: for a tap of `admit` that has proof of it. */
  actFor(whom: Party): void
  /** Wraps the handler in `caller`, inside the callers of earlier taps: for a tap of `admit` that surrounds the handler. */
  callBy(caller: Caller): void
}

/** Calls a handler and returns its result. The request has its parameters, query and body decoded. */
export type Caller = <T>(handle: () => T, input: Asked) => T

/** The decoded parts of a request. */
export interface Asked {
  readonly params: Readonly<Record<string, string>>
  readonly query?: unknown
  readonly body?: unknown
}

/** A request that may have changed something, before its reply is sent. */
export interface Handled {
  readonly id: string
  readonly actor: Actor
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
  /** The body of the reply, before it is encoded; absent for an empty body and for a stream. */
  readonly body?: unknown
}

/** A finished request: answered, refused, or abandoned by its caller. */
export interface Exchange extends Incoming {
  /** Path template of its route, and the plugin that serves it; absent where no route matched. */
  readonly path?: string
  readonly owner?: string
  /** Absent where no caller was identified. */
  readonly actor?: Actor
  /** Absent when the caller disconnected before the reply began. */
  readonly status?: number
  /** From its head to the end of the reply or stream. */
  readonly milliseconds: number
}

/** A synchronous notification. A tap that throws is reported; where the summary says so, the caller gets the error instead. */
export interface Announce<A extends readonly unknown[]> extends OwnHook<(...args: A) => void> {
  call(...args: A): void
}

const announce = <A extends readonly unknown[]>(name: string, summary: string): HookEntry<Announce<A>> => ({
  kind: 'announce',
  name,
  summary,
})

/** Deadline of a plugin's tap on a stage of the lifecycle, in milliseconds. The kernel's own taps bound their work themselves. */
const stage = { deadlineMs: 30_000 }
/** Deadline of a tap on a request. */
const request = { deadlineMs: 5000 }

const isTrue = (answer: unknown): answer is true => answer === true

/** All hooks of the kernel; each summary says what a failure of a tap means. */
export const kernelPoints = hookTable({
  check: gate<[plugin: Plugin]>(
    'check',
    'Before a plugin is loaded, while the plugins that it affects still run. A tap may refuse it. A throw refuses.',
    stage,
  ),
  known: announce<[change: Change]>(
    'known',
    'Kinds and settings of a change are registered. A throw counts as a fault of the plugin; the change continues.',
  ),
  published: notify<[change: Change]>(
    'published',
    'The routes of a change are served. A throw counts as a fault of the plugin; the change continues.',
    stage,
  ),
  open: gate<[]>('open', 'The boot has ended: a tap opens a listener. A fault or a throw aborts the start.', stage),
  projected: notify<[change: Change]>(
    'projected',
    'Boot reconcilers of a change have run. A throw counts as a fault of the plugin; the change continues.',
    stage,
  ),
  running: notify<[change: Change]>(
    'running',
    'Background loops of a change are started. A throw counts as a fault of the plugin; the change continues.',
    stage,
  ),
  changed: announce<[name: string, state: PluginState]>(
    'changed',
    'A plugin changed state after the boot, or failed. A throw is reported.',
  ),
  leaving: notify<[leaving: Leaving]>(
    'leaving',
    'Before plugins are released. A throw counts as a fault of the plugin; the plugins are released nevertheless.',
    stage,
  ),
  authenticate: gate<[incoming: Incoming], Actor>(
    'authenticate',
    'A request came over TCP. A tap identifies its caller, or refuses it; `undefined` leaves that to the next tap. Not called for the Unix socket. A throw refuses.',
    { ...request, isAnswer: isActor },
  ),
  admit: gate<[incoming: Identified, route: Route]>(
    'admit',
    'The caller of a request is authenticated, its body is not read yet. A tap may refuse it. A throw refuses.',
    request,
  ),
  unrouted: gate<[path: string], true>(
    'unrouted',
    'No route matches a request. `true` routes it again, once; a fault or a throw refuses it. For plugins whose routes are still being loaded.',
    // The tap waits for a plugin that is being loaded.
    { deadlineMs: 6000, isAnswer: isTrue },
  ),
  handled: notify<[handled: Handled]>(
    'handled',
    'A handler succeeded at a route with another method than GET. Data committed here is on disk before the reply is sent. A throw counts as a fault of the plugin; the reply is sent nevertheless.',
    request,
  ),
  replied: announce<[exchange: Exchange]>('replied', 'A request has ended. A throw is logged.'),
  scope: guard<[scope: RecordScope]>(
    'scope',
    'Before a record is bound to a scope, inside the transaction. A tap may refuse it. A throw refuses.',
  ),
  write: guard<[change: RecordChange]>(
    'write',
    'Before a record is changed, inside the transaction; taps name its kind, or `*` for every kind. A tap may refuse it. A throw refuses.',
  ),
  written: announce<[t: Tx, written: Written]>(
    'written',
    'A record is written; its transaction is still open. A throw aborts the transaction.',
  ),
})

type TapOf<C, S> =
  C extends OwnHook<infer F extends (...args: never[]) => unknown>
    ? (service: S, ...args: Parameters<F>) => ReturnType<F>
    : never

/**
 * Taps of a plugin on the hooks of the kernel, by the members of {@link kernelPoints}; `service` is its own service. The host registers
 * them in plan order, until the plugin is released.
 */
export type KernelTaps<S> = {
  readonly [K in Exclude<keyof typeof kernelPoints, 'write'>]?: (typeof kernelPoints)[K] extends HookEntry<infer C>
    ? TapOf<C, S>
    : never
} & { readonly write?: Readonly<Record<string, (service: S, t: Tx, change: RecordChange) => Fault | undefined>> }
