import type { Server } from 'node:http'
import { turn } from '../clock.js'
import type { Clock, Ids, Scope } from '../contract/basics.js'
import { Collected } from '../contract/bound.js'
import { type Fault, faultOf, messageOf } from '../contract/errors.js'
import type { Report, Tapper } from '../contract/hook.js'
import type { InjectReply, InjectRequest } from '../contract/kernel-tokens.js'
import type { Actor } from '../contract/record.js'
import type { Door, Route } from '../contract/route.js'
import type { Db, DiskRoom } from '../contract/storage.js'
import { collected, type KernelHooks, kernelTapper } from '../hooks/kernel-hooks.js'
import type { Redaction } from '../redaction.js'
import { Admission, AUTHENTICATOR } from './admission.js'
import type { Carrier } from './carrier.js'
import { Entrance } from './entrance.js'
import {
  type InheritedSockets,
  LIMITS,
  type Limits,
  Listener,
  type ListenerInfo,
  type ListenersApi,
  type Serve,
  type ServerFollower,
} from './listeners.js'
import { Routing, routerOf } from './routing.js'

/** Milliseconds until running handlers are aborted when their plugin leaves, and open requests when their door closes. */
const DRAIN_MS = 5000
const DOOR_MS = 2000

export interface TransportOptions {
  readonly clock: Clock
  readonly ids: Ids
  readonly hooks: KernelHooks
  /** The scope of its taps. */
  readonly scope: Scope
  /** Removes secrets from faults before callers see them. */
  readonly redact: Pick<Redaction, 'fault'>
  readonly report: Report
  readonly db: Pick<Db, 'durable'>
  readonly disk: Pick<DiskRoom, 'refusal'>
  /** Checks replies against their routes; see `checkReply`. */
  readonly checkReplies?: boolean | undefined
  readonly inherited?: InheritedSockets | undefined
}

/** The listeners and the current routing. Publishing makes a routing beside the current one and swaps them. */
export class Transport {
  readonly #admission: Admission
  readonly #entrance: Entrance
  readonly #listeners = new Set<Listener>()
  /** Sockets with a fixed actor. */
  readonly #others = new Set<Listener>()
  readonly #servers = new Map<Server, [Serve, Door]>()
  readonly #followers = new Set<ServerFollower>()
  #hasEnded = false

  constructor(readonly options: TransportOptions) {
    this.#admission = new Admission(options.clock, options.hooks.authenticate)
    this.#entrance = new Entrance(options, this.#admission)
    this.#attach(kernelTapper(options.scope))
  }

  get carrier(): Carrier | undefined {
    return this.#entrance.carrier
  }

  /** See the token `Streams`. */
  carryBy(carrier: Carrier): () => void {
    this.#entrance.carrier = carrier
    return () => {
      if (this.carrier === carrier) this.#entrance.carrier = undefined
    }
  }

