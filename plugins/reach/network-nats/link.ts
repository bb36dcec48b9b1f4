import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream'
import {
  AckPolicy,
  DeliverPolicy,
  DiscardPolicy,
  JetStreamApiError,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
} from '@nats-io/jetstream'
import {
  type Authenticator,
  connect,
  credsAuthenticator,
  type NatsConnection,
  nkeyAuthenticator,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from '@nats-io/transport-node'
import { aborted, pause } from '../../../kernel/kit/backoff.js'
import { Feed } from '../../../kernel/kit/feed.js'
import { messageOf } from '../../../kernel/plugin.js'
import { explained } from './explain.js'
import { Inbound } from './inbound.js'
import type { K } from './needs.js'
import type { LinkPart } from './offers/wire.js'
import { KEPT_MS, type Line, Outbound, type StreamView } from './outbound.js'
import type { Identity } from './proof.js'
import { ACK_WAIT_MS, type ChannelHandler, Reader } from './reader.js'
import { type ShareRow, shares } from './tables.js'

/** Configuration of a connection, with plain secrets. */
export interface LinkConfig {
  readonly servers: readonly string[]
  readonly realm: string
  readonly credentials?: string | undefined
  readonly tls: {
    readonly ca?: string | undefined
    readonly cert?: string | undefined
    readonly key?: string | undefined
  }
}

/** State of the connection to the server. */
export type LinkState =
  | { readonly state: 'connecting' }
  | { readonly state: 'connected'; readonly server: string; readonly since: number }
  /** The server accepts no more messages; they wait in the store. */
  | { readonly state: 'full'; readonly server: string; readonly error: string; readonly since: number }
  | { readonly state: 'away'; readonly error: string; readonly since: number }

const RETRY = { firstMs: 500, longestMs: 30_000 }
/**
 * Milliseconds after which a connection counts as good, as does one that carried messages: the next attempt follows
 * soon.
 */
const LIVED_MS = 10_000
const ANSWER_MS = 10_000
const PULL_MS = 10_000
/** Unacknowledged messages that the server delivers ahead. */
const UNDER_WAY = 256
const LOOK_MS = 30_000
/** Number of messages that a recreated consumer starts earlier, to include those that had to be delivered again. */
const BACK = 1000
/** Messages between two writes of the received sequence; a recreated consumer starts up to that many earlier. */
const SKIPPED = 100
/** Suffix of the consumer for direct rooms; no channel has this name. */
const DIRECT = '-direct'
/** JetStream error codes for lack of space. */
const FULL = new Set([10023, 10047, 10077])
const STREAM_NOT_FOUND = 10059
const CONSUMER_NOT_FOUND = 10014

const nanos = (ms: number): number => ms * 1_000_000

/** The connection to a server, kept open until a signal aborts. */
export class Link {
  #state: LinkState = { state: 'connecting' }
  /** Wakes when the state changes. */
  readonly states = new Feed<never>()
  readonly #inbound: Inbound
  readonly #outbound: Outbound
  readonly #stream: string
  /** Prefix of the realm's subjects. */
  readonly #root: string
  /** Whether the connection has carried messages. */
  #isOfUse = false

  constructor(
    private readonly kernel: K,
    private readonly config: LinkConfig,
    private readonly identity: Identity,
    /** Wakes when messages wait to be published, or shared channels change. */
    private readonly feed: Feed<never>,
    /** Further users of the connection. */
    private readonly parts: readonly LinkPart[] = [],
  ) {
    this.#inbound = new Inbound(kernel, identity, config.realm)
    this.#outbound = new Outbound(kernel, identity, config.realm, this.#inbound)
    this.#stream = `svc_${config.realm}_messages`
    this.#root = `svc.${config.realm}`
  }

  get state(): LinkState {
    return this.#state
  }

  private set state(state: LinkState) {
    this.#state = state
    this.states.wake()
  }

  /** Reconnects with back-off whenever the connection ends. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.kernel
    for (let attempt = 1; !signal.aborted; attempt++) {
      const startedAt = clock.monotonic()
      this.#isOfUse = false
      try {
        await this.#connected(signal)
      } catch (error) {
        if (signal.aborted) return
        this.state = { state: 'away', error: explained(error), since: clock.now() }
        log.debug('the NATS server is not reachable', { error: messageOf(error) })
      }
      if (this.#isOfUse || clock.monotonic() - startedAt > LIVED_MS) attempt = 1
      await pause(this.kernel, attempt, signal, RETRY)
    }
    await this.#outbound.save()
  }

  async #connected(signal: AbortSignal): Promise<void> {
    const { servers, tls, credentials } = this.config
    const isTls = servers.some(url => url.startsWith('tls:')) || Object.values(tls).some(value => value !== undefined)
    const connection = await connect({
      servers: servers.map(url => url.replace(/^(nats|tls):\/\//, '')),
      name: `svc ${this.identity.daemon}`,
      reconnect: false,
      timeout: ANSWER_MS,
      pingInterval: 20_000,
      maxPingOut: 2,
      ...(credentials !== undefined && { authenticator: authenticatorOf(credentials) }),
      ...(isTls && {
        tls: {
          ...(tls.ca !== undefined && { caFile: tls.ca }),
          ...(tls.cert !== undefined && { certFile: tls.cert }),
          ...(tls.key !== undefined && { key: tls.key }),
        },
      }),
    })
    const inner = new AbortController()
    const end = () => inner.abort()
    signal.addEventListener('abort', end)
    const stopped = aborted(inner.signal)
    try {
      if (signal.aborted) return
      const closed = connection.closed().then(error => {
        throw error ?? new Error('the server ended the connection')
      })
      const work = this.#work(connection, inner.signal)
      // Rejections after the race must not become unhandled.
      for (const one of [closed, work]) one.catch(() => {})
      await Promise.race([closed, work, stopped])
    } finally {
      signal.removeEventListener('abort', end)
      inner.abort()
      await connection.close().catch(() => {})
    }
  }

  async #work(connection: NatsConnection, signal: AbortSignal): Promise<void> {
    const manager = await jetstreamManager(connection, { timeout: ANSWER_MS, checkAPI: false })
    const client = jetstream(connection, { timeout: ANSWER_MS })
    const reading = new Map<string, { readonly sharedAt: number; readonly stop: () => void }>()
    let failure: { readonly error: unknown } | undefined
    const fail = (error: unknown) => {
      failure ??= { error }
      this.feed.wake()
    }
    for (const part of this.parts) part({ connection, manager, client }, signal).catch(fail)
    const line: Line = {
      publish: async (subject, data, msgID) => {
        const ack = await client.publish(subject, data, { msgID, timeout: ANSWER_MS })
        this.#isOfUse = true
        return ack
      },
      limit: connection.info?.max_payload ?? 1024 * 1024,
      subject: (channel, only) =>
        `${this.#root}.${only === undefined ? 'm' : `d.${only}`}.${channel}.${this.identity.daemon}`,
    }
    let looked = Number.NEGATIVE_INFINITY
    const wake = () => this.feed.wake()
    signal.addEventListener('abort', wake, { once: true })
    while (!signal.aborted) {
      const next = this.feed.next()
      const timer = this.kernel.clock.timeout(LOOK_MS, wake)
      const shared = shares.all(this.kernel.db)
      if (this.kernel.clock.monotonic() - looked >= LOOK_MS) {
        const view = await this.#view(manager)
        for (const { channel } of shared) await this.#outbound.compare(channel, view)
        looked = this.kernel.clock.monotonic()
      }
      for (const [channel, { sharedAt, stop }] of reading)
        if (channel !== DIRECT && !shared.some(one => one.channel === channel && one.sharedAt === sharedAt)) stop()
      for (const share of shared) {
        const { channel, sharedAt, incarnation } = share
        if (incarnation === undefined) await this.#outbound.compare(channel, await this.#view(manager))
        if (reading.has(channel)) continue
        const over = new AbortController()
        reading.set(channel, { sharedAt, stop: () => over.abort() })
        this.#read(share, manager, client, AbortSignal.any([signal, over.signal]))
          .then(() => reading.delete(channel) && this.feed.wake())
          .catch(fail)
      }
      if (shared.length > 0 && !reading.has(DIRECT)) {
        reading.set(DIRECT, { sharedAt: 0, stop: () => {} })
        this.#readDirect(manager, client, signal).catch(fail)
      }
      if (this.state.state !== 'full') this.#reached(connection)
      try {
        await this.#flush(shared, line, connection, signal)
        if (!signal.aborted && !failure) await next
      } finally {
        timer.cancel()
      }
      if (failure) throw failure.error
    }
  }

  #reached(connection: NatsConnection): void {
    if (this.state.state === 'connected') return
    this.state = { state: 'connected', server: connection.getServer(), since: this.kernel.clock.now() }
  }

  /** Publishes waiting messages; retries with back-off while the server is full. */
  async #flush(
    shared: readonly ShareRow[],
    line: Line,
    connection: NatsConnection,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.kernel
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        for (const { channel } of shared)
          if (!(await this.#outbound.flush(channel, line))) throw new Error('the stream was created again')
        this.#reached(connection)
        return
      } catch (error) {
        if (!(error instanceof JetStreamApiError) || !isFull(error)) throw error
        this.state = { state: 'full', server: connection.getServer(), error: error.message, since: clock.now() }
        await pause(this.kernel, attempt, signal, RETRY)
      }
    }
  }

  /** The stream of the realm, created if missing. */
  async #view(manager: JetStreamManager): Promise<StreamView> {
    const subjects = [`${this.#root}.m.*.*`, `${this.#root}.d.*.*.*`]
    const found = await manager.streams.info(this.#stream).catch(error => {
      if (!(error instanceof JetStreamApiError) || error.code !== STREAM_NOT_FOUND) throw error
      return manager.streams.add({
        name: this.#stream,
        subjects,
        retention: RetentionPolicy.Limits,
        storage: StorageType.File,
        discard: DiscardPolicy.New,
        max_age: nanos(KEPT_MS),
        duplicate_window: nanos(120_000),
      })
    })
    // An operator or an older release may have created it with fewer subjects.
    const isComplete = subjects.every(subject => found.config.subjects.includes(subject))
    const info = isComplete ? found : await manager.streams.update(this.#stream, { subjects })
    const { created, state, config } = info
    return {
      created: `${created}`,
      firstSeq: state.first_seq,
      lastSeq: state.last_seq,
      isWhole: config.discard === DiscardPolicy.New,
    }
  }

  /** Reads a channel until the signal aborts. The consumer of an unshared channel is deleted. */
  async #read(
    { channel, sharedAt }: ShareRow,
    manager: JetStreamManager,
    client: JetStreamClient,
    signal: AbortSignal,
  ): Promise<void> {
    const { db } = this.kernel
    const durable = `${this.identity.daemon}_${channel}`
    const current = () => {
      const share = shares.get(db, { channel })
      return share?.sharedAt === sharedAt ? share : undefined
    }
    const from = () => (current()?.received ?? 0) - BACK
    await this.#prepare(manager, durable, `${this.#root}.m.${channel}.*`, from)
    await this.#consume(client, durable, signal, {
      share: current,
      unshared: message => message.nak(),
      note: (t, share, received) => {
        if (received >= share.received + SKIPPED) shares.update(t, { channel, sharedAt }, { received })
      },
    })
    if (!current()) await manager.consumers.delete(this.#stream, durable).catch(() => {})
  }

  /** Reads messages of direct rooms with peers of this daemon, in all channels, until the signal aborts. */
  async #readDirect(manager: JetStreamManager, client: JetStreamClient, signal: AbortSignal): Promise<void> {
    const durable = `${this.identity.daemon}${DIRECT}`
    await this.#prepare(manager, durable, `${this.#root}.d.${this.identity.daemon}.*.*`, () => 0)
    await this.#consume(client, durable, signal, {
      share: message => shares.get(this.kernel.db, { channel: message.subject.split('.')[4] ?? '' }),
      // The channel is no longer shared, so its messages reach no session.
      unshared: message => message.term(),
    })
  }

  /** Processes the messages of a consumer until the signal aborts. @throws Error if it ended otherwise */
  async #consume(
    client: JetStreamClient,
    durable: string,
    signal: AbortSignal,
    handler: ChannelHandler,
  ): Promise<void> {
    const consumer = await client.consumers.get(this.#stream, durable)
    if (signal.aborted) return
    const reader = new Reader(this.kernel, this.#inbound, handler)
    const messages = await consumer.consume({
      max_messages: UNDER_WAY,
      expires: PULL_MS,
      abort_on_missing_resource: true,
      callback: message => {
        this.#isOfUse = true
        reader.add(message)
      },
    })
    const stop = () => messages.stop()
    signal.addEventListener('abort', stop, { once: true })
    try {
      const error = await messages.closed()
      if (!signal.aborted) throw error instanceof Error ? error : new Error(`the consumer ${durable} has ended`)
    } finally {
      signal.removeEventListener('abort', stop)
      reader.close()
    }
  }

  /** Creates a missing consumer. @param from first sequence in the stream; not positive: everything */
  async #prepare(manager: JetStreamManager, durable: string, filter: string, from: () => number): Promise<void> {
    await manager.consumers.info(this.#stream, durable).catch(error => {
      if (!(error instanceof JetStreamApiError) || error.code !== CONSUMER_NOT_FOUND) throw error
      const start = from()
      return manager.consumers.add(this.#stream, {
        durable_name: durable,
        filter_subject: filter,
        ack_policy: AckPolicy.Explicit,
        ack_wait: nanos(ACK_WAIT_MS),
        max_ack_pending: UNDER_WAY,
        ...(start > 0
          ? { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: start }
          : { deliver_policy: DeliverPolicy.All }),
      })
    })
  }
}

function isFull(error: JetStreamApiError): boolean {
  return FULL.has(error.code) || /maximum (bytes|messages)|insufficient|no space/i.test(error.message)
}

/** Recognized by its form: a .creds file, a seed, `user:password`, or else a token. */
function authenticatorOf(text: string): Authenticator {
  const bytes = new TextEncoder().encode(text)
  if (text.includes('BEGIN NATS USER JWT')) return credsAuthenticator(bytes)
  if (/^SU[A-Z2-7]{56}$/.test(text.trim())) return nkeyAuthenticator(new TextEncoder().encode(text.trim()))
  const colon = text.indexOf(':')
  return colon < 0
    ? tokenAuthenticator(text)
    : usernamePasswordAuthenticator(text.slice(0, colon), text.slice(colon + 1))
}
