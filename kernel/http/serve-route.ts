import { validateHeaderValue } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { Awaitable } from '../contract/awaitable.js'
import type { BoundRoute } from '../contract/bound.js'
import { faultOf, KernelErrors } from '../contract/errors.js'
import { type Bytes, isSchema, type Route, type SocketReply, type StreamReply } from '../contract/route.js'
import type { Call } from './admission.js'
import type { Arrival } from './arrival.js'
import { bytesHeaders, bytesPayload } from './bytes-reply.js'
import { checked, checkReply, type PlainReply } from './check-reply.js'
import { decodeBody, decodeHeaders, decodeQuery } from './decode.js'
import { errorBody, JSON_TYPE } from './fault-reply.js'
import type { GenerationContext } from './generation.js'
import { jsonPayload } from './json-payload.js'
import { EVENT_STREAM, eventWire, type Wire } from './streams.js'
import { channelWire, refuseHandshake } from './web-socket.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** Of a request for a route of a plugin, once it is let in. */
    call: Call | null
    arrival: Arrival
  }
}

/** Serves one route: what is refused before the body is read, then the handler between what comes in and what goes out. */
export function serveRoute(
  app: FastifyInstance,
  bound: BoundRoute,
  context: GenerationContext,
  onRequest: onRequestHookHandler,
): void {
  const { owner, route, self } = bound
  app.route({
    method: route.method,
    url: route.path.replace(/\{([^}]+)\}/g, ':$1'),
    ...(route.bodyLimit ? { bodyLimit: route.bodyLimit } : {}),
    onRequest,
    preParsing: async ({ arrival, params }, reply) => {
      refuseDoor(route, arrival, context)
      const asksForSocket = arrival.head !== undefined
      if (101 in route.replies && !asksForSocket) refuseHandshake(reply.raw)
      if (asksForSocket && !(101 in route.replies)) throw KernelErrors.invalid_request('this route is no WebSocket')
      // Also asked for what goes on then, for it makes the reserve available.
      const full = route.method === 'GET' ? undefined : await context.full()
      if (full && !route.essential) throw full
      await route.before?.(self, { params, actor: arrival.actor } as never)
    },
    handler: async (request, reply) => {
      const { arrival } = request
      const call = request.call as Call
      const body = request.body instanceof Readable ? request.body : undefined
      let leaveStreams: (() => void) | undefined
      let isLeaving = true
      try {
        if (call.reason) throw call.reason
        if (mayStream(route, request)) {
          leaveStreams = context.streams.enter(arrival.door)
          reply.raw.once('close', leaveStreams)
        }
        if (body) call.signal.addEventListener('abort', () => body.destroy(call.reason))
        const handled = route.handle(self, {
          params: request.params,
          query: decodeQuery(route, request.query),
          body: decodeBody(route, request.body),
          headers: decodeHeaders(route, request.headers),
          actor: arrival.actor,
          door: arrival.door,
          id: request.id,
          get signal() {
            return call.signal
          },
        } as never) as Awaitable<StreamReply | SocketReply | PlainReply>
        const result = await call.orLeaving(handled)
        if (body?.errored) throw body.errored
        if ('stream' in result) return await openStream(bound, result, call, leaveStreams, request, reply, context)
        if (context.checkReplies) checkReply(route, result)
        await context.durable(route.method === 'GET')
        for (const [name, value] of Object.entries(result.headers ?? {})) validateHeaderValue(name, value)
        reply.code(result.status)
        const declared = route.replies[result.status]
        if (declared && !isSchema(declared)) {
          reply.headers(bytesHeaders(declared, result.headers))
          const payload = bytesPayload(result.body as Bytes, call, error =>
            context.failed(owner, `${route.method} ${route.path}`, error),
          )
          isLeaving = !(payload instanceof Readable)
          return reply.send(payload)
        }
        for (const [name, value] of Object.entries(result.headers ?? {})) reply.header(name, value)
        if (route.contentType && result.status < 300) return reply.type(route.contentType).send(result.body)
        if (result.body === undefined) return reply.send()
        return reply.type(JSON_TYPE).send(jsonPayload(result.body))
      } catch (error) {
        // What a handler throws because it was told to stop is nobody's failure.
        const fault = faultOf(call.reason ?? error)
        call.abort(fault)
        throw fault
      } finally {
        // What of a body nobody reads is not waited for.
        if (body && !body.readableEnded) reply.header('connection', 'close')
        if (isLeaving) call.leave()
      }
    },
  })
}

function refuseDoor(route: Route, { door, headers }: Arrival, context: GenerationContext): void {
  if (door === 'inject') return
  if (route.listeners && route.listeners !== 'both' && route.listeners !== door) throw KernelErrors.route_not_found()
  if (route.privileged && door === 'tcp' && !context.isLocal(headers.host)) throw KernelErrors.privileged_only()
}

/** A route of streams alone, or one that gives a stream to those that accept one. */
function mayStream({ replies, frames, contentType }: Route, { headers }: FastifyRequest): boolean {
  if (101 in replies) return true
  return frames !== undefined && (contentType === EVENT_STREAM || headers.accept?.includes(EVENT_STREAM) === true)
}

async function openStream(
  { owner, route }: BoundRoute,
  result: StreamReply | SocketReply,
  call: Call,
  leaveStreams: (() => void) | undefined,
  { raw, arrival: { door, head } }: FastifyRequest,
  reply: FastifyReply,
  context: GenerationContext,
) {
  if (!leaveStreams) throw KernelErrors.reply_invalid(`${route.method} ${route.path} streams and declares no frames`)
  await context.durable(true)
  const isSocket = result.status === 101
  const wire: Wire<unknown> = isSocket ? await channelWire(raw, reply.raw, head) : eventWire(reply.raw, result.headers)
  if (isSocket) reply.raw.statusCode = 101
  reply.hijack()
  const failed = (error: unknown): unknown => {
    const fault = faultOf(error)
    if (fault.status >= 500) context.failed(owner, `stream ${route.path}`, fault.cause ?? fault)
    return isSocket ? result.failed(fault) : { event: 'error', data: errorBody(fault) }
  }
  const source = context.checkReplies ? checked(route, result) : result.stream
  // Not awaited: the stream belongs to the hub from here on, the handler is over.
  void context.streams.serve({ owner, door }, wire, source, failed).finally(() => {
    leaveStreams()
    call.abort(KernelErrors.unavailable('the stream is over'))
  })
  return reply
}