  listening(): ListenerInfo[] {
    return [...this.#listeners].map(listener => listener.info)
  }

  /**
   * Swaps in the routes of all plugins at this moment, and ends the holds on them. Rejects when a route cannot be served; the
   * current routes and the holds then stay.
   */
  async publish(): Promise<void> {
    const { hooks } = this.options
    const routes = collected(hooks, Collected.routes).map(({ entry }) => entry)
    if (this.#hasEnded) return
    this.#entrance.routing = new Routing(routes, this.#entrance.context, this.#entrance.routing)
    this.#admission.open()
    // Requests come before the next change.
    await turn()
  }

  /**
   * Requests for routes of these plugins wait until they are published, at most five seconds, then 503. All requests over TCP wait
   * while one of the plugins authenticates.
   */
  hold(owners: readonly string[]): void {
    const authenticates = owners.some(owner => this.options.hooks.authenticate.has(owner))
    this.#admission.hold(authenticates ? [...owners, AUTHENTICATOR] : owners)
  }

  /** Resolves when no handler of the plugin runs. After `ms` the remaining ones are aborted and answered with 503. */
  drain(owner: string, ms: number): Promise<void> {
    return this.#admission.drain(owner, ms)
  }

  async listenSocket(path: string): Promise<void> {
    const { inherited } = this.options
    this.#listeners.add(await Listener.socket(path, this.#entrance.handlerFor({}), this.#limits, inherited?.socket))
  }

  /** Opens a further socket, whose requests have this actor; see the token `Sockets`. */
  async listenAs(path: string, as: Actor): Promise<() => Promise<void>> {
    const listener = await Listener.socket(path, this.#entrance.handlerFor({ as }), this.#limits)
    this.#others.add(listener)
    return () => this.#close(listener)
  }

  /** See the token `Servers`. */
  follow(follower: ServerFollower): () => void {
    for (const [server, how] of this.#servers) follower(server, ...how)
    this.#followers.add(follower)
    return () => this.#followers.delete(follower)
  }

  /** See the token `Listeners`. */
  readonly listeners: ListenersApi = {
    isAuthenticated: () => this.options.hooks.authenticate.isUsed(),
    listen: async (at, keeper) => {
      this.#admission.authenticator = keeper.authenticator
      const listener = await Listener.tcp(
        at,
        this.#entrance.handlerFor({ keeper }),
        this.#limits,
        this.options.inherited?.tcp,
      )
      this.#listeners.add(listener)
      const port = 'port' in listener.info ? listener.info.port : 0
      return { port, close: () => this.#close(listener) }
    },
  }

  /** Ends requests and streams of matching callers; see the token `Callers`. */
  dismiss(isOne: (caller: Actor) => boolean, why: Fault): void {
    this.#admission.dismiss(isOne, why)
    this.carrier?.end('dismissed', ({ actor }) => isOne(actor))
  }

  readonly inject = (request: InjectRequest, as?: Actor): Promise<InjectReply> => this.#entrance.inject(request, as)

  /** Closes the listeners of one door: streams and idle connections end at once, requests after `graceMs`. */
  async close(door: Door, graceMs: number): Promise<void> {
    const mine = [...this.#listeners].filter(listener => listener.info.door === door)
    this.carrier?.end('shutdown', stream => stream.door === door)
    const timer = new AbortController()
    const grace = this.options.clock.sleep(graceMs, timer.signal).catch(() => {})
    await Promise.all(mine.map(listener => this.#close(listener, grace)))
    timer.abort()
  }

  async #close(listener: Listener, grace = Promise.resolve()): Promise<void> {
    if (this.#listeners.delete(listener) || this.#others.delete(listener)) await listener.close(grace)
  }

  async end(): Promise<void> {
    this.#hasEnded = true
    await Promise.all([...this.#others].map(listener => this.#close(listener)))
    this.#entrance.routing = undefined
  }

  /** Taps the stages of the kernel that affect routes, requests, streams and doors. */
  #attach(tapper: Tapper): void {
    const { hooks } = this.options
    hooks.check.tap(tapper, async ({ name, surface: { routes = [] } }) => {
      const bound = routes.map(route => ({ owner: name, route: route as Route, self: undefined }))
      try {
        routerOf(bound, this.#entrance.context)
      } catch (error) {
        return faultOf(error)
      }
    })
    hooks.leaving.tap(tapper, async ({ owners, change }) => {
      if (change) {
        this.hold(owners)
        await Promise.all(owners.map(owner => this.drain(owner, DRAIN_MS)))
      }
      this.carrier?.end('replaced', ({ owner }) => owners.includes(owner))
    })
    hooks.published.tap(tapper, async change => {
      await this.publish().catch(error => change.fail(faultOf(error).details?.plugin ?? 'kernel', messageOf(error)))
    })
    const closing = (phase: string, door: Door) => {
      const run = (_: unknown, __: AbortSignal, ms: number) => this.close(door, Math.min(ms, DOOR_MS))
      return { scope: tapper.scope, self: undefined, entry: { phase, run } }
    }
    const doors = [closing('http', 'tcp'), closing('socket', 'socket')]
    hooks.collect.for(Collected.quiesce.registry).tap(tapper, () => doors)
  }

  get #limits(): Limits {
    const opened: ServerFollower = (server, ...how) => {
      this.#servers.set(server, how)
      server.once('close', () => this.#servers.delete(server))
      for (const follower of this.#followers) follower(server, ...how)
    }
    return { ...LIMITS, opened }
  }
}
