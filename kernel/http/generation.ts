import type { IncomingMessage, ServerResponse } from 'node:http'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import plugin from 'fastify-plugin'
import { type Actor, operator } from '../contract/actor.js'
import type { Awaitable } from '../contract/awaitable.js'
import type { BoundRoute } from '../contract/bound.js'
import { type Fault, faultOf, KernelErrors } from '../contract/errors.js'
import type { Ids } from '../contract/ids.js'
import type { InjectReply, InjectRequest } from '../contract/inject.js'
import type { Door, Route, SocketReply, StreamReply } from '../contract/route.js'
import type { Admission, Call } from './admission.js'
import { checked, checkReply, type PlainReply } from './check-reply.js'
import { decodeBody, decodeHeaders, decodeQuery } from './decode.js'
import { errorBody, translated } from './fault-reply.js'
import { readJson } from './json-body.js'
import { jsonPayload } from './json-payload.js'
import { EVENT_STREAM, eventWire, type StreamHub, type Wire } from './streams.js'
import { routeLater, type Unrouted } from './unrouted.js'
import { channelWire, refuseHandshake } from './web-socket.js'

/** What a generation needs of its transport. */
export interface GenerationContext {
  readonly ids: Ids
  readonly streams: StreamHub
  readonly admission: Admission
  /** Serves a request that waited, by what is the current generation then. */
  readonly again: (request: IncomingMessage, response: ServerResponse) => void
  readonly doorOf: (request: IncomingMessage) => Door
  /** What came behind a request for a WebSocket; undefined for any other. */
  readonly headOf: (request: IncomingMessage) => Buffer | undefined
  /** Who makes the requests that are being injected, by what they carry in the header {@link ACTING}. */
  readonly acting: Map<string, Actor>
  readonly guard: (request: IncomingMessage, door: Door) => Fault | undefined
  readonly unrouted: Unrouted['ask']
  /** Privileged routes are refused over TCP beyond loopback. */
  readonly privilegedOverTcp: () => boolean
  /** What is read goes out on a full disk as well; what is done does not. */
  readonly durable: (reading: boolean) => Promise<void>
  /** Why nothing new is written now, when the disk is full. */
  readonly full: () => Promise<Fault | undefined>
  readonly failed: (owner: string, where: string, error: unknown) => void
  /** Replies are checked against their schema: tests and development. */
  readonly checkReplies: boolean
}

/** Names the actor of an injected request; what comes through a listener is never looked at for it. */
const ACTING = 'x-svc-acting'

/**
 * One booted Fastify instance that routes and nothing more: it never listens; a change of plugins builds another one. It
 * holds no socket, timer or hook, so nobody closes it (a closing one would refuse requests in its own words): it is gone
 * when its last request is.
 */
export class Generation {
  private constructor(
    readonly routes: readonly BoundRoute[],
    private readonly app: FastifyInstance,
    private readonly context: GenerationContext,
  ) {}

  static async build(routes: readonly BoundRoute[], context: GenerationContext): Promise<Generation> {
    const app = fastify({
      logger: false,
      exposeHeadRoutes: false,
      requestIdHeader: false,
      genReqId: () => context.ids.id('req'),
      bodyLimit: 1024 * 1024,
      routerOptions: { maxParamLength: 5000, ignoreTrailingSlash: true },
      forceCloseConnections: false,
      // No schema is ever Fastify's: this keeps it from loading the compilers for them (ajv and more, 40 ms).
      schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
      frameworkErrors: (error, request, reply) =>
        sendFault(translated(error), request as FastifyRequest, reply as unknown as FastifyReply, context),
    })
    // The only thing that crosses the scopes of the plugins: errors, the guards of the door, how JSON is read.
    await app.register(plugin(async instance => crossScopes(instance, context), { name: 'kernel' }))
    const owners = new Map<string, BoundRoute[]>()
    for (const bound of routes) owners.set(bound.owner, [...(owners.get(bound.owner) ?? []), bound])
    for (const [owner, bounds] of owners) {
      await app.register(async scope => {
        admit(scope, owner, context)
        for (const bound of bounds) addRoute(scope, bound, context)
      })
    }
    await app.ready()
    return new Generation(routes, app, context)
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    this.app.routing(request, response)
  }

  async inject(request: InjectRequest, as: Actor = operator): Promise<InjectReply> {
    const { ids, acting } = this.context
    const key = ids.id('act')
    const typed = request.body === undefined ? {} : { 'content-type': 'application/json' }
    acting.set(key, as)
    try {
      const reply = await this.app.inject({
        method: request.method as 'GET',
        url: request.url,
        headers: { ...typed, ...request.headers, [ACTING]: key },
        ...(request.body === undefined ? {} : { payload: JSON.stringify(request.body) }),
      })
      return { status: reply.statusCode, headers: reply.headers, body: reply.body }
    } finally {
      acting.delete(key)
    }
  }
}

function noCompiler(): never {
  throw new Error('a route has a schema of Fastify; schemas here are valibot, in the route definition')
}

function crossScopes(app: FastifyInstance, context: GenerationContext): void {
  readJson(app)
  // Callbacks where nothing waits: what is async costs a few turns of the queue in every request.
  app.addHook('onRequest', (request, reply, done) => {
    const refused = context.guard(request.raw, context.doorOf(request.raw))
    refused || !request.is404 ? done(refused) : routeLater(request, reply, context, done)
  })
  app.setErrorHandler((error, request, reply) => {
    // A body that ends early makes the parser throw, which is the caller's doing and no plugin's.
    const fault = request.raw.readableAborted ? KernelErrors.unavailable('the caller hung up') : translated(error)
    return sendFault(fault, request, reply, context)
  })
  app.setNotFoundHandler((request, reply) =>
    sendFault(
      KernelErrors.route_not_found(`no route ${request.method} ${request.url.split('?')[0]?.slice(0, 200)}`),
      request,
      reply,
      context,
    ),
  )
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Of a request for a route of a plugin, once it is let in. */
    call: Call | null
  }
}

