import type { Readable } from 'node:stream'
import type * as v from 'valibot'
import type { Awaitable } from './basics.js'
import type { Fault } from './errors.js'
import type { Actor } from './record.js'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** The parameter names of a path template: `id` of `/api/things/{id}`. */
export type PathNames<P extends string> = P extends `${string}{${infer N}}${infer Rest}` ? N | PathNames<Rest> : never

type Schema = v.GenericSchema
type Input<S> = S extends Schema ? v.InferInput<S> : undefined
type Output<S> = S extends Schema ? v.InferOutput<S> : undefined

/**
 * A body that is not decoded. `raw` passes the whole body as a Buffer; `stream` passes a Readable with backpressure to the
 * sender. `types` are content types without parameters; the wildcards `image/*` and `*\/*` are allowed.
 */
export interface BytesBody {
  readonly as: 'raw' | 'stream'
  readonly types: readonly string[]
}

/** A reply that is not JSON. Its content type is the first of `types` unless the reply sets the header. */
export interface BytesReply {
  readonly as: 'bytes'
  readonly types: readonly string[]
}

/** The body of a reply that is not JSON. An iterable is read with backpressure from the caller. */
export type Bytes = string | Uint8Array | AsyncIterable<string | Uint8Array>

/** Replies by status: a schema, bytes, or `null` for an empty body. The schema of 101 describes the messages of a WebSocket. */
export type Replies = { readonly [status: number]: Schema | BytesReply | null }

/** A body decoded by a schema, or the bytes as received. */
export type RouteBody = Schema | BytesBody

/** A part of a JSON reply that is encoded already: a value of `T`, encoded once for all readers of the same data. */
export class JsonText<T> {
  declare readonly of?: T

  constructor(readonly text: string) {}

  /** `JSON.stringify` of a structure that contains this value calls it. */
  toJSON(): unknown {
    return JSON.parse(this.text)
  }
}

/** A body whose members, or items of member lists, may be {@link JsonText}. */
type WithTexts<T> = {
  [K in keyof T]: T[K] | JsonText<T[K]> | (T[K] extends readonly (infer I)[] ? readonly JsonText<I>[] : never)
}

type BodyOf<B> = B extends BytesBody ? (B['as'] extends 'raw' ? Buffer : Readable) : Output<B>
/** The type of the body that a handler returns for a declared reply. */
export type ReplyOf<R> = R extends BytesReply ? Bytes : R extends Schema ? Input<R> | WithTexts<Input<R>> : undefined

/** Whether a body or reply is JSON, decoded or checked by a schema. */
export const isSchema = (declared: unknown): declared is Schema =>
  typeof declared === 'object' && declared !== null && !('as' in declared)

/** The listener that accepted a request. Trust depends on the listener, never on an address. */
export type Door = 'socket' | 'tcp' | 'inject'

/** A request after the guards, with everything decoded. */
export interface RouteRequest<P extends string, Q, B> {
  readonly params: { readonly [N in PathNames<P>]: string }
  readonly query: Output<Q>
  readonly body: BodyOf<B>
  /** Lower-case names; only headers that the route declares. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly actor: Actor
  readonly door: Door
  /** `req_` and 16 hex digits: the root of `cause` chains. */
  readonly id: string
  /** Aborts when the caller hangs up or the plugin leaves. */
  readonly signal: AbortSignal
}

/** One server-sent event; `data` is sent as JSON. */
export interface Frame {
  readonly id?: string
  readonly event?: string
  readonly data: unknown
}

/** One or more frames in wire format, encoded once for all readers of a stream (`encodeFrame`). */
export type EncodedFrame = Uint8Array

