import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream'
import {
  AckPolicy,
  DiscardPolicy,
  JetStreamApiError,
  type JsMsg,
  RetentionPolicy,
  StorageType,
} from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { messageOf } from '../../../../kernel/plugin.js'
import type { K } from '../needs.js'
import type { Offers } from './offers.js'

/** A connection, for the parts of the plugin that do not handle channel messages. */
export interface Connected {
  readonly connection: NatsConnection
  readonly manager: JetStreamManager
  readonly client: JetStreamClient
}

/** A task that runs on a connection until the signal aborts. A rejection ends the connection. */
export type LinkPart = (connected: Connected, signal: AbortSignal) => Promise<void>

const CONSUMER = 'takers'
const ACK_WAIT_MS = 30_000
const FETCH_MS = 10_000
const LOOK_MS = 30_000
const KEPT_MS = 7 * 24 * 60 * 60_000
/** Maximum number of waiting offers per daemon. */
const MOST_WAITING = 1000
/** Maximum number of attempts in progress across all daemons of a realm. */
const MOST_HELD = 100_000
const STREAM_NOT_FOUND = 10059
const CONSUMER_NOT_FOUND = 10014
const nanos = (ms: number): number => ms * 1_000_000

/** Offers, receipts and answers on one connection. */
export class OfferWire {
  readonly #stream: string
  readonly #self: string
  /** Timers of held messages. */
  readonly #timers = new Set<{ cancel(): void }>()

  constructor(
    private readonly kernel: K,
    private readonly offers: Offers,
    private readonly connected: Connected,
    private readonly signal: AbortSignal,
  ) {
    this.#stream = `svc_${offers.realm}_offers`
    this.#self = offers.daemon
  }

  /** Resolves when the signal aborts. */
  async run(): Promise<void> {
    const { connection } = this.connected
    const subscription = connection.subscribe(`svc.${this.offers.realm}.r.${this.#self}.*`)
    const end = () => {
      subscription.unsubscribe()
      for (const timer of this.#timers) timer.cancel()
      this.#timers.clear()
      this.offers.feed.wake()
    }
    this.signal.addEventListener('abort', end, { once: true })
    try {
      await Promise.all([this.#hear(subscription), this.#tell(), this.#take()])
    } finally {
      this.signal.removeEventListener('abort', end)
      subscription.unsubscribe()
      this.offers.disconnected()
    }
  }

  /** Sequential: the effects of a receipt are stored before the next is read. */
  async #hear(subscription: AsyncIterable<{ readonly subject: string; readonly data: Uint8Array }>): Promise<void> {
    for await (const { subject, data } of subscription) {
      if (this.signal.aborted) return
      const from = subject.split('.')[4] ?? ''
      const answer = await this.offers.heard(from, data).catch(error => {
        this.kernel.log.warn('a receipt of another daemon is not stored', { error: messageOf(error) })
        return undefined
      })
      if (answer) this.#send(from, answer)
      this.offers.feed.wake()
    }
  }

  #send(to: string, data: Uint8Array): void {
    if (!this.signal.aborted) this.connected.connection.publish(`svc.${this.offers.realm}.r.${to}.${this.#self}`, data)
  }

  /** Publishes offers, and sends receipts when due. */
  async #tell(): Promise<void> {
    const { clock } = this.kernel
    let looked = Number.NEGATIVE_INFINITY
    let incarnation = ''
    while (!this.signal.aborted) {
      const next = this.offers.feed.next()
      if (clock.monotonic() - looked >= LOOK_MS) {
        incarnation = await this.#incarnation()
        looked = clock.monotonic()
      }
      await this.#publish(incarnation)
      const { due, at } = await this.offers.receipts()
      for (const { to, data } of due) this.#send(to, data)
      const wait = Math.max(0, Math.min(LOOK_MS, (at ?? Number.POSITIVE_INFINITY) - clock.now()))
      const timer = clock.timeout(wait, () => this.offers.feed.wake())
      await next
      timer.cancel()
    }
  }

  async #publish(incarnation: string): Promise<void> {
    const { client } = this.connected
    for (const { row, data } of this.offers.unpublished(incarnation)) {
      const subject = `svc.${this.offers.realm}.o.${this.#self}`
      try {
        await client.publish(subject, data, { msgID: `${this.#self}:${row.id}:${row.attempt}` })
      } catch (error) {
        // The stream is full or was removed. The next check shows which.
        this.kernel.log.warn('an offer waits to be published', { offer: row.id, error: messageOf(error) })
        return
      }
      await this.offers.published(row, incarnation)
    }
  }

  /** When the stream was created. Creates it if it does not exist. */
  async #incarnation(): Promise<string> {
    const { manager } = this.connected
    const info = await manager.streams.info(this.#stream).catch(error => {
      if (!(error instanceof JetStreamApiError) || error.code !== STREAM_NOT_FOUND) throw error
      return manager.streams.add({
        name: this.#stream,
        subjects: [`svc.${this.offers.realm}.o.*`],
        retention: RetentionPolicy.Workqueue,
        storage: StorageType.File,
        discard: DiscardPolicy.New,
        discard_new_per_subject: true,
        max_msgs_per_subject: MOST_WAITING,
        max_age: nanos(KEPT_MS),
        duplicate_window: nanos(120_000),
      })
    })
    return `${info.created}`
  }

  /** Takes offers while the operator accepts them and there is capacity. */
  async #take(): Promise<void> {
    const { client, manager } = this.connected
    while (!this.signal.aborted) {
      const next = this.offers.feed.next()
      if (!this.offers.hasRoom()) {
        await next
        continue
      }
      await this.#incarnation()
      await manager.consumers.info(this.#stream, CONSUMER).catch(error => {
        if (!(error instanceof JetStreamApiError) || error.code !== CONSUMER_NOT_FOUND) throw error
        return manager.consumers.add(this.#stream, {
          durable_name: CONSUMER,
          filter_subject: `svc.${this.offers.realm}.o.*`,
          ack_policy: AckPolicy.Explicit,
          ack_wait: nanos(ACK_WAIT_MS),
          max_ack_pending: MOST_HELD,
        })
      })
      const consumer = await client.consumers.get(this.#stream, CONSUMER)
      const messages = await consumer.fetch({ max_messages: 1, expires: FETCH_MS })
      const stop = () => void messages.close()
      this.signal.addEventListener('abort', stop, { once: true })
      for await (const message of messages) await this.#consider(message)
      this.signal.removeEventListener('abort', stop)
    }
  }

  /** Holds a message while its attempt is requested and worked on. */
  async #consider(message: JsMsg): Promise<void> {
    if (this.signal.aborted) return
    const { clock, log } = this.kernel
    let timer = clock.timeout(ACK_WAIT_MS / 3, function again() {
      message.working()
      timer = clock.timeout(ACK_WAIT_MS / 3, again)
    })
    const holding = { cancel: () => timer.cancel() }
    const end = (work: () => void) => () => {
      holding.cancel()
      this.#timers.delete(holding)
      if (!this.signal.aborted) work()
    }
    this.#timers.add(holding)
    const wait = Math.min(30_000, 250 * 2 ** Math.min(message.info.deliveryCount, 7))
    const held = {
      done: end(() => message.ack()),
      again: end(() => message.nak(wait)),
      drop: end(() => message.term()),
    }
    try {
      const outcome = await this.offers.offered(message.subject.split('.')[3] ?? '', message.data, held)
      if (outcome !== 'held') held[outcome]()
    } catch (error) {
      log.warn('an offer of another daemon is not stored', { error: messageOf(error) })
      held.again()
    }
    this.offers.feed.wake()
  }
}
