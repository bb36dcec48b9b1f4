import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { BoundRoute } from '../contract/bound.js'
import { Fault, KernelErrors } from '../contract/errors.js'
import type { InjectReply, InjectRequest } from '../contract/kernel-tokens.js'
import { isDropIn } from '../contract/plugin.js'
import { type Actor, anonymous, operatorAt } from '../contract/record.js'
import { type Admission, AUTHENTICATOR, type Call } from './admission.js'
import type { Carrier } from './carrier.js'
import { HttpErrors } from './errors.js'
import { headRefusal, requestRefusal } from './guards.js'
import type { Handler } from './listeners.js'
import { boot } from './pipelines.js'
import { writeFault } from './reply.js'
import { Arrival, arrivalOf, type From } from './request.js'
import type { Found, Routing } from './routing.js'
import type { PipelineContext } from './serve-route.js'
import type { TransportOptions } from './transport.js'

/** The actor of a public route whose caller is not identified. */
const PUBLIC: Actor = { ...anonymous, origin: 'http' }

type Done = (refused?: Error) => void

/** Loaded with the first injected request. */
let injected: typeof import('light-my-request').default | undefined

/** The steps between the doors and the routes: authentication, guards, and the wait for plugins under change. */
export class Entrance {
  /** Fastify instances by what they read; they boot at their first request and stay. */
  readonly #apps = new Map<string, FastifyInstance | Promise<FastifyInstance>>()
  /** Sends the streams of handlers; registered by the token `Streams`. */
  carrier: Carrier | undefined
  /** The current routes; undefined before the first and after the last. */
  routing: Routing | undefined
  readonly context: PipelineContext

  constructor(
    private readonly options: TransportOptions,
    private readonly admission: Admission,
  ) {
    this.context = { ...options, entrance: this }
  }

  /** The handler of one listener. */
  handlerFor(from: From): Handler {
    return (door, request, response, upgrade) => this.#serve(new Arrival(request, door, upgrade, from), response)
  }

