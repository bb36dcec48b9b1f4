import { messageOf, within } from '../../../../kernel/plugin.js'
import type { BridgeAddress, DeliveryStanding } from '../api.js'
import type { Deliveries } from '../delivery/delivery.js'
import type { K } from '../needs.js'
import type { Instance, Instances } from './instances.js'
import type { SendOutcome } from './trials.js'

/** A test message has ended in this time, or is let go. */
const SEND_MS = 10_000

/** Test messages, on the way of all others: through the ledger, in the order of their room. */
export class TestMessages {
  readonly #waiting = new Map<string, (standing: DeliveryStanding) => void>()

  constructor(
    private readonly kernel: K,
    private readonly instances: Instances,
    private readonly deliveries: () => Deliveries,
  ) {}

  /** A posted message has ended; whether it was one of these, of which others hear nothing. */
  ended(key: string, standing: DeliveryStanding): boolean {
    this.#waiting.get(key)?.(standing)
    return key.startsWith(KEY)
  }

  /** Sends a message and waits for its end. A test that fails is not listed afterwards: its caller has been told. */
  async send({ id: bridgeId }: Instance, target: BridgeAddress, text: string, id: string): Promise<SendOutcome> {
    const { clock, db } = this.kernel
    const deliveries = this.deliveries()
    const key = `${KEY}${id}`
    const ended = new Promise<DeliveryStanding>(resolve => this.#waiting.set(key, resolve))
    try {
      const message = { bridgeId, kind: 'post', key: `p:${key}`, source: 'send-test', target, ttl: SEND_MS } as const
      const delivery = await db.tx(t => deliveries.send(t, message, text))
      if (!delivery) return { status: 'failed', message: 'the message was sent before', permanent: true }
      const standing = await within(clock, SEND_MS, ended).catch(messageOf)
      const why = this.instances.state(bridgeId)?.lastError
      if (typeof standing === 'string') {
        await deliveries.withdraw(`p:${key}`, 'the test has ended')
        const state = deliveries.standing(key)?.state
        if (state === 'suppressed')
          return { status: 'failed', message: why ?? 'it was not sent in 10 s', permanent: false }
        return { status: 'unknown', message: why ?? 'the platform has not answered in 10 s' }
      }
      if (standing.state === 'delivered') {
        const [part] = deliveries.ledger.partsOf(db, delivery.id)
        return { status: 'delivered', remoteId: part?.remoteId }
      }
      if (standing.state === 'failed') await deliveries.discard(bridgeId, delivery.id)
      const { reason = standing.state } = standing
      const failure = why === undefined ? reason : `${reason}: ${why}`
      return reason === 'unknown_after_send'
        ? { status: 'unknown', message: failure }
        : { status: 'failed', message: failure, permanent: true }
    } finally {
      this.#waiting.delete(key)
    }
  }
}

const KEY = 'send-test:'
