import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Actor } from '../contract/actor.js'
import type { BoundRoute } from '../contract/bound.js'
import { Fault, KernelErrors, messageOf } from '../contract/errors.js'
import type { ListenerInfo, TcpState } from '../contract/host-view.js'
import type { Ids } from '../contract/ids.js'
import type { InjectReply, InjectRequest } from '../contract/inject.js'
import type { Door, Route } from '../contract/route.js'
import type { Scope } from '../contract/scope.js'
import type { KernelHooks } from '../hooks/kernel-hooks.js'
import { Admission } from './admission.js'
import { Arrival, arrivalOf } from './arrival.js'
import { Authentication } from './authentication.js'
import { errorBody } from './fault-reply.js'
import { ACTING, Generation, type GenerationContext } from './generation.js'
import { isLoopback, isOwnHost, requestRefusal, type Site, tcpRefusal } from './guards.js'
import { descriptorLimit, LIMITS, type Limits, Listener } from './listeners.js'
import { PeerTable } from './peers.js'
import { StreamHub } from './streams.js'
import { Unrouted, type UnroutedOptions } from './unrouted.js'

/** Milliseconds in which changes of the routes are gathered for one generation. */
const GATHER_MS = 50

export interface TransportOptions extends UnroutedOptions {
  /** Everything that is to be routed now. */
  readonly routes: () => readonly BoundRoute[]
  readonly hooks: KernelHooks
  readonly ids: Ids
  readonly durable: (reading: boolean) => Promise<void>
  readonly full: () => Promise<Fault | undefined>
  readonly checkReplies: boolean
  /** Streams of one door. */
  readonly maxStreams: () => number
  /** Names beside those of loopback under which the daemon is reached, lower case. */
  readonly allowedHosts: () => readonly string[]
  /** The plugin without which TCP is not served; empty where any may authenticate, or none. */
  readonly authenticator: string
  readonly warn: (text: string) => void
  /** The folder of the system's connection tables; tests name one that is not there. */
  readonly connectionTables?: string
}

/** Two listeners, one current generation, the stream hub. Publishing builds a generation beside the old one and swaps. */
export class Transport {
  readonly streams: StreamHub
  readonly #admission: Admission
  readonly #authentication: Authentication
  readonly #listeners: Listener[] = []
  readonly #acting = new Map<string, Actor | undefined>()
  readonly #unrouted: Unrouted
  readonly #ended = new AbortController()
  /** Who is at the other end of a connection over TCP; undefined where the system does not tell. */
  #peers: PeerTable | undefined
  /** Where TCP is served; kept while it closes, for its last requests are guarded like all. */
  #site: Site
  #tcpState: TcpState = { status: 'disabled', why: 'no TCP listener was asked for' }
  /** Connections that one listener takes. */
  #connections = Number.POSITIVE_INFINITY
  #current: Generation | undefined
  #gathering: Promise<void> | undefined
  #building: Promise<void> = Promise.resolve()

  constructor(readonly options: TransportOptions) {
    // Half of the connections are left to requests, above all to those that find out what is wrong.
    const most = () => Math.min(options.maxStreams(), this.#connections / 2)
    this.streams = new StreamHub(options.clock, () => options.durable(true), most)
    this.#admission = new Admission(options.clock)
    this.#authentication = new Authentication(options.hooks.authenticate, this.#admission, options.authenticator)
    this.#unrouted = new Unrouted(options)
    this.#site = { host: 'localhost', port: 0, allowed: options.allowedHosts }
  }

  /** It serves nothing any more. */
  get ended(): boolean {
    return this.#ended.signal.aborted
  }

  listeners(): ListenerInfo[] {
    return this.#listeners.map(listener => listener.info)
  }

  tcpState(): TcpState {
    return this.#tcpState
  }

  /**
   * Boots a generation of the routes as they are then and swaps it in; the changes of 50 ms share one. Resolves when it
   * serves. When it does not boot, the current one stays and this rejects.
   */
  publish(): Promise<void> {
    this.#gathering ??= this.#gather()
    return this.#gathering
  }

  /** Why the routes of a plugin cannot be served. */
  async check(owner: string, routes: readonly Route<never>[] = []): Promise<Fault | undefined> {
    if (routes.length === 0) return undefined
    try {
      const bound = routes.map(route => ({ owner, route: route as Route, self: undefined }))
      await Generation.build(bound, this.#context())
      return undefined
    } catch (error) {
      return new Fault('route_refused', 422, messageOf(error), { cause: error })
    }
  }

  /** The kernel's own answers to who makes a request. */
  authenticate(scope: Scope): void {
    this.#authentication.tap(scope, {
      isLocal: host => this.#isLocal(host),
      peerOf: socket => this.#peers?.of(socket),
    })
  }

  /**
   * From now on requests for routes of these plugins wait for what comes after, at most five seconds, then 503. To be
   * called back when that is there, or when nothing comes: it publishes, and the requests are served by that generation.
   * While one of them authenticates, all requests over TCP wait.
   */
  hold(owners: readonly string[]): () => Promise<void> {
    const release = this.#admission.hold(this.#authentication.heldWith(owners))
    return () => {
      release()
      return this.publish()
    }
  }

  /** Resolves when no handler of the plugin runs; after `ms` the signals of the rest abort, and they are answered with 503. */
  drain(owner: string, ms: number): Promise<void> {
    return this.#admission.drain(owner, ms)
  }

