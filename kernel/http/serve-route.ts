import { validateHeaderValue } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { turn } from '../clock.js'
import type { Awaitable } from '../contract/basics.js'
import type { BoundRoute } from '../contract/bound.js'
import { faultOf, KernelErrors } from '../contract/errors.js'
import { type Bytes, isSchema, JsonText, type Route, type SocketReply, type StreamReply } from '../contract/route.js'
import type { Call } from './admission.js'
import type { Carry } from './carrier.js'
import type { Entrance } from './entrance.js'
import { HttpErrors } from './errors.js'
import { bytesHeaders, durableToRead, JSON_TYPE, refuseHandshake } from './reply.js'
import { checkReply, type PlainReply } from './reply-checks.js'
import { type Arrival, bodyOf, decoderOf } from './request.js'
import type { TransportOptions } from './transport.js'

/** Characters of a slice, which takes well below a millisecond to make. */
const SLICE = 64 * 1024
/** Minimum number of entries for a list to be written in slices. */
const LONG = 256

type Members = readonly [name: string, value: unknown][]

/** A reply of any route. */
type Reply = StreamReply | SocketReply | PlainReply

declare module 'fastify' {
  interface FastifyRequest {
    /** The admitted call of a plugin's route; null before admission. */
    call: Call | null
    arrival: Arrival
  }
}

/** Everything that serving a route needs from the transport. */
export type PipelineContext = TransportOptions & { readonly entrance: Entrance }

export type ServedRoute = ReturnType<typeof serveRoute>

/** Serves one route: refusals before the body is read, then decoding, the handler and its reply. */
export function serveRoute(bound: BoundRoute, context: PipelineContext) {
  const { owner, route, self: service } = bound
  const { entrance, db, disk, report, checkReplies } = context
  const { handled } = context.hooks
  const streams = 101 in route.replies || route.frames !== undefined
  const decoded = decoderOf(route)
  /** Passes the stream of a handler to the carrier. */
  const opened = async (result: StreamReply | SocketReply, call: Call, carry: Carry | undefined) => {
    if (!entrance.carrier) throw HttpErrors.reloading(undefined, { retryAfter: 1 })
    if (!carry)
      throw HttpErrors.reply_invalid(`${route.method} ${route.path} streams without a declaration of its frames`)
    await durableToRead(context)
    if (call.reason) throw call.reason
    const toFault = (error: unknown) => {
      const fault = faultOf(error)
      if (fault.status >= 500) report({ owner, hook: `stream ${route.path}`, error: fault.cause ?? fault })
      return context.redact.fault(fault)
    }
    await carry(result, toFault, () => call.abort(KernelErrors.unavailable('the stream has ended')))
  }
  return {
    bound,
    /** How its bodies are read, and a name for that. */
    kind: bodyOf(route),
    bodyLimit: route.bodyLimit,
    reading: `${bodyOf(route)} ${route.bodyLimit}`,
    before: async ({ arrival }: FastifyRequest, reply: FastifyReply) => {
      refuseDoor(route, arrival)
      if (101 in route.replies && !arrival.upgrade) refuseHandshake(reply.raw)
      if (arrival.upgrade && !(101 in route.replies))
        throw KernelErrors.invalid_request('this route is not a WebSocket')
      // Essential routes are never refused, but their check of the disk updates its state for the writes that follow.
      const full = route.method === 'GET' ? undefined : await disk.refusal()
      if (full && !route.essential) throw full
      await route.before?.(service, { params: arrival.found.params, actor: arrival.actor } as never)
    },
    handle: async (request: FastifyRequest, reply: FastifyReply) => {
      const { arrival } = request
      const call = request.call as Call
      const body = request.body instanceof Readable ? request.body : undefined
      let isLeaving = true
      try {
        if (call.reason) throw call.reason
        const asks = streams && { bound, arrival, response: reply.raw }
        const carry = asks ? entrance.carrier?.enter(asks) : undefined
        if (body) call.signal.addEventListener('abort', () => body.destroy(call.reason))
        const input = decoded(request, call)
        const working = arrival.call(() => route.handle(service, input as never), input)
        const answer = await call.orLeaving(working as Awaitable<Reply>)
        if (body?.errored) throw body.errored
        if (!answer) throw new TypeError('the handler returned no reply: return ok(body) or noContent()')
        const result = checkReplies ? checkReply(route, answer) : answer
        if (route.method !== 'GET' && handled.isUsed()) {
          const changed = { id: request.id, actor: arrival.actor, route, params: arrival.found.params }
          await handled.call('body' in result ? { ...changed, body: result.body } : changed)
        }
        if ('stream' in result) {
          await opened(result, call, carry)
          return reply.hijack()
        }
        if (!route.durable && arrival.from.waits !== false)
          await (route.method === 'GET' ? durableToRead(context) : db.durable())
        for (const [name, value] of Object.entries(result.headers ?? {})) validateHeaderValue(name, value)
        reply.code(result.status)
        const declared = route.replies[result.status]
        if (declared && !isSchema(declared)) {
          reply.headers(bytesHeaders(declared, result.headers))
          const payload = bytesPayload(result.body as Bytes, call, error =>
            report({ owner, hook: `${route.method} ${route.path}`, error }),
          )
          isLeaving = !(payload instanceof Readable)
          return reply.send(payload)
        }
        for (const [name, value] of Object.entries(result.headers ?? {})) reply.header(name, value)
        if (route.contentType && result.status < 300) return reply.type(route.contentType).send(result.body)
        if (result.body === undefined) return reply.send()
        return reply.type(JSON_TYPE).send(payloadOf(result.body))
      } catch (error) {
        // An error that follows from an abort is reported as the reason for the abort.
        const fault = faultOf(call.reason ?? error)
        call.abort(fault)
        throw fault
      } finally {
        // The connection closes instead of reading the rest of the body.
        if (body && !body.readableEnded) reply.header('connection', 'close')
        if (isLeaving) call.leave()
      }
    },
  }
}

