import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable, Transform } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import * as v from 'valibot'
import type { BoundRoute } from '../contract/bound.js'
import { type Fault, KernelErrors } from '../contract/errors.js'
import type { Caller, Exchange, Identified } from '../contract/kernel-hooks.js'
import type { Actor, Party } from '../contract/record.js'
import { type Door, isSchema, type Route } from '../contract/route.js'
import { issueText } from '../kit/issue-text.js'
import { HALVES, wellFormed } from '../kit/text.js'
import type { Call } from './admission.js'
import { HttpErrors } from './errors.js'
import type { Doorkeeper, Upgrade } from './listeners.js'
import type { Found } from './routing.js'

/** Maximum nesting of a JSON body, for the functions that recurse over a value. */
const JSON_DEPTH = 100

/** Key of the arrival in a request. The symbol is private to this file, so no input can set it. */
const mark = Symbol('arrival')
type Marked = IncomingMessage & { [mark]?: Arrival }

/** Undefined for a request that came through no door. */
export const arrivalOf = (request: IncomingMessage): Arrival | undefined => (request as Marked)[mark]

/** Origin of the requests of a listener: one actor for all of them, or a doorkeeper that authenticates each caller. */
export interface From {
  readonly as?: Actor | undefined
  readonly waits?: false | undefined
  readonly keeper?: Doorkeeper
}

/** A request that came through a door. It keeps its state when Fastify routes the request again. */
export class Arrival implements Identified {
  id = ''
  #actor: Actor | undefined
  /** Set when it is routed, before anything reads it. */
  declare found: Found
  /** Taps of `replied` are already scheduled. */
  isWatched = false
  /** A plugin has added its route, and it has been routed again. */
  isRoutedAgain = false
  readonly method: string
  /** Path and query. */
  readonly url: string

  constructor(
    readonly request: IncomingMessage,
    readonly door: Door,
    /** Only for a WebSocket request. */
    readonly upgrade?: Upgrade,
    readonly from: From = {},
  ) {
    ;(request as Marked)[mark] = this
    this.method = request.method ?? ''
    this.url = request.url ?? ''
  }

  /** The caller. @throws TypeError before {@link identify} */
  get actor(): Actor {
    if (!this.#actor) throw new TypeError('this request has no authenticated caller yet')
    return this.#actor
  }

  identify(actor: Actor): void {
    // Faster than a spread, which adds a member to its copy by a slow path.
    this.#actor = actor.cause === this.id ? actor : Object.assign({}, actor, { cause: this.id })
  }

  actFor(onBehalfOf: Party): void {
    this.#actor = { ...this.actor, onBehalfOf }
  }

  /** Calls the handler of its route. */
  call: Caller = handle => handle()

  callBy(caller: Caller): void {
    const { call } = this
    this.call = (handle, input) => call(() => caller(handle, input), input)
  }

  get bound(): BoundRoute | undefined {
    return this.found.route?.bound
  }

  get headers(): IncomingMessage['headers'] {
    return this.request.headers
  }

  get connection(): object | undefined {
    return this.door === 'inject' ? undefined : this.request.socket
  }

  get remoteAddress(): string | undefined {
    return this.request.socket.remoteAddress
  }

  /** The summary of the finished request, for taps of `replied`. */
  exchange({ headersSent, statusCode }: ServerResponse, milliseconds: number): Exchange {
    const { id, door, method, url, headers, remoteAddress, bound } = this
    return {
      id,
      door,
      method,
      url,
      headers,
      remoteAddress,
      milliseconds,
      ...(bound ? { path: bound.route.path, owner: bound.owner } : {}),
      ...(this.#actor ? { actor: this.#actor } : {}),
      // The response of a WebSocket is detached before it sends anything.
      ...(headersSent || statusCode === 101 ? { status: statusCode } : {}),
    }
  }
}

/** How the bodies of a route are read: as JSON, unless it declares bytes. */
export const bodyOf = ({ body }: Route): keyof typeof parsers => (body && !isSchema(body) ? body.as : 'json')

/** Body parsers. No refusal repeats the input. */
export const parsers = {
  /** An empty body is `undefined`. */
  json(app: FastifyInstance): void {
    const strict = app.getDefaultJsonParser('error', 'error')
    app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, bytes, done) => {
      if (!isUtf8(bytes)) return done(HttpErrors.malformed_json('the body is not valid UTF-8'))
      const text = bytes.toString()
      if (/^\s*$/.test(text)) return done(null, undefined)
      strict(request, text, (error, value) => {
        const deep = !error && isDeeper(value, JSON_DEPTH)
        const fault = deep ? HttpErrors.malformed_json(`the body is nested deeper than ${JSON_DEPTH} levels`) : error
        done(fault, !fault && HALVES.test(text) ? wellFormed(value) : value)
      })
    })
  },
  raw(app: FastifyInstance): void {
    app.addContentTypeParser<Buffer>('*', { parseAs: 'buffer' }, (_, bytes, done) => done(null, bytes))
  },
  stream(app: FastifyInstance): void {
    app.addContentTypeParser('*', (request, _, done) => {
      const limit = request.routeOptions.bodyLimit
      const tooLarge = Number(request.headers['content-length'] ?? 0) > limit
      done(tooLarge ? KernelErrors.payload_too_large() : null, tooLarge ? undefined : limited(request.raw, limit))
    })
  },
}

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some(member => isDeeper(member, levels - 1)))

