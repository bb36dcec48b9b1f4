import type { JsMsg } from '@nats-io/jetstream'
import { messageOf, type Tx } from '../../../kernel/plugin.js'
import type { Inbound, Outcome } from './inbound.js'
import type { K } from './needs.js'
import type { ShareRow } from './tables.js'

/** Milliseconds that a server waits for an acknowledgement. */
export const ACK_WAIT_MS = 10_000
/** Maximum deliveries of a message whose receiver is unknown. */
const DELIVERIES = 6
/** Messages per transaction. */
const BATCH = 64

/** Callbacks of a reader. */
export interface ChannelHandler {
  /** The shared channel of a message; undefined if it is no longer shared. */
  share(message: JsMsg): ShareRow | undefined
  /** Handles a message of a channel that is no longer shared. */
  unshared(message: JsMsg): void
  /** Writes further data with a batch. @param received sequence up to which all messages are settled */
  note?(t: Tx, share: ShareRow, received: number): void
}

/**
 * Processes the messages of a consumer: those that arrive together share a transaction, and the next are validated
 * during its write.
 */
export class Reader {
  #queue: JsMsg[] = []
  /** Messages that are neither acknowledged nor returned. */
  readonly #open = new Set<JsMsg>()
  /** Sequences that have to be delivered again. */
  readonly #again = new Set<number>()
  #timer: { cancel(): void } | undefined

  constructor(
    private readonly kernel: K,
    private readonly inbound: Inbound,
    private readonly handler: ChannelHandler,
  ) {}

  add(message: JsMsg): void {
    this.#queue.push(message)
    // Runs after all messages from the same socket read were added.
    if (this.#queue.length === 1) queueMicrotask(() => this.#drain())
  }

  #drain(): void {
    const batch = this.#queue.splice(0, BATCH)
    const groups = new Map<string, { readonly share: ShareRow; readonly messages: JsMsg[] }>()
    for (const message of batch) {
      const share = this.handler.share(message)
      if (!share) {
        this.handler.unshared(message)
        continue
      }
      const group = groups.get(share.channel) ?? { share, messages: [] }
      group.messages.push(message)
      groups.set(share.channel, group)
    }
    for (const { share, messages } of groups.values()) void this.#take(share, messages)
    // Yields to other work before the rest.
    if (this.#queue.length > 0) setImmediate(() => this.#drain())
  }

  /** Never rejects: messages that cannot be stored are delivered again. */
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
          this.handler.note?.(t, share, Math.min(last, ...[...this.#again].map(seq => seq - 1)))
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

  /** Reports progress to the server while the store is slow, before it delivers the messages again. */
  #keepWorking(): void {
    this.#timer ??= this.kernel.clock.timeout(ACK_WAIT_MS / 3, () => {
      this.#timer = undefined
      for (const message of this.#open) message.working()
      if (this.#open.size > 0) this.#keepWorking()
    })
  }

  /** Stops after the end of the connection. */
  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#open.clear()
    this.#queue = []
  }
}

function deliveredOf(message: JsMsg) {
  const [, , lane, ...tokens] = message.subject.split('.')
  return {
    daemon: tokens.at(-1) ?? '',
    isDirect: lane === 'd',
    data: message.data,
    messageId: message.headers?.get('Nats-Msg-Id') ?? '',
    storedAt: message.time.getTime(),
    isLast: message.info.deliveryCount >= DELIVERIES,
  }
}