const servedBy = ({ arrival }: FastifyRequest) => arrival.found.route as ServedRoute

/** The steps of Fastify that are those of the route, which the arrival names. */
export const byRoute = {
  preParsing: async (request: FastifyRequest, reply: FastifyReply) => servedBy(request).before(request, reply),
  handler: (request: FastifyRequest, reply: FastifyReply) => servedBy(request).handle(request, reply),
}

function refuseDoor(route: Route, { door, headers, actor, from: { keeper } }: Arrival): void {
  if (actor.confined && !route.public && !route.origins?.includes(actor.origin ?? '')) throw KernelErrors.forbidden()
  if (door === 'inject') return
  if (route.listeners && route.listeners !== 'both' && route.listeners !== door) throw KernelErrors.route_not_found()
  if (route.privileged && keeper && !keeper.isLocal(headers)) throw HttpErrors.privileged_only()
}

/**
 * The payload of a bytes reply. A source is read at the caller's pace and destroyed when the caller or the plugin leaves; the call
 * lasts until then. `failed` receives the errors of a source that was not aborted.
 */
function bytesPayload(body: Bytes, call: Call, failed: (error: unknown) => void): string | Buffer | Readable {
  if (typeof body === 'string') return body
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const source = body instanceof Readable ? body : Readable.from(body, { objectMode: false })
  call.signal.addEventListener('abort', () => source.destroy(call.reason))
  source.on('error', error => {
    if (call.reason === undefined) failed(error)
  })
  return source
}

/**
 * A reply as `JSON.stringify` writes it. One with a long list is written in slices, so that it neither blocks the event loop nor
 * fills the memory.
 */
function payloadOf(body: unknown): string | Readable {
  const members = typeof body === 'object' && body !== null && !Array.isArray(body) ? Object.entries(body) : []
  if (members.some(([, member]) => Array.isArray(member) && member.length >= LONG))
    return Readable.from(slices(members))
  return members.some(hasTexts) ? [...pieces(members)].join('') : JSON.stringify(body)
}

const hasTexts = ([, member]: Members[0]) => (Array.isArray(member) ? member[0] : member) instanceof JsonText

async function* slices(members: Members): AsyncGenerator<string> {
  let slice = ''
  for (const piece of pieces(members)) {
    slice += piece
    if (slice.length < SLICE) continue
    yield slice
    slice = ''
    await turn()
  }
  yield slice
}

function* pieces(members: Members): Generator<string> {
  let before = '{'
  for (const [name, member] of members) {
    const head = `${before}${JSON.stringify(name)}:`
    if (Array.isArray(member)) {
      yield `${head}[`
      for (const [i, item] of member.entries()) yield `${i > 0 ? ',' : ''}${text(item) ?? 'null'}`
      yield ']'
    } else {
      const value = text(member)
      if (value === undefined) continue
      yield head + value
    }
    before = ','
  }
  yield before === '{' ? '{}' : '}'
}

const text = (value: unknown): string | undefined => (value instanceof JsonText ? value.text : JSON.stringify(value))