  #serve(arrival: Arrival, response: ServerResponse): void {
    const { routing } = this
    if (!routing) {
      writeFault(response, KernelErrors.shutting_down(undefined, { retryAfter: 1 }))
      return
    }
    arrival.found = routing.find(arrival.method, arrival.url)
    const { request } = arrival
    const app = this.#app(arrival.found)
    const failed = () => writeFault(response, KernelErrors.internal())
    // A caller who hangs up meanwhile gives no further sign of it.
    if (app instanceof Promise) app.then(booted => response.destroyed || booted.routing(request, response), failed)
    else app.routing(request, response)
  }

  #app({ route }: Found): FastifyInstance | Promise<FastifyInstance> {
    const reading = route?.reading ?? ''
    const known = this.#apps.get(reading)
    if (known) return known
    const booting = boot(route, this.context)
    this.#apps.set(reading, booting)
    const failed = (error: unknown) => this.options.report({ owner: 'kernel', hook: 'pipeline', error })
    booting.then(app => this.#apps.set(reading, app), failed)
    return booting
  }

  /** Sends a request from inside of the daemon; see the token `Requests`. */
  async inject({ method, url, headers, body, waits }: InjectRequest, as?: Actor): Promise<InjectReply> {
    const target = DOTS.test(url) ? NO_PATH : url
    if (!this.routing) throw KernelErrors.shutting_down()
    injected ??= (await import('light-my-request')).default
    const serve = (request: IncomingMessage, response: ServerResponse) => {
      // The library has resolved the path and replaced some of its characters.
      request.url = target
      this.#serve(new Arrival(request, 'inject', undefined, { as, waits }), response)
    }
    const payload = body === undefined || body instanceof Uint8Array ? body : JSON.stringify(body)
    const typed = body === undefined ? {} : { 'content-type': 'application/json' }
    const reply = await injected(serve as never, {
      method: method as 'GET',
      url: target,
      headers: { ...typed, ...headers },
      ...(payload === undefined ? {} : { payload: payload as Buffer }),
    })
    return { status: reply.statusCode, headers: reply.headers, body: reply.body, bytes: reply.rawPayload }
  }

  /**
   * The steps before a route, or before the reply that no route matches: door, authentication, guards, and admission by the plugin.
   * Callbacks where nothing waits: a promise would cost every request a few turns of the queue.
   */
  readonly before = (request: FastifyRequest, reply: FastifyReply, done: Done) => {
    const { hooks } = this.options
    const { raw } = request
    const arrival = arrivalOf(raw)
    if (!arrival) return done(KernelErrors.identity_required('this request came through no listener of the daemon'))
    arrival.id = request.id
    request.arrival = arrival
    const { bound, from } = arrival
    this.#watch(arrival, reply.raw)
    const cut = headRefusal(raw)
    if (cut) return done(cut)
    if (from.keeper && this.#waits(AUTHENTICATOR, request, reply, done)) return
    this.#identify(arrival, (unauthorized, known) => {
      // Its plugin may have been replaced since it was routed.
      if (arrival.found.routing !== this.routing) return this.#again(arrival, reply)
      const refused =
        unauthorized ?? from.keeper?.refusal(arrival, bound?.route) ?? requestRefusal(raw, bound?.route.body)
      if (refused) return done(refused)
      const actor = known ?? (bound?.route.public ? PUBLIC : undefined)
      if (actor) arrival.identify(actor)
      const unknown = actor ? undefined : KernelErrors.identity_required()
      // A caller who is not identified waits too: the route that appears can be public.
      if (!bound) this.#routeLater(arrival, reply, late => done(unknown ?? late))
      else if (unknown) done(unknown)
      else if (!this.#waits(bound.owner, request, reply, done)) {
        request.call = this.#enter(bound.owner, arrival.actor, reply.raw)
        if (!hooks.admit.isUsed()) done()
        else this.#admit(arrival, bound, done)
      }
    })
  }

  /**
   * On a recovery route of the program over the socket no drop-in may refuse the operator. Only taps of the program set
   * `onBehalfOf`, so they run first; a request on behalf of another party then goes through the drop-ins too.
   */
  #admit(arrival: Arrival, { owner, route }: BoundRoute, done: Done): void {
    const { admit } = this.options.hooks
    const isRecovery = route.recovery && !isDropIn(owner) && arrival.door === 'socket'
    if (!isRecovery) {
      admit.askNow([arrival, route], done)
      return
    }
    const ask = (refused?: Fault) =>
      refused || !arrival.actor.onBehalfOf ? done(refused) : admit.askNow([arrival, route], done, 'drop-ins')
    admit.askNow([arrival, route], ask, 'program')
  }

  /**
   * Requests of the Unix socket and of `inject` are the operator's, and no plugin can change that. At other doors plugins
   * authenticate.
   */
  #identify(arrival: Arrival, done: (refused?: Fault, actor?: Actor) => unknown): unknown {
    const { headers, id, bound, from } = arrival
    const { authenticate } = this.options.hooks
    const { keeper, as } = from
    if (!keeper) return done(undefined, as ?? operatorAt(headers['user-agent']?.startsWith('svc/') ? 'cli' : 'uds', id))
    const tell = (answer?: Actor | Fault) => (answer instanceof Fault ? done(answer) : done(undefined, answer))
    if (!authenticate.isUsed()) return keeper.identify(arrival, bound?.route, tell)
    authenticate.askNow([arrival], answer => (answer ? tell(answer) : keeper.identify(arrival, bound?.route, tell)))
  }

  /** Admits a request until its handler is done or its caller hangs up. */
  #enter(owner: string, actor: Actor, response: ServerResponse): Call {
    const call = this.admission.enter(owner, actor)
    response.once('close', () => {
      // An abort after the reply would reach no reader.
      if (!response.writableEnded) call.abort(KernelErrors.unavailable('the caller disconnected'))
      call.leave()
    })
    return call
  }

  /** Delays the request while its plugin is under change; it is then routed anew. */
  #waits(owner: string, { arrival }: FastifyRequest, reply: FastifyReply, done: Done): boolean {
    if (!this.admission.mustWait(owner)) return false
    this.admission.wait(owner, reply.raw).then(
      () => this.#again(arrival, reply),
      (late: Error) => done(owner === AUTHENTICATOR ? nobodyToAsk() : late),
    )
    return true
  }

  #again(arrival: Arrival, reply: FastifyReply): void {
    reply.hijack()
    this.#serve(arrival, reply.raw)
  }

  /** A plugin may add the missing route. Its tap is called before the body is read, and only once for a request. */
  #routeLater(arrival: Arrival, reply: FastifyReply, done: Done): void {
    const [path = ''] = arrival.url.split('?')
    const tell = (answer: Fault | true | undefined) => {
      if (answer !== true) return done(answer)
      arrival.isRoutedAgain = true
      this.#again(arrival, reply)
    }
    if (arrival.isRoutedAgain) done()
    else this.options.hooks.unrouted.askNow([path], tell)
  }

  /** Calls `replied` when the request is over. Nothing is measured without taps. */
  #watch(arrival: Arrival, response: ServerResponse): void {
    const { hooks, clock } = this.options
    if (arrival.isWatched || !hooks.replied.isUsed()) return
    arrival.isWatched = true
    const began = clock.monotonic()
    const over = arrival.upgrade ? arrival.request.socket : response
    over.once('close', () => hooks.replied.call(arrival.exchange(response, clock.monotonic() - began)))
  }
}

/**
 * Path for URLs with dot segments. An id in a path that a plugin composed may be `..`, and resolving it would reach another route.
 */
const NO_PATH = '/no-path-with-dots'
const DOTS = /^[^?#]*\/(?:\.|%2e){1,2}(?:[/?#]|$)/i

const nobodyToAsk = () =>
  HttpErrors.reloading('no plugin authenticates TCP callers now; try again, or use the Unix socket', {
    retryAfter: 1,
    next: 'svc plugin list',
  })
