import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../clock.js'
import { type Fault, KernelErrors } from '../errors.js'
import type { BoundRoute } from '../host/registries.js'
import type { ListenerInfo } from '../host/view.js'
import type { Ids } from '../ids.js'
import type { Door } from '../route.js'
import { errorBody, Generation, type InjectReply, type InjectRequest } from './generation.js'
import { isLoopback, tcpRefusal } from './guards.js'
import { Listener } from './listeners.js'
import { StreamHub } from './streams.js'

export interface TransportOptions {
  readonly clock: Clock
  readonly ids: Ids
  readonly durable: () => Promise<void>
  readonly full: () => Promise<Fault | undefined>
  readonly failed: (owner: string, where: string, error: unknown) => void
  readonly checkReplies: boolean
}

/** Two listeners, one current generation, the stream hub. Publishing builds a generation beside the old one and swaps. */
export class Transport {
  readonly streams: StreamHub
  readonly #listeners: Listener[] = []
  readonly #doors = new WeakMap<IncomingMessage, Door>()
  readonly #running = new Map<string, number>()
  readonly #quiet = new Set<() => void>()
  #current: Generation | undefined

  constructor(private readonly options: TransportOptions) {
    this.streams = new StreamHub(options.clock, options.durable)
  }

  listeners(): ListenerInfo[] {
    return this.#listeners.map(listener => listener.info)
  }

  /** Boots a generation of these routes and swaps it in. When it does not boot, the current one stays. */
  async publish(routes: readonly BoundRoute[]): Promise<void> {
    const next = await Generation.build(routes, {
      ids: this.options.ids,
      streams: this.streams,
      doorOf: request => this.#doors.get(request) ?? 'inject',
      guard: (request, door) => {
        const tcp = door === 'tcp' ? this.#tcp() : undefined
        return tcp && tcpRefusal(request, tcp)
      },
      privilegedOverTcp: () => isLoopback(this.#tcp()?.host ?? 'localhost'),
      durable: this.options.durable,
      full: this.options.full,
      enter: owner => this.#enter(owner),
      failed: this.options.failed,
      checkReplies: this.options.checkReplies,
    })
    const old = this.#current
    this.#current = next
    await old?.close()
  }

  async listenSocket(path: string): Promise<void> {
    this.#listeners.push(await Listener.socket(path, this.#handle))
  }

  async listenTcp(host: string, port: number): Promise<void> {
    if (!isLoopback(host)) {
      throw KernelErrors.forbidden(
        `http.host ${host} is reachable from other machines, which needs tokens; use localhost`,
        {
          next: 'set http.host in config.json to localhost',
        },
      )
    }
    this.#listeners.push(await Listener.tcp(host, port, this.#handle))
  }

  async inject(request: InjectRequest): Promise<InjectReply> {
    if (!this.#current) throw KernelErrors.shutting_down()
    return this.#current.inject(request)
  }

  /** Resolves when no handler of the plugin runs, at the latest after `ms`. */
  async drain(owner: string, ms: number): Promise<void> {
    if (!this.#running.has(owner)) return
    await new Promise<void>(resolve => {
      const timer = this.options.clock.timeout(ms, done)
      const look = () => this.#running.has(owner) || done()
      this.#quiet.add(look)
      const quiet = this.#quiet
      function done() {
        timer.cancel()
        quiet.delete(look)
        resolve()
      }
    })
  }

  /** Closes the listeners of one door: streams end, idle connections at once, requests get `graceMs`. */
  async close(door: Door, graceMs: number): Promise<void> {
    const mine = this.#listeners.filter(listener => listener.info.door === door)
    for (const listener of mine) this.#listeners.splice(this.#listeners.indexOf(listener), 1)
    if (this.#listeners.length === 0) this.streams.end()
    const timer = new AbortController()
    const grace = this.options.clock.sleep(graceMs, timer.signal).catch(() => {})
    await Promise.all(mine.map(listener => listener.close(grace)))
    timer.abort()
  }

  async end(): Promise<void> {
    this.streams.end()
    const last = this.#current
    this.#current = undefined
    await last?.close()
  }

  #tcp() {
    for (const { info } of this.#listeners) if (info.door === 'tcp') return info
    return undefined
  }

  readonly #handle = (door: Door, request: IncomingMessage, response: ServerResponse) => {
    if (this.#current) {
      this.#doors.set(request, door)
      this.#current.handle(request, response)
      return
    }
    response.writeHead(503, { 'content-type': 'application/json', 'retry-after': '1' })
    response.end(JSON.stringify(errorBody(KernelErrors.shutting_down())))
  }

  #enter(owner: string): () => void {
    this.#running.set(owner, (this.#running.get(owner) ?? 0) + 1)
    return () => {
      const left = (this.#running.get(owner) ?? 1) - 1
      if (left > 0) this.#running.set(owner, left)
      else {
        this.#running.delete(owner)
        for (const look of [...this.#quiet]) look()
      }
    }
  }
}
