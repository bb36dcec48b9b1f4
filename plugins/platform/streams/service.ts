import {
  type Carrier,
  type Carry,
  durableToRead,
  errorBody,
  HttpErrors,
  type Servers,
  type Streaming,
  type Streams,
} from '../../../kernel/platform.js'
import type { Fault, PluginKernel, Route, SocketReply, StreamReply } from '../../../kernel/plugin.js'
import type { Wire } from './api.js'
import { boundConnections, mostConnections } from './connections.js'
import { EVENT_STREAM, eventWire } from './event-wire.js'
import { StreamHub } from './hub.js'
import { MaxStreams } from './settings.js'
import { takeUpgrades } from './upgrades.js'

/** Sends the streams of handlers while it runs: server-sent events, and messages on WebSockets. */
export class StreamsService implements Carrier {
  readonly #hub: StreamHub
  #mostConnections = Number.POSITIVE_INFINITY

  constructor(private readonly kernel: PluginKernel<{ streams: typeof Streams; servers: typeof Servers }>) {
    this.#hub = new StreamHub(kernel.clock, () => durableToRead(kernel))
    const leave = kernel.needs.streams(this)
    kernel.scope.defer('streams', () => {
      leave()
      this.#hub.end('replaced')
    })
  }

  /** Runs before a door is opened. */
  async start(): Promise<void> {
    const { log, needs, scope } = this.kernel
    const most = await mostConnections()
    this.#mostConnections = most
    // A server leaves when it closes: each session has one of its own.
    const ends = new Set<() => void>()
    const leave = needs.servers((server, serve, door) => {
      for (const end of [boundConnections(server, door, most, log.warn), takeUpgrades(server, serve)]) {
        ends.add(end)
        server.once('close', () => ends.delete(end))
      }
    })
    scope.defer('connections', () => {
      for (const end of [leave, ...ends]) end()
    })
  }

  enter(request: Streaming): Carry | undefined {
    const { bound, arrival, response } = request
    if (!mayStream(bound.route, arrival)) return undefined
    // Half of the connections are left for requests, especially those for diagnosis.
    const most = Math.min(this.kernel.config.get(MaxStreams), this.#mostConnections / 2)
    const leave = this.#hub.enter(arrival.door, most)
    response.once('close', leave)
    return async (reply, toFault, over) => {
      const wire = await wireFor(request, reply)
      const failed = (fault: Fault): unknown =>
        reply.status === 101 ? reply.failed(fault) : { event: 'error', data: errorBody(fault) }
      // Not awaited: the hub owns the stream now, and its handler is done.
      const key = { owner: bound.owner, door: arrival.door, actor: arrival.actor }
      void this.#hub
        .serve(key, wire, reply.stream, error => failed(toFault(error)))
        .finally(leave)
        .finally(over)
    }
  }

  readonly end: Carrier['end'] = (how, isOne) => this.#hub.end(how, isOne)

  counts(): Readonly<Record<string, number>> {
    return this.#hub.counts()
  }
}

/** Whether the route always streams, or streams to clients that accept it. */
function mayStream({ replies, frames, contentType }: Route, { headers }: Streaming['arrival']): boolean {
  if (101 in replies) return true
  return frames !== undefined && (contentType === EVENT_STREAM || headers.accept?.includes(EVENT_STREAM) === true)
}

async function wireFor({ bound, arrival, response }: Streaming, reply: StreamReply | SocketReply) {
  if (reply.status !== 101) return eventWire(response, reply.headers) as Wire<unknown>
  const { method, path } = bound.route
  if (!arrival.upgrade) throw HttpErrors.reply_invalid(`${method} ${path} sends on a channel that was not requested`)
  const wire = (await arrival.upgrade()) as Wire<unknown>
  response.statusCode = 101
  return wire
}
