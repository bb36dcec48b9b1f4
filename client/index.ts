/** `svc/client`: a typed method for each operation of the daemon's API document, over its Unix socket or over HTTP. */
import type { IncomingMessage } from 'node:http'
import { ApiError, apiError, ConnectionError } from './error.js'
import { exchange, readEvents, readText, resuming, type Target } from './exchange.js'
import { type Operations, routes } from './operations.js'
import type { ServerEvent } from './sse.js'
import { readMessages } from './web-socket.js'

export { ApiError, ConnectionError } from './error.js'
export type { Target } from './exchange.js'
export type { Operations } from './operations.js'

/** Options of every call. */
export interface CallOptions {
  readonly signal?: AbortSignal
}

/** Options of a stream: it begins after the event with this id. */
export interface StreamOptions extends CallOptions {
  readonly lastEventId?: string
}

/** One event of a stream; `data` of an event named `error` is the body of an error instead. */
export interface StreamEvent<T> {
  readonly id?: string
  readonly event?: string
  readonly data: T
}

type Arguments<I, O> = Record<never, never> extends I ? [input?: I & O] : [input: I & O]
type ReplyOf<R> = { [S in keyof R]: { readonly status: S; readonly body: R[S] } }[keyof R]

type Method<T> = T extends { input: infer I; stream: infer E }
  ? (...args: Arguments<I, StreamOptions>) => AsyncGenerator<StreamEvent<E>>
  : T extends { input: infer I; socket: infer M }
    ? (...args: Arguments<I, CallOptions>) => AsyncGenerator<M>
    : T extends { input: infer I; replies: infer R }
      ? (...args: Arguments<I, CallOptions>) => Promise<ReplyOf<R>>
      : never

/**
 * A method for each operation. It resolves with status and body of a reply that the document declares; an error reply is thrown as
 * {@link ApiError}, a missing reply as {@link ConnectionError}, an abort as the signal's reason. An interrupted stream is resumed
 * after its last id, for up to 15 seconds without the daemon. A WebSocket yields its messages until the daemon ends it; any other
 * end throws a ConnectionError `stream_cut`, and the caller has to open it again after its last message.
 */
export type Client = { readonly [N in keyof Operations]: Method<Operations[N]> }

/** Values of a call before they are typed. */
interface Input extends StreamOptions {
  readonly path?: Readonly<Record<string, unknown>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

interface Route {
  readonly method: string
  readonly path: string
  readonly stream?: true
  readonly socket?: true
}

/** A client of the daemon behind a Unix socket or a base URL. It holds no connection. */
export function createClient(target: Target): Client {
  return Object.fromEntries(
    Object.entries<Route>(routes).map(([name, route]) => {
      const use = route.stream ? follow : route.socket ? listen : call
      return [name, (input: Input = {}) => use(target, route, input)]
    }),
  ) as unknown as Client
}

async function call(target: Target, route: Route, input: Input): Promise<{ status: number; body: unknown }> {
  const response = await send(target, route, input, { accept: 'application/json' })
  const text = await readText(response).catch(cause => {
    throw unreachable(cause, input.signal)
  })
  const status = response.statusCode ?? 0
  if (text === '') return { status, body: undefined }
  if (!/\bjson\b/.test(response.headers['content-type'] ?? '')) return { status, body: text }
  try {
    return { status, body: JSON.parse(text) }
  } catch (cause) {
    throw new ConnectionError('protocol', `${route.method} ${route.path} was answered with broken JSON`, cause)
  }
}

function follow(target: Target, route: Route, input: Input): AsyncGenerator<ServerEvent> {
  const open = async function* (lastEventId: string | undefined) {
    const after = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
    yield* readEvents(await send(target, route, input, { accept: 'text/event-stream', ...after }), input.signal)
  }
  return resuming(open, {
    lastEventId: input.lastEventId,
    signal: input.signal,
    mayPass: error => error instanceof ConnectionError || (error instanceof ApiError && error.status === 503),
    givenUp: cause => new ConnectionError('stream_cut', 'the stream was cut and the daemon did not come back', cause),
  })
}

async function* listen(target: Target, { path }: Route, input: Input): AsyncGenerator<unknown> {
  const { path: names = {}, query = {}, headers = {}, signal } = input
  yield* readMessages(target, fill(path, names) + search(query), headers, signal)
}

async function send(
  target: Target,
  { method, path }: Route,
  { path: names = {}, query = {}, headers, body, signal }: Input,
  own: Readonly<Record<string, string>>,
): Promise<IncomingMessage> {
  const response = await exchange(target, {
    method,
    path: fill(path, names) + search(query),
    headers: { ...headers, ...own },
    body,
    signal,
  }).catch(cause => {
    throw cause instanceof TypeError ? cause : unreachable(cause, signal)
  })
  const status = response.statusCode ?? 0
  if (status >= 400) throw apiError(status, await readText(response), response.headers['retry-after'])
  return response
}

function fill(path: string, names: Readonly<Record<string, unknown>>): string {
  return path.replace(/\{([^}]+)\}/g, (_, name: string) => {
    const value = names[name]
    // An empty one would result in the path of another route.
    if (value === undefined || value === '') throw new TypeError(`the path parameter ${name} is missing`)
    return encodeURIComponent(String(value))
  })
}

function search(query: Readonly<Record<string, unknown>>): string {
  const pairs: [string, string][] = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value])
      .filter(one => one !== undefined)
      .map((one): [string, string] => [name, String(one)]),
  )
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`
}

function unreachable(cause: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason
  return new ConnectionError('unreachable', `no reply of the daemon: ${(cause as Error).message}`, cause)
}