/** A reply whose body is a `text/event-stream`. It ends when the source ends, the caller hangs up or the plugin is unloaded. */
export interface StreamReply {
  readonly status: 200
  readonly stream: AsyncIterable<Frame | EncodedFrame>
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * The reply of a route that declares 101: a server-to-client WebSocket. Each item is sent as one JSON message that matches the
 * schema of 101. Any message from the client closes the channel.
 */
export interface SocketReply {
  readonly status: 101
  readonly stream: AsyncIterable<unknown>
  /** The last message of a channel that fails: the fault comes from the source, or is `slow_consumer`. */
  readonly failed: (fault: Fault) => unknown
}

/** A reply with a declared status and body. Handlers throw faults for error replies. */
export type RouteReply<R extends Replies> = {
  [S in Exclude<keyof R & number, 101>]: {
    readonly status: S
    readonly body: ReplyOf<R[S]>
    readonly headers?: Readonly<Record<string, string>>
  }
}[keyof R & number]

/**
 * Extra data of a route for its readers: the command line, the API document, the tools. Plain data, made by the makers of the kit
 * (`cli`, `describe`, `throws`, `tool`, `runsCode`) or by a plugin that reads a kind of its own; the kernel does not read it.
 */
export interface Annotation {
  /** Name of its kind with a major version, `cli@1`. */
  readonly of: string
  readonly data: unknown
  /** Names that the annotation claims for its plugin, such as `command things list`; a second claim of the same name is refused. */
  readonly claims?: string
}

/** A route as its author writes it. */
export interface RouteDefinition<
  S,
  P extends string,
  Q extends Schema | undefined,
  B extends RouteBody | undefined,
  R extends Replies,
> {
  readonly method: Method
  /** `/api/things/{id}`; parameters are typed from it. */
  readonly path: P
  readonly summary: string
  readonly query?: Q
  readonly body?: B
  /** A missing body is accepted, and `body` is undefined. By default it is refused. */
  readonly bodyOptional?: boolean
  /** Request headers that the route reads, by documented name. */
  readonly headers?: Readonly<Record<string, { readonly required: boolean }>>
  readonly replies: R
  /** Content type of the 2xx reply; default application/json. */
  readonly contentType?: string
  /** Error body of a route that a specification gives another shape than `{ error, code, details }`. */
  readonly faults?: { readonly reply: Schema | BytesReply; readonly body: (fault: Fault) => unknown }
  /**
   * Schema of each {@link Frame} of an event stream. A route whose `contentType` is `text/event-stream` always streams; another
   * streams to clients whose `Accept` header names that type.
   */
  readonly frames?: Schema
  /** Status of a query or body that does not match its schema; default 400. */
  readonly invalid?: 400 | 422
  /** Maximum bytes of a body, counted while a stream arrives; default 1 MiB. */
  readonly bodyLimit?: number
  /** Listeners that serve the route; default both. */
  readonly listeners?: 'both' | 'socket' | 'tcp'
  /** Refused over TCP when the listener is bound beyond loopback. */
  readonly privileged?: boolean
  /** Unauthenticated callers are served as {@link anonymous}. The route authenticates them itself, for example by a signature. */
  readonly public?: boolean
  /** Origins of confined callers that the route serves; see {@link Actor}. */
  readonly origins?: readonly string[]
  /** A GET that accepts cross-site navigation (a redirect after a login). It changes nothing without a secret from its caller. */
  readonly navigation?: boolean
  /**
   * `false`: the route changes nothing in the control plane, or events and journals record the change. By default every route but
   * GET writes an audit entry.
   */
  readonly audited?: false
  /** Serves while the disk is full, because it stops or frees something. GET routes always do. */
  readonly essential?: boolean
  /**
   * The reply shows only data that transactions of the handler have read or written, and the handler awaits them. By default a
   * reply also waits for the transactions of other requests, because it may show their changes.
   */
  readonly durable?: boolean
  /**
   * The route shows or stops running parts of the daemon. `admit` calls no drop-in for the operator's requests to it over the Unix
   * socket: a drop-in whose tap fails or refuses must not keep the operator from disabling it.
   */
  readonly recovery?: boolean
  readonly with?: readonly Annotation[] | undefined
  /** Runs before the body is validated, for refusals that take precedence over an invalid body. */
  readonly before?: (
    service: S,
    request: { readonly params: { readonly [N in PathNames<P>]: string }; readonly actor: Actor },
  ) => Awaitable<void>
  readonly handle: (service: S, request: RouteRequest<P, Q, B>) => Awaitable<RouteReply<R> | StreamReply | SocketReply>
}

/** A route with its types erased, as the registry holds it. */
export interface Route<S = unknown>
  extends Omit<RouteDefinition<S, string, Schema | undefined, RouteBody | undefined, Replies>, 'handle' | 'before'> {
  readonly before?: (service: S, request: never) => Awaitable<void>
  readonly handle: (service: S, request: never) => Awaitable<unknown>
}

/**
 * Constructor of routes served by a service of type `S`: `const route = routeOf<ThingsService>()`.
 * @param shared annotations of every route that it makes; a route that has one of the same kind keeps its own in their place
 */
export function routeOf<S>(...shared: readonly Annotation[]) {
  return <
    const P extends string,
    R extends Replies,
    Q extends Schema | undefined = undefined,
    B extends RouteBody | undefined = undefined,
  >(
    definition: RouteDefinition<S, P, Q, B, R>,
  ): Route<S> => {
    const { with: own = [] } = definition
    const others = shared.filter(({ of }) => !own.some(annotation => annotation.of === of))
    return {
      ...definition,
      ...(others.length + own.length > 0 && { with: [...others, ...own] }),
    } as unknown as Route<S>
  }
}

/** Constructors of common replies. */
export const ok = <B>(body: B, headers: Readonly<Record<string, string>> = {}) => ({
  status: 200 as const,
  body,
  headers,
})
/** 201: the created thing. */
export const created = <B>(body: B) => ({ status: 201 as const, body })
/** 202: the work goes on after the reply. */
export const accepted = <B>(body: B) => ({ status: 202 as const, body })
/** 204: done, without a body. */
export const noContent = () => ({ status: 204 as const, body: undefined })
/** 101: the connection becomes a channel. */
export const channelled = (reply: Omit<SocketReply, 'status'>): SocketReply => ({ status: 101, ...reply })
/** 200: an event stream, which lasts until its source or its reader ends. */
export const streamed = (stream: StreamReply['stream'], headers = {}): StreamReply => ({ status: 200, stream, headers })

/** Operation id of a route, derived from method and path alone: `getThingsByIdParts`. */
export function operationId({ method, path }: Pick<Route, 'method' | 'path'>): string {
  const words = path
    .replace(/^\/api\//, '')
    .replaceAll('{', 'by_')
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
  return method.toLowerCase() + words.map(word => word[0]?.toUpperCase() + word.slice(1)).join('')
}