/** What stands before the routes of one plugin: requests wait here while it is being replaced, and are counted. */
function admit(scope: FastifyInstance, owner: string, { admission, again }: GenerationContext): void {
  scope.decorateRequest('call', null)
  scope.addHook('onRequest', (request, reply, done) => {
    if (admission.mustWait(owner)) {
      const goOn = () => {
        reply.hijack()
        again(request.raw, reply.raw)
      }
      admission.wait(owner, reply.raw).then(goOn, done)
      return
    }
    const call = admission.enter(owner)
    request.call = call
    reply.raw.once('close', () => {
      // After the reply nobody is left to be told.
      if (!reply.raw.writableEnded) call.abort(KernelErrors.unavailable('the caller hung up'))
      call.leave()
    })
    done()
  })
}

function addRoute(app: FastifyInstance, bound: BoundRoute, context: GenerationContext): void {
  const { owner, route, self } = bound
  app.route({
    method: route.method,
    url: route.path.replace(/\{([^}]+)\}/g, ':$1'),
    ...(route.bodyLimit ? { bodyLimit: route.bodyLimit } : {}),
    config: { owner },
    preParsing: async (request, reply) => {
      refuseDoor(route, context.doorOf(request.raw), context)
      const asksForSocket = context.headOf(request.raw) !== undefined
      if (101 in route.replies && !asksForSocket) refuseHandshake(reply.raw)
      if (asksForSocket && !(101 in route.replies)) throw KernelErrors.invalid_request('this route is no WebSocket')
      // Also asked for what goes on then, for it makes the reserve available.
      const full = route.method === 'GET' ? undefined : await context.full()
      if (full && !route.essential) throw full
      await route.before?.(self, { params: request.params, actor: actorOf(request, context) } as never)
    },
    handler: async (request, reply) => {
      const call = request.call ?? context.admission.enter(owner)
      let leaveStreams: (() => void) | undefined
      try {
        if (call.reason) throw call.reason
        if (mayStream(route, request)) {
          leaveStreams = context.streams.enter(context.doorOf(request.raw))
          reply.raw.once('close', leaveStreams)
        }
        const handled = route.handle(self, {
          params: request.params,
          query: decodeQuery(route, request.query),
          body: decodeBody(route, request.body),
          headers: decodeHeaders(route, request.headers),
          actor: actorOf(request, context),
          door: context.doorOf(request.raw),
          id: request.id,
          get signal() {
            return call.signal
          },
        } as never) as Awaitable<StreamReply | SocketReply | PlainReply>
        const result = await call.orLeaving(handled)
        if ('stream' in result) return await openStream(bound, result, call, leaveStreams, request, reply, context)
        if (context.checkReplies) checkReply(route, result)
        await context.durable(route.method === 'GET')
        reply.code(result.status)
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
        call.leave()
      }
    },
  })
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
  { raw, routeOptions }: FastifyRequest,
  reply: FastifyReply,
  context: GenerationContext,
) {
  if (!leaveStreams) throw KernelErrors.reply_invalid(`${route.method} ${route.path} streams and declares no frames`)
  await context.durable(true)
  const isSocket = result.status === 101
  const wire: Wire<unknown> = isSocket
    ? await channelWire(raw, reply.raw, context.headOf(raw))
    : eventWire(reply.raw, result.headers)
  reply.hijack()
  const failed = (error: unknown): unknown => {
    const fault = faultOf(error)
    if (fault.status >= 500) context.failed(owner, `stream ${routeOptions.url}`, fault.cause ?? fault)
    return isSocket ? result.failed(fault) : { event: 'error', data: errorBody(fault) }
  }
  const source = context.checkReplies ? checked(route, result) : result.stream
  // Not awaited: the stream belongs to the hub from here on, the handler is over.
  void context.streams.serve({ owner, door: context.doorOf(raw) }, wire, source, failed).finally(() => {
    leaveStreams()
    call.abort(KernelErrors.unavailable('the stream is over'))
  })
  return reply
}

function actorOf({ id: cause, raw, headers }: FastifyRequest, { doorOf, acting }: GenerationContext): Actor {
  const as = doorOf(raw) === 'inject' ? acting.get(String(headers[ACTING])) : undefined
  if (as) return { ...as, cause }
  return { kind: operator.kind, id: operator.id, owner: operator.owner, source: operator.source, cause }
}

function refuseDoor(route: Route, door: Door, context: GenerationContext): void {
  if (door === 'inject') return
  if (route.listeners && route.listeners !== 'both' && route.listeners !== door) throw KernelErrors.route_not_found()
  if (route.privileged && door === 'tcp' && !context.privilegedOverTcp()) throw KernelErrors.privileged_only()
}

const JSON_TYPE = 'application/json; charset=utf-8'

async function sendFault(fault: Fault, request: FastifyRequest, reply: FastifyReply, context: GenerationContext) {
  const owner = (request.routeOptions.config as { owner?: string } | undefined)?.owner ?? 'kernel'
  if (fault.status >= 500 && fault.cause !== undefined)
    context.failed(owner, `${request.method} ${request.routeOptions.url}`, fault.cause)
  // A refusal can tell of a state that is not on the disk yet; a failed store must not keep it back.
  await context.durable(true).catch(() => {})
  if (fault.retryAfter !== undefined) reply.header('retry-after', String(fault.retryAfter))
  return reply
    .code(fault.status)
    .type(JSON_TYPE)
    .send(JSON.stringify(errorBody(fault)))
}
