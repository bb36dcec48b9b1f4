import { messageOf, within } from '../../../../kernel/plugin.js'
import type { BridgeAddress, DeliveryStanding } from '../api.js'
import type { Deliveries } from '../delivery/delivery.js'
import type { K } from '../needs.js'
import type { Instance, Instances } from './instances.js'
import type { SendOutcome } from './trials.js'

/** Milliseconds for a test message, after which it is dropped. */
const SEND_MS = 10_000

/** Sends test messages the same way as others: through the ledger, in the order of their route. */
export class TestMessages {
  readonly #waiting = new Map<string, (standing: DeliveryStanding) => void>()

  constructor(
    private readonly kernel: K,
    private readonly instances: Instances,
    private readonly deliveries: () => Deliveries,
  ) {}

  /** Handles the end of a posted message; returns whether it was a test message, which is not announced. */
  ended(key: string, standing: DeliveryStanding): boolean {
    this.#waiting.get(key)?.(standing)
    return key.startsWith(KEY)
  }

  /** Sends a message and waits for its end. A failed test is not listed, because its caller gets the result. */
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
