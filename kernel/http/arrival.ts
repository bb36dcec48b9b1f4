import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Actor, operator } from '../contract/actor.js'
import type { BoundRoute } from '../contract/bound.js'
import type { Exchange, Identified } from '../contract/kernel-hooks.js'
import type { Door } from '../contract/route.js'

/** The operator, at one of the kernel's own doors; `uds` also for what is injected on nobody's behalf. */
export function operatorAt(origin: 'uds' | 'http' | 'web', cause: string): Actor {
  const { kind, id, owner, source } = operator
  return { kind, id, owner, source, origin, cause }
}

/** Under which a request has its arrival: a symbol that only this file has, so nothing that is sent can stand there. */
const mark = Symbol('arrival')
type Marked = IncomingMessage & { [mark]?: Arrival }

/** Undefined for a request that came through no door. */
export const arrivalOf = (request: IncomingMessage): Arrival | undefined => (request as Marked)[mark]

/** A request on its way through a door; what is found out about it stays with it when it is routed again. */
export class Arrival implements Identified {
  id = ''
  #actor: Actor | undefined
  /** Plugins say who makes it. */
  isForPlugins = false
  /** The route that it is for. */
  bound: BoundRoute | undefined
  /** Those who hear of its end have been found. */
  isWatched = false

  constructor(
    readonly request: IncomingMessage,
    readonly door: Door,
    /** What came behind a request for a WebSocket; undefined for any other. */
    readonly head?: Buffer,
    /** Who makes a request that is injected. */
    readonly as?: Actor,
  ) {
    ;(request as Marked)[mark] = this
  }

  /** Who makes the request, once that is known. */
  get actor(): Actor {
    if (!this.#actor) throw new TypeError('nobody has said who makes this request')
    return this.#actor
  }

  identify(actor: Actor): void {
    this.#actor = actor.cause === this.id ? actor : { ...actor, cause: this.id }
  }

  /** What is told of it when it is over. */
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
      // The response of a WebSocket is taken from it before it sends anything.
      ...(headersSent || statusCode === 101 ? { status: statusCode } : {}),
    }
  }

  get method(): string {
    return this.request.method ?? ''
  }

  get url(): string {
    return this.request.url ?? ''
  }

  get headers(): IncomingMessage['headers'] {
    return this.request.headers
  }

  get remoteAddress(): string | undefined {
    return this.request.socket.remoteAddress
  }
}
