import type { IncomingMessage, ServerResponse } from 'node:http'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import plugin from 'fastify-plugin'
import { type Actor, anonymous } from '../contract/actor.js'
import type { BoundRoute } from '../contract/bound.js'
import type { Clock } from '../contract/clock.js'
import { Fault, KernelErrors } from '../contract/errors.js'
import type { Ids } from '../contract/ids.js'
import type { InjectReply, InjectRequest } from '../contract/inject.js'
import type { Route } from '../contract/route.js'
import type { KernelHooks } from '../hooks/kernel-hooks.js'
import type { Admission, Call } from './admission.js'
import type { Arrival } from './arrival.js'
import { AUTHENTICATOR } from './authentication.js'
import { bodyOf, readBodies } from './body.js'
import { sendFault, translated } from './fault-reply.js'
import { headRefusal } from './guards.js'
import { serveRoute } from './serve-route.js'
import type { StreamHub } from './streams.js'
import { routeLater, type Unrouted } from './unrouted.js'

/** What a generation needs of its transport. */
export interface GenerationContext {
  readonly ids: Ids
  readonly streams: StreamHub
  readonly admission: Admission
  /** Serves a request that waited, by what is the current generation then. */
  readonly again: (request: IncomingMessage, response: ServerResponse) => void
  /** Undefined for a request that came through no door. */
  readonly arrivalOf: (request: IncomingMessage) => Arrival | undefined
  /** Who makes the requests that are being injected, by what they carry in the header {@link ACTING}. */
  readonly acting: Map<string, Actor | undefined>
  /** What is refused by looking at the request. */
  readonly guard: (arrival: Arrival, route: Route | undefined) => Fault | undefined
  readonly hooks: KernelHooks
  readonly clock: Clock
  readonly unrouted: Unrouted['ask']
  /** Whether a Host header over TCP names this machine, and nobody else can reach it; privileged routes are refused elsewhere. */
  readonly isLocal: (host: string | undefined) => boolean
  /** What is read goes out on a full disk as well; what is done does not. */
  readonly durable: (reading: boolean) => Promise<void>
  /** Why nothing new is written now, when the disk is full. */
  readonly full: () => Promise<Fault | undefined>
  readonly failed: (owner: string, where: string, error: unknown) => void
  /** Replies are checked against their schema: tests and development. */
  readonly checkReplies: boolean
}

/** Names the actor of an injected request; what comes through a listener is never looked at for it. */
export const ACTING = 'x-svc-acting'

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
    for (const kind of ['json', 'raw', 'stream'] as const) {
      const mine = routes.filter(({ route }) => bodyOf(route) === kind)
      if (mine.length === 0) continue
      await app.register(async scope => {
        if (kind !== 'json') readBodies[kind](scope)
        for (const bound of mine) serveRoute(scope, bound, context, onRequest(bound, context))
      })
    }
    await app.ready()
    return new Generation(routes, app, context)
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    this.app.routing(request, response)
  }

  async inject(request: InjectRequest, as?: Actor): Promise<InjectReply> {
    const { ids, acting } = this.context
    const key = ids.id('act')
    const { body } = request
    const payload = body === undefined || body instanceof Uint8Array ? body : JSON.stringify(body)
    const typed = body === undefined ? {} : { 'content-type': 'application/json' }
    acting.set(key, as)
    try {
      const reply = await this.app.inject({
        method: request.method as 'GET',
        url: request.url,
        headers: { ...typed, ...request.headers, [ACTING]: key },
        ...(payload === undefined ? {} : { payload: payload as Buffer }),
      })
      return { status: reply.statusCode, headers: reply.headers, body: reply.body, bytes: reply.rawPayload }
    } finally {
      acting.delete(key)
    }
  }
}

function noCompiler(): never {
  throw new Error('a route has a schema of Fastify; schemas here are valibot, in the route definition')
}

/** Who calls a public route and is known to nobody. */
const PUBLIC: Actor = { ...anonymous, origin: 'http' }

function crossScopes(app: FastifyInstance, context: GenerationContext): void {
  readBodies.json(app)
  app.decorateRequest('arrival')
  app.decorateRequest('call', null)
  const onUnrouted = onRequest(undefined, context)
  app.addHook('onRequest', (request, reply, done) => (request.is404 ? onUnrouted(request, reply, done) : done()))
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

type OnRequest = (request: FastifyRequest, reply: FastifyReply, done: (refused?: Error) => void) => void

/**
 * What stands before a route: the door, who asks, the guards, and then the plugin's own door, where requests are counted. Callbacks
 * where nothing waits: what is async costs a few turns of the queue in every request.
 */
function onRequest(bound: BoundRoute | undefined, context: GenerationContext): OnRequest {
  const { hooks, admission } = context
  return (request, reply, done) => {
    const arrival = context.arrivalOf(request.raw)
    if (!arrival) return done(KernelErrors.identity_required('this request came through no door of the daemon'))
    arrival.id = request.id
    arrival.bound = bound
    request.arrival = arrival
    watch(arrival, reply, context)
    const cut = headRefusal(request.raw)
    if (cut) return done(cut)
    if (arrival.door === 'tcp' && waits(AUTHENTICATOR, request, reply, context, done)) return
    hooks.authenticate.askNow([arrival], answer => {
      if (answer instanceof Fault) return done(answer)
      const refused = context.guard(arrival, bound?.route)
      if (refused) return done(refused)
      const actor = answer ?? (bound?.route.public ? PUBLIC : undefined)
      if (actor) arrival.identify(actor)
      const unknown = actor ? undefined : KernelErrors.identity_required()
      // Also for somebody unknown: the route that may come can be a public one.
      if (!bound) routeLater(request, reply, context, late => done(unknown ?? late))
      else if (unknown) done(unknown)
      else if (!waits(bound.owner, request, reply, context, done)) {
        request.call = enter(bound.owner, reply, admission)
        if (hooks.admit.size === 0) done()
        else hooks.admit.askNow([arrival, bound.route], done)
      }
    })
  }
}

/** Lets a request in, until its handler is done or its caller is gone. */
function enter(owner: string, { raw }: FastifyReply, admission: Admission): Call {
  const call = admission.enter(owner)
  raw.once('close', () => {
    // After the reply nobody is left to be told.
    if (!raw.writableEnded) call.abort(KernelErrors.unavailable('the caller hung up'))
    call.leave()
  })
  return call
}

const nobodyToAsk = () =>
  KernelErrors.reloading('the plugin that says who asks over TCP does not run now; try again, or use the Unix socket', {
    retryAfter: 1,
    next: 'svc plugin list',
  })

/** While the plugin is being replaced the request waits, and is then routed anew. */
function waits(
  owner: string,
  { raw }: FastifyRequest,
  reply: FastifyReply,
  { admission, again }: GenerationContext,
  done: (fault?: Error) => void,
): boolean {
  if (!admission.mustWait(owner)) return false
  const goOn = () => {
    reply.hijack()
    again(raw, reply.raw)
  }
  admission.wait(owner, reply.raw).then(goOn, (late: Error) => done(owner === AUTHENTICATOR ? nobodyToAsk() : late))
  return true
}

/** Tells of the request when it is over, to those who want to know. */
function watch(arrival: Arrival, { raw }: FastifyReply, { hooks, clock }: GenerationContext): void {
  if (arrival.isWatched || hooks.replied.size === 0) return
  arrival.isWatched = true
  const began = clock.monotonic()
  const over = arrival.head ? arrival.request.socket : raw
  over.once('close', () => hooks.replied.call(arrival.exchange(raw, clock.monotonic() - began)))
}
