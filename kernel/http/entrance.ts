import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { BoundRoute } from '../contract/bound.js'
import { Fault, KernelErrors } from '../contract/errors.js'
import { isDropIn } from '../contract/plugin.js'
import { type Actor, anonymous, operatorAt } from '../contract/record.js'
import type { Admission, Call } from './admission.js'
import type { Carrier } from './carrier.js'
import { HttpErrors } from './errors.js'
import { headRefusal, requestRefusal } from './guards.js'
import type { Handler } from './listeners.js'
import { writeFault } from './reply.js'
import { Arrival, arrivalOf, type From } from './request.js'
import type { TransportOptions } from './transport.js'

/** Names the actor of an injected request; what comes through a listener is never looked at for it. */
export const ACTING = 'x-svc-acting'
/** Waited at by requests over TCP while the plugin that authenticates them is away; no plugin can be named so. */
export const AUTHENTICATOR = '(authenticator)'
/** Who calls a public route and is known to nobody. */
const PUBLIC: Actor = { ...anonymous, origin: 'http' }

type Done = (refused?: Error) => void
type Route = (request: IncomingMessage, response: ServerResponse) => void

/** What stands between the doors and the routes: who asks, what is refused by looking at it, who has to wait. */
export class Entrance {
  /** Who makes the requests that are being injected, by what they carry in the header {@link ACTING}. */
  readonly acting = new Map<string, Actor | undefined>()
  /** Sends what handlers stream: somebody by the token `Streams`. */
  carrier: Carrier | undefined
  /** The generation of routes that is current now; none before the first and behind the last. */
  route: Route | undefined

  constructor(
    private readonly options: TransportOptions,
    private readonly admission: Admission,
  ) {}

  /** Serves the requests of one listener. */
  handlerFor(from: From): Handler {
    return (door, request, response, upgrade) => {
      new Arrival(request, door, upgrade, from)
      this.#serve(request, response)
    }
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    if (this.route) this.route(request, response)
    else writeFault(response, KernelErrors.shutting_down(undefined, { retryAfter: 1 }))
  }

  /**
   * What stands before a route, or before what no route matches: the door, who asks, the guards, and then the plugin's own door,
   * where requests are counted. Callbacks where nothing waits: what is async costs a few turns of the queue in every request.
   */
  before(bound?: BoundRoute): onRequestHookHandler {
    const { hooks } = this.options
    return (request, reply, done) => {
      const { raw } = request
      const arrival = arrivalOf(raw) ?? this.#injected(raw)
      if (!arrival) return done(KernelErrors.identity_required('this request came through no door of the daemon'))
      arrival.id = request.id
      arrival.bound = bound
      request.arrival = arrival
      this.#watch(arrival, reply.raw)
      const cut = headRefusal(raw)
      if (cut) return done(cut)
      if (arrival.from.keeper && this.#waits(AUTHENTICATOR, request, reply, done)) return
      this.#identify(arrival, (unauthorized, known) => {
        const refused = unauthorized ?? this.#refusal(arrival)
        if (refused) return done(refused)
        const actor = known ?? (bound?.route.public ? PUBLIC : undefined)
        if (actor) arrival.identify(actor)
        const unknown = actor ? undefined : KernelErrors.identity_required()
        // Also for somebody unknown: the route that may come can be a public one.
        if (!bound) this.#routeLater(arrival, reply, late => done(unknown ?? late))
        else if (unknown) done(unknown)
        else if (!this.#waits(bound.owner, request, reply, done)) {
          request.call = this.#enter(bound.owner, arrival.actor, reply.raw)
          if (!hooks.admit.isUsed()) done()
          else this.#admit(arrival, bound, done)
        }
      })
    }
  }

  /** The operator's own request for a route of recovery asks no drop-in; only the plugins of the program know for whom a caller acts. */
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

  /** The Unix socket and `inject` are the operator's, whatever plugins say. At other doors they say who it is. */
  #identify(arrival: Arrival, done: (refused?: Fault, actor?: Actor) => unknown): unknown {
    const { headers, id, bound, from } = arrival
    const { authenticate } = this.options.hooks
    const { keeper, as } = from
    if (!keeper) return done(undefined, as ?? operatorAt(headers['user-agent']?.startsWith('svc/') ? 'cli' : 'uds', id))
    const tell = (answer?: Actor | Fault) => (answer instanceof Fault ? done(answer) : done(undefined, answer))
    if (!authenticate.isUsed()) return keeper.identify(arrival, bound?.route, tell)
    authenticate.askNow([arrival], answer => (answer ? tell(answer) : keeper.identify(arrival, bound?.route, tell)))
  }

  #refusal(arrival: Arrival): Fault | undefined {
    const { request, from, bound } = arrival
    return from.keeper?.refusal(arrival, bound?.route) ?? requestRefusal(request, bound?.route.body)
  }

  /** What carries the mark of a request that is being injected came through no listener: those are known by themselves. */
  #injected(request: IncomingMessage): Arrival | undefined {
    const key = String(request.headers[ACTING])
    return this.acting.has(key) ? new Arrival(request, 'inject', undefined, { as: this.acting.get(key) }) : undefined
  }

  /** Lets a request in, until its handler is done or its caller is gone. */
  #enter(owner: string, actor: Actor, response: ServerResponse): Call {
    const call = this.admission.enter(owner, actor)
    response.once('close', () => {
      // After the reply nobody is left to be told.
      if (!response.writableEnded) call.abort(KernelErrors.unavailable('the caller hung up'))
      call.leave()
    })
    return call
  }

  /** While the plugin is being replaced the request waits, and is then routed anew. */
  #waits(owner: string, { raw }: FastifyRequest, reply: FastifyReply, done: Done): boolean {
    if (!this.admission.mustWait(owner)) return false
    this.admission.wait(owner, reply.raw).then(
      () => this.#again(raw, reply),
      (late: Error) => done(owner === AUTHENTICATOR ? nobodyToAsk() : late),
    )
    return true
  }

  #again(request: IncomingMessage, reply: FastifyReply): void {
    reply.hijack()
    this.#serve(request, reply.raw)
  }

  /** A plugin may know of a route that is not there yet. It is asked before the body is read, and once at most. */
  #routeLater(arrival: Arrival, reply: FastifyReply, done: Done): void {
    const { unrouted } = this.options.hooks
    const [path = ''] = arrival.url.split('?')
    const tell = (answer: Fault | true | undefined) => {
      if (answer !== true) return done(answer)
      arrival.isRoutedAgain = true
      this.#again(arrival.request, reply)
    }
    if (arrival.isRoutedAgain) done()
    else unrouted.askNow([path], tell)
  }

  /** Tells of the request when it is over, to those who want to know. */
  #watch(arrival: Arrival, response: ServerResponse): void {
    const { hooks, clock } = this.options
    if (arrival.isWatched || !hooks.replied.isUsed()) return
    arrival.isWatched = true
    const began = clock.monotonic()
    const over = arrival.upgrade ? arrival.request.socket : response
    over.once('close', () => hooks.replied.call(arrival.exchange(response, clock.monotonic() - began)))
  }
}

const nobodyToAsk = () =>
  HttpErrors.reloading('the plugin that says who asks over TCP does not run now; try again, or use the Unix socket', {
    retryAfter: 1,
    next: 'svc plugin list',
  })
