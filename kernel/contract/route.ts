import type { Readable } from 'node:stream'
import type * as v from 'valibot'
import type { Awaitable } from './basics.js'
import type { Fault } from './errors.js'
import type { Actor } from './record.js'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Names in braces of a path template. */
export type PathNames<P extends string> = P extends `${string}{${infer N}}${infer Rest}` ? N | PathNames<Rest> : never

type Schema = v.GenericSchema
type Input<S> = S extends Schema ? v.InferInput<S> : undefined
type Output<S> = S extends Schema ? v.InferOutput<S> : undefined

/**
 * A body that is not decoded: `raw` is handed over whole as a Buffer, `stream` as a Readable whose reading sets the pace of the
 * sender. Content types without parameters; `image/*` and `*\/*` stand for many.
 */
export interface BytesBody {
  readonly as: 'raw' | 'stream'
  readonly types: readonly string[]
}

/** A reply that is not JSON. Its content type is the first of these, or what its headers say. */
export interface BytesReply {
  readonly as: 'bytes'
  readonly types: readonly string[]
}

/** The body of such a reply; one that is iterated over is asked for more as fast as the caller reads. */
export type Bytes = string | Uint8Array | AsyncIterable<string | Uint8Array>

/** Replies by status: a schema, bytes, or `null` where the body is empty; 101 has that of the messages of a WebSocket. */
export type Replies = { readonly [status: number]: Schema | BytesReply | null }

/** JSON by its schema, or bytes as they came. */
export type RouteBody = Schema | BytesBody

/** A part of a JSON reply that is JSON already: a value of `T`, made once for all who read the same. */
export class JsonText<T> {
  declare readonly of?: T

  constructor(readonly text: string) {}

  /** For whoever writes it as part of something else. */
  toJSON(): unknown {
    return JSON.parse(this.text)
  }
}

/** A body with such parts in the place of members, or of what stands in the lists that are members. */
type WithTexts<T> = {
  [K in keyof T]: T[K] | JsonText<T[K]> | (T[K] extends readonly (infer I)[] ? readonly JsonText<I>[] : never)
}

type BodyOf<B> = B extends BytesBody ? (B['as'] extends 'raw' ? Buffer : Readable) : Output<B>
type ReplyOf<R> = R extends BytesReply ? Bytes : R extends Schema ? Input<R> | WithTexts<Input<R>> : undefined

/** Whether a body or reply is JSON, decoded or checked by a schema. */
export const isSchema = (declared: unknown): declared is Schema =>
  typeof declared === 'object' && declared !== null && !('as' in declared)

/** Which door a request came through; trust goes by it, never by an address. */
export type Door = 'socket' | 'tcp' | 'inject'

