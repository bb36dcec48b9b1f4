import { Alarm } from '../../../../kernel/kit/alarm.js'
import { messageOf, type Tx } from '../../../../kernel/plugin.js'
import type { K } from '../needs.js'
import { type Decision, deliveries, type MessageRow, messages, type PeerRow } from '../tables.js'
import { promptOf } from './prompt.js'

/** A session that is to hear of a message. */
export interface Recipient {
  readonly peer: PeerRow
  readonly sessionId: string
  /** The message is for it, or mentions it. */
  readonly isAddressed: boolean
}

/** Why a message does not wake a session. */
export type SkipReason =
  | 'not_live'
  | 'not_addressed'
  | 'duplicate'
  | 'coalesced'
  | 'depth_exceeded'
  | 'budget_exhausted'
  | 'network_disabled'

/** What a message means for a session. */
export interface Decided {
  readonly sessionId: string
  readonly decision: Decision
  readonly reason?: SkipReason
  readonly wakeId?: string
  /** It stays in the inbox until the session has it. */
  readonly isHeard: boolean
}

/** The chain of wakes that led to what a session says now. */
export interface Lineage {
  readonly rootId: string
  readonly depth: number
}

const RETRY_MS = 5_000

/** Which messages wake sessions, and the prompts that do it. */
export class Wakes {
  readonly #alarm: Alarm

  constructor(private readonly kernel: K) {
    this.#alarm = new Alarm(kernel.clock, { retryMs: RETRY_MS })
  }

  /** The chain that a session is in; undefined: it speaks of its own accord. */
  lineage(_sessionId: string | undefined): Lineage | undefined {
    return undefined
  }

  /** Decides for each recipient in the transaction of the message. */
  decide(
    _t: Tx,
    { kind }: MessageRow,
    recipients: readonly Recipient[],
    _sender: { readonly isAgent: boolean; readonly confirmed: boolean },
  ): Decided[] {
    return recipients.map(({ sessionId, isAddressed }) =>
      kind === 'say' && isAddressed
        ? { sessionId, decision: 'wake', wakeId: this.kernel.ids.id('nwk'), isHeard: true }
        : { sessionId, decision: 'skip', reason: 'not_addressed', isHeard: true },
    )
  }

  /** A message is durable. */
  stored(seq: number): void {
    const waking = deliveries.all(this.kernel.db, { seq, decision: 'wake', deliveredAt: null })
    for (const { wakeId } of waking) if (wakeId !== undefined) this.#alarm.set(wakeId, this.kernel.clock.now())
  }

  /** Wakes sessions until the signal aborts; those that an earlier daemon did not wake come first. */
  async run(signal: AbortSignal): Promise<void> {
    for (const { wakeId } of deliveries.all(this.kernel.db, { decision: 'wake', deliveredAt: null }))
      if (wakeId !== undefined) this.#alarm.set(wakeId, this.kernel.clock.now())
    await this.#alarm.run(signal, {
      fire: async wakeIds => {
        for (const wakeId of wakeIds) await this.#wake(wakeId)
      },
      failed: error => this.kernel.log.error(`sessions are not woken by messages: ${messageOf(error)}`),
    })
  }

  async #wake(wakeId: string): Promise<void> {
    const { db, needs, clock } = this.kernel
    const delivery = deliveries.get(db, { wakeId })
    const message = delivery && messages.get(db, { seq: delivery.seq })
    if (!delivery || !message || delivery.deliveredAt !== undefined) return
    const { sessionId, seq } = delivery
    await needs.sessions.queue(sessionId, { text: promptOf(message), source: 'network', key: wakeId })
    await db.tx(t => deliveries.update(t, { sessionId, seq }, { deliveredAt: clock.now() }))
  }
}
