import type { JsMsg } from '@nats-io/jetstream'
import { messageOf, type Tx } from '../../../kernel/plugin.js'
import type { Inbound, Outcome } from './inbound.js'
import type { K } from './needs.js'
import type { ShareRow } from './tables.js'

/** How long a server waits for an acknowledgement. */
export const ACK_WAIT_MS = 10_000
/** Deliveries of a message whose receiver is not known yet. */
const DELIVERIES = 6
/** Messages of one transaction. */
const BATCH = 64

/** What a reader asks of its connection. */
export interface Place {
  /** The shared channel of a message; undefined: it is shared no more. */
  share(message: JsMsg): ShareRow | undefined
  /** A message of a channel that is shared no more. */
  unshared(message: JsMsg): void
  /** What is written with a batch. @param received sequence up to which nothing is to come again */
  note?(t: Tx, share: ShareRow, received: number): void
}

/** Takes what a consumer delivers: what comes at one time is one transaction, and the next is judged while that is being written. */
export class Reader {
  #queue: JsMsg[] = []
  /** Messages that are not acknowledged, and not given back. */
  readonly #open = new Set<JsMsg>()
  /** Sequences that are to be delivered again. */
  readonly #again = new Set<number>()
  #timer: { cancel(): void } | undefined

  constructor(
    private readonly kernel: K,
    private readonly inbound: Inbound,
    private readonly place: Place,
  ) {}

  add(message: JsMsg): void {
    this.#queue.push(message)
    // All messages of one read from the socket are added before.
    if (this.#queue.length === 1) queueMicrotask(() => this.#drain())
  }

  #drain(): void {
    const batch = this.#queue.splice(0, BATCH)
    const groups = new Map<string, { readonly share: ShareRow; readonly messages: JsMsg[] }>()
    for (const message of batch) {
      const share = this.place.share(message)
      if (!share) {
        this.place.unshared(message)
        continue
      }
      const group = groups.get(share.channel) ?? { share, messages: [] }
      group.messages.push(message)
      groups.set(share.channel, group)
    }
    for (const { share, messages } of groups.values()) void this.#take(share, messages)
    // Others have their turn before the rest.
    if (this.#queue.length > 0) setImmediate(() => this.#drain())
  }

  /** Never rejects: what cannot be stored is to come again. */
  async #take(share: ShareRow, messages: readonly JsMsg[]): Promise<void> {
    for (const message of messages) this.#open.add(message)
    this.#keepWorking()
    let outcomes: readonly Outcome[]
    try {
      outcomes = await this.inbound.take(
        share,
        messages.map(message => deliveredOf(message)),
        (t, found) => {
          for (const [n, { seq }] of messages.entries())
            if (found[n] === 'again') this.#again.add(seq)
            else this.#again.delete(seq)
          const last = Math.max(...messages.map(({ seq }) => seq))
          this.place.note?.(t, share, Math.min(last, ...[...this.#again].map(seq => seq - 1)))
        },
      )
    } catch (error) {
      this.kernel.log.warn('messages of another daemon are not stored yet', { error: messageOf(error) })
      outcomes = messages.map(() => 'again')
    }
    for (const [n, message] of messages.entries()) {
      this.#open.delete(message)
      const outcome = outcomes[n]
      if (outcome === 'again') {
        this.#again.add(message.seq)
        message.nak(Math.min(30_000, 500 * 2 ** Math.min(message.info.deliveryCount, 6)))
      } else if (outcome === 'refused') message.term()
      else message.ack()
    }
  }

  /** A slow store is reported to the server before the server delivers the messages again. */
  #keepWorking(): void {
    this.#timer ??= this.kernel.clock.timeout(ACK_WAIT_MS / 3, () => {
      this.#timer = undefined
      for (const message of this.#open) message.working()
      if (this.#open.size > 0) this.#keepWorking()
    })
  }

  /** Its connection has ended. */
  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#open.clear()
    this.#queue = []
  }
}

function deliveredOf(message: JsMsg) {
  const [, , lane, ...place] = message.subject.split('.')
  return {
    daemon: place.at(-1) ?? '',
    isDirect: lane === 'd',
    data: message.data,
    messageId: message.headers?.get('Nats-Msg-Id') ?? '',
    storedAt: message.time.getTime(),
    isLast: message.info.deliveryCount >= DELIVERIES,
  }
}