/** A request after the guards, with everything decoded. */
export interface RouteRequest<P extends string, Q, B> {
  readonly params: { readonly [N in PathNames<P>]: string }
  readonly query: Output<Q>
  readonly body: BodyOf<B>
  /** Lower-case names; only what the route declares. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly actor: Actor
  readonly door: Door
  /** `req_` and 16 hex: the root of `cause` chains. */
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

/** Frames as they go over the wire, one behind the other, made once for all who read the same (`encodeFrame`). */
export type EncodedFrame = Uint8Array

/** A reply whose body is an endless `text/event-stream`. It ends when the source ends, the caller or the plugin goes. */
export interface StreamReply {
  readonly status: 200
  readonly stream: AsyncIterable<Frame | EncodedFrame>
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * The reply of a route that declares 101: a WebSocket on which the daemon alone speaks, each item a message of JSON as the
 * schema of 101 has it. What a reader has to say it says by requests; a message of it ends the channel.
 */
export interface SocketReply {
  readonly status: 101
  readonly stream: AsyncIterable<unknown>
  /** How a fault is said on this channel, as its last message: one of the source, or `slow_consumer`. */
  readonly failed: (fault: Fault) => unknown
}

/** A reply that matches one of the declared ones; error replies are thrown as faults instead. */
export type RouteReply<R extends Replies> = {
  [S in Exclude<keyof R & number, 101>]: {
    readonly status: S
    readonly body: ReplyOf<R[S]>
    readonly headers?: Readonly<Record<string, string>>
  }
}[keyof R & number]

/** How the command line shows a reply to a person. Paths are dotted. */
export type CliView =
  | {
      readonly rows: string
      readonly columns: readonly CliColumn[]
      readonly empty?: string
      /** A list of texts that say why rows may be missing; they are shown as notes, and instead of `empty`. */
      readonly problems?: string
    }
  | {
      readonly item: string
      readonly fields: readonly CliColumn[]
      readonly table?: CliTable
      /** A list of texts about the item, outside of it; they are shown as notes. */
      readonly problems?: string
    }
  | { readonly text: string }

/** What of an item is shown as a table below its fields; nothing where it is empty. */
export type CliTable = { readonly path: string; readonly columns: readonly CliColumn[] }

/** Header and dotted path of a cell, and how it is written. */
export interface CliColumn {
  readonly header: string
  readonly path: string
  readonly as?: 'time' | 'ago' | 'duration' | 'bytes' | 'list'
  /** What people read in the place of a code. */
  readonly words?: Readonly<Record<string, string>>
  /** In a table that is too wide for the terminal it stands below its row, whole, instead of being cut. */
  readonly below?: true
}

/** A positional argument of the command made from a route. */
export interface CliArgument {
  /** Name of the parameter, query or top-level body member that it fills. */
  readonly name: string
  readonly in?: 'path' | 'query' | 'body'
  /** `path`: a file-system path, made absolute by the command line; `workspace`: so where it is a path. */
  readonly type?: 'text' | 'path' | 'workspace'
  readonly optional?: boolean
  readonly default?: string
  readonly summary?: string
  /** It may be given as an option as well. */
  readonly option?: true
}

/**
 * Members of a body that says for whom it is, everybody (`global`) or one workspace (`workspace`): when they are not
 * given, the caller's workspace fills them in.
 */
export interface CliScoped {
  readonly scope: string
  readonly workspace: string
  /** Without a workspace the project around the current directory becomes one; else the scope is global then. */
  readonly opens?: true
}

/** `--every 1h` for `{"mode":"every","interval":"1h"}`. A `time` without a zone is one of `--time-zone`, else the caller's. */
export interface CliShorthand {
  readonly option: string
  readonly member: string
  readonly value: Readonly<Record<string, string>>
  readonly type: 'text' | 'time'
  readonly summary: string
}

/** What the command line makes of a route: plain data, written into commands.json. */
export interface RouteCli {
  /** `things parts start` */
  readonly path: string
  /** Positional arguments; default: the path parameters in order. Other query and scalar body members become options. */
  readonly args?: readonly CliArgument[]
  /** Options that are not called as their member: `{ thing_name: 'thing' }`. */
  readonly options?: Readonly<Record<string, string>>
  /** Options that make a member of the body, `value` with what was given in the place of `$`; of one member only one. */
  readonly shorthands?: readonly CliShorthand[]
  /** The option or optional argument that is filled with the caller's workspace when it is not given. */
  readonly workspace?: string
  readonly scoped?: CliScoped
  /** Query members that are filled from the caller's environment when they are not given: `{ search_path: 'PATH' }`. */
  readonly environment?: Readonly<Record<string, string>>
  /** Path parameters that nobody should type: read from the reply of a GET route whose parameters are given. */
  readonly find?: Readonly<Record<string, { readonly path: string; readonly pick: string }>>
  /** A stream route that `--follow` reads instead; it takes the same path parameters. */
  readonly follow?: { readonly path: string; readonly query?: Readonly<Record<string, string>> }
  readonly view?: CliView
  /** Said after a success without a body, `{id}` and other parameters filled in. */
  readonly done?: string
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
  /** Section of the document and of the contract. */
  readonly area: string
  readonly query?: Q
  readonly body?: B
  /** A body may be left out; `body` is then undefined. Otherwise a missing body is refused. */
  readonly bodyOptional?: boolean
  /** Request headers that the route reads, by name as documented. */
  readonly headers?: Readonly<Record<string, { readonly required: boolean }>>
  readonly replies: R
  /** Statuses of errors that the document declares beside the common ones. */
  readonly errors?: readonly number[]
  /** Content type of the 2xx reply; default application/json. */
  readonly contentType?: string
  /** How the route tells of faults where that is not `{ error, code, details }`. */
  readonly faults?: { readonly reply: Schema | BytesReply; readonly body: (fault: Fault) => unknown }
  /**
   * Schema of each {@link Frame}; only a route that has it gives event streams: always when they are its content type,
   * else to those that accept them.
   */
  readonly frames?: Schema
  /** Status of a query or body that does not match its schema; default 400. */
  readonly invalid?: 400 | 422
  /** Bytes of a body, of a stream counted as they arrive; default 1 MiB. */
  readonly bodyLimit?: number
  /** Doors that serve the route; default both. */
  readonly listeners?: 'both' | 'socket' | 'tcp'
  /** Refused over TCP when the listener is bound beyond loopback. */
  readonly privileged?: boolean
  /** Also serves callers whom nobody knows, as {@link anonymous}: it tells by itself whom it serves, by a signature say. */
  readonly public?: boolean
  /** Origins of confined callers that it also serves; see {@link Actor}. */
  readonly origins?: readonly string[]
  /** A GET that a link or redirect of another site may lead a browser to. It changes nothing that its caller has no secret for. */
  readonly navigation?: boolean
  /** Whether it can make code run on this machine, or decides what may; default: every method but GET. */
  readonly runsCode?: boolean
  /**
   * `false`: what it does is no change of what the daemon is set up to do, or events and journals tell of it. A route of any other
   * method than GET leaves an entry in the audit otherwise.
   */
  readonly audited?: false
  /** Goes on while the disk is full: it stops or frees something. Reading always does. */
  readonly essential?: boolean
  /**
   * Shows what runs, or ends it: about the operator's own requests over the Unix socket `admit` asks no drop-in. Otherwise one whose tap
   * fails or refuses could keep the operator from disabling it.
   */
  readonly recovery?: boolean
  readonly cli?: RouteCli
  /** Runs before the body is validated, for refusals that come first. */
  readonly before?: (
    self: S,
    request: { readonly params: { readonly [N in PathNames<P>]: string }; readonly actor: Actor },
  ) => Awaitable<void>
  readonly handle: (self: S, request: RouteRequest<P, Q, B>) => Awaitable<RouteReply<R> | StreamReply | SocketReply>
}

/** A route with its types erased, as the registry holds it. */
export interface Route<S = unknown>
  extends Omit<RouteDefinition<S, string, Schema | undefined, RouteBody | undefined, Replies>, 'handle' | 'before'> {
  readonly before?: (self: S, request: never) => Awaitable<void>
  readonly handle: (self: S, request: never) => Awaitable<unknown>
}

/** Constructor of routes served by a service of type `S`: `const route = routeOf<ThingsService>()`. */
export function routeOf<S>() {
  return <
    const P extends string,
    R extends Replies,
    Q extends Schema | undefined = undefined,
    B extends RouteBody | undefined = undefined,
  >(
    definition: RouteDefinition<S, P, Q, B, R>,
  ): Route<S> => definition as unknown as Route<S>
}

/** Replies of the usual shapes. */
export const ok = <B>(body: B, headers: Readonly<Record<string, string>> = {}) => ({
  status: 200 as const,
  body,
  headers,
})
export const created = <B>(body: B) => ({ status: 201 as const, body })
export const accepted = <B>(body: B) => ({ status: 202 as const, body })
export const noContent = () => ({ status: 204 as const, body: undefined })
export const channelled = (reply: Omit<SocketReply, 'status'>): SocketReply => ({ status: 101, ...reply })
export const streamed = (stream: StreamReply['stream'], headers = {}): StreamReply => ({ status: 200, stream, headers })

/** Stable: derived from method and path alone, `getThingsByIdParts`. */
export function operationId({ method, path }: Pick<Route, 'method' | 'path'>): string {
  const words = path
    .replace(/^\/api\//, '')
    .replaceAll('{', 'by_')
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
  return method.toLowerCase() + words.map(word => word[0]?.toUpperCase() + word.slice(1)).join('')
}