  async listenSocket(path: string): Promise<void> {
    this.#listeners.push(await Listener.socket(path, this.#handle, await this.#limits()))
  }

  /**
   * Listens on TCP, where `enabled` and the system allow it: with `auto` only where the system tells which user is at the
   * other end of a connection, for any local user can reach a loopback address.
   */
  async listenTcp(host: string, port: number, enabled: boolean | 'auto'): Promise<void> {
    if (!enabled) {
      this.#tcpState = { status: 'disabled', why: 'http.enabled is false in config.json' }
      return
    }
    if (!isLoopback(host) && !this.#authentication.isByPlugin) {
      throw KernelErrors.forbidden(
        `http.host ${host} is reachable from other machines, which needs a plugin that authenticates them; use localhost`,
        { next: 'set http.host in config.json to localhost, or http.authenticator to the name of such a plugin' },
      )
    }
    this.#authentication.holdForNamed()
    const peers = isLoopback(host) ? await PeerTable.open(this.options.connectionTables) : undefined
    if (typeof peers === 'string') {
      this.#tcpState = { status: enabled === 'auto' ? 'unsupported' : 'unchecked', why: peers }
      this.options.warn(`TCP ${enabled === 'auto' ? 'is off' : 'serves every local user'}: ${peers}`)
      if (enabled === 'auto') return
    } else {
      this.#peers = peers
      this.#tcpState = { status: 'on' }
    }
    const accepted = (socket: Socket) => void this.#peers?.of(socket)
    const listener = await Listener.tcp(host, port, this.#handle, await this.#limits(), accepted)
    if (listener.info.door === 'tcp') this.#site = { ...this.#site, ...listener.info }
    this.#listeners.push(listener)
  }

  async inject(request: InjectRequest, as?: Actor): Promise<InjectReply> {
    if (!this.#current) throw KernelErrors.shutting_down()
    return this.#current.inject(request, as)
  }

  /** Closes the listeners of one door: streams end, idle connections at once, requests get `graceMs`. */
  async close(door: Door, graceMs: number): Promise<void> {
    const mine = this.#listeners.filter(listener => listener.info.door === door)
    for (const listener of mine) this.#listeners.splice(this.#listeners.indexOf(listener), 1)
    this.streams.end('shutdown', { door })
    const timer = new AbortController()
    const grace = this.options.clock.sleep(graceMs, timer.signal).catch(() => {})
    await Promise.all(mine.map(listener => listener.close(grace)))
    timer.abort()
  }

  async end(): Promise<void> {
    this.#ended.abort(KernelErrors.shutting_down())
    await this.#building.catch(() => {})
    this.streams.end('shutdown')
    await this.#peers?.close()
    this.#current = undefined
  }

  async #gather(): Promise<void> {
    try {
      // The first is what the boot waits for.
      if (this.#current) await this.options.clock.sleep(GATHER_MS, this.#ended.signal)
      await this.#building.catch(() => {})
    } finally {
      this.#gathering = undefined
    }
    this.#building = this.#build()
    await this.#building
  }

  async #build(): Promise<void> {
    this.#ended.signal.throwIfAborted()
    const routes = this.options.routes()
    this.#authentication.holdForNamed()
    const { held, over } = this.#admission.holds()
    for (const { owner } of routes) held.delete(owner)
    // What is held and not there now is being replaced: its routes stay, for requests to wait at.
    const waiting = this.#current?.routes.filter(({ owner }) => held.has(owner)) ?? []
    this.#current = await Generation.build([...routes, ...waiting], this.#context())
    this.#admission.letIn(over)
  }

  #context(): GenerationContext {
    return {
      ids: this.options.ids,
      streams: this.streams,
      admission: this.#admission,
      again: (request, response) => this.#serve(request, response),
      arrivalOf: request => arrivalOf(request) ?? this.#injected(request),
      acting: this.#acting,
      guard: ({ door, request }, route) => {
        const site = door === 'tcp' ? tcpRefusal(request, this.#site, route?.navigation) : undefined
        return site ?? requestRefusal(request, route?.body)
      },
      hooks: this.options.hooks,
      clock: this.options.clock,
      unrouted: request => this.#unrouted.ask(request),
      isLocal: host => this.#isLocal(host),
      durable: this.options.durable,
      full: this.options.full,
      failed: this.options.failed,
      checkReplies: this.options.checkReplies,
    }
  }

  async #limits(): Promise<Limits> {
    this.#connections = Math.max(8, Math.floor((await descriptorLimit()) / 4))
    return { ...LIMITS, maxConnections: this.#connections, warn: this.options.warn }
  }

  #isLocal(host = ''): boolean {
    return isLoopback(this.#site.host) && isOwnHost(host, this.#site)
  }

  /** What carries the mark of a request that is being injected came through no listener: those are known by themselves. */
  #injected(request: IncomingMessage): Arrival | undefined {
    const key = String(request.headers[ACTING])
    if (!this.#acting.has(key)) return undefined
    return new Arrival(request, 'inject', undefined, this.#acting.get(key))
  }

  readonly #handle = (door: Door, request: IncomingMessage, response: ServerResponse, head?: Buffer) => {
    new Arrival(request, door, head)
    this.#serve(request, response)
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    if (this.#current) this.#current.handle(request, response)
    else {
      response.writeHead(503, { 'content-type': 'application/json', 'retry-after': '1' })
      response.end(JSON.stringify(errorBody(KernelErrors.shutting_down())))
    }
  }
}