/** A body as it arrives, no faster than it is read. It fails after `limit` bytes, or when the caller hangs up. */
function limited(request: IncomingMessage, limit: number): Readable {
  let left = limit
  const body = new Transform({
    transform(bytes: Buffer, _, done) {
      left -= bytes.length
      done(left < 0 ? KernelErrors.payload_too_large() : null, bytes)
    },
  })
  // The handler may have stopped reading: the error must not be unhandled.
  body.on('error', () => {})
  request.once('close', () => {
    if (!request.readableEnded) body.destroy(KernelErrors.unavailable('the caller disconnected'))
  })
  return request.pipe(body)
}

const callOf = Symbol('call')
/** One accessor for all requests: a closure for each would also make a hidden class for each, which costs more than all the rest. */
const SIGNAL = { enumerable: true, get: signalOf }
function signalOf(this: { readonly [callOf]: Call }) {
  return this[callOf].signal
}

/** Makes what the handler of a route is called with. The first of repeated headers counts. Throws the refusal. */
export function decoderOf(route: Route) {
  const decodeQuery = queryDecoder(route)
  const decodeBody = bodyDecoder(route)
  const names = Object.keys(route.headers ?? {}).map(name => name.toLowerCase())
  return (request: FastifyRequest, call: Call) => {
    const { actor, door, id, found } = request.arrival
    const query = decodeQuery(request.query)
    const body = decodeBody(request.body)
    const headers: Record<string, string | undefined> = {}
    for (const name of names) {
      const value = request.headers[name]
      if (value !== undefined) headers[name] = Array.isArray(value) ? value[0] : value
    }
    const input = { params: found.params, query, body, headers, actor, door, id, [callOf]: call }
    return Object.defineProperty(input, 'signal', SIGNAL)
  }
}

/** Unknown parameters are refused: a misspelt filter must not select everything. */
function queryDecoder(route: Route): (query: unknown) => unknown {
  const schema = route.query
  const known = schema && 'entries' in schema ? Object.keys(schema.entries as object) : undefined
  const others = known ? `known parameters: ${known.join(', ')}` : 'this route takes none'
  return query => {
    const unknown = schema && !known ? undefined : Object.keys(query as object).find(name => !known?.includes(name))
    if (unknown !== undefined) throw refusal(route, 'query', { [unknown]: `unknown parameter; ${others}` })
    return schema && decode(route, 'query', schema, query)
  }
}

/** The body decoder; its result is `undefined` for a route without a body. Bytes pass unchanged. */
function bodyDecoder(route: Route): (body: unknown) => unknown {
  const schema = route.body
  if (!schema) return () => undefined
  if (!isSchema(schema)) return body => body ?? (schema.as === 'raw' ? Buffer.alloc(0) : Readable.from([]))
  const malformed = (text: string) => refusal({ ...route, invalid: 400 }, 'body', { body: text })
  return body => {
    if (body === undefined && route.bodyOptional) return undefined
    if (body === undefined) throw malformed('missing; send JSON with content-type application/json')
    // The schema of an object would accept an array, as an object without members.
    if ('entries' in schema && Array.isArray(body)) throw malformed('an object is expected, not an array')
    return decode(route, 'body', schema, body)
  }
}

function decode(route: Route, part: 'query' | 'body', schema: v.GenericSchema, value: unknown): unknown {
  const decoded = v.safeParse(schema, value)
  if (decoded.success) return decoded.output
  const details: Record<string, string> = {}
  for (const issue of decoded.issues.slice(0, 20)) details[v.getDotPath(issue) ?? part] ??= issueText(issue)
  const isMalformed = part === 'body' && decoded.issues.some(cannotBeDecoded)
  throw refusal(isMalformed ? { ...route, invalid: 400 } : route, part, details)
}

/** A body that is not an object, or has an unknown member: always 400, even where wrong values are 422. */
const cannotBeDecoded = (issue: v.BaseIssue<unknown>) =>
  issue.type === 'strict_object' && (issue.expected === 'never' || issue.path === undefined)

function refusal(route: Route, part: 'query' | 'body', details: Record<string, string>): Fault {
  const [[path, text] = [part, 'invalid']] = Object.entries(details)
  const make = part === 'query' ? KernelErrors.invalid_query : KernelErrors.invalid_request
  const fault = make(`${path === part ? '' : `${part}: `}${path}: ${text}`, { details })
  return route.invalid === 422 ? HttpErrors.unprocessable(fault.message, { details }) : fault
}
