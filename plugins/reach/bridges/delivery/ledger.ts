import { clip } from '../../../../kernel/kit/text.js'
import type { Reads, Tx } from '../../../../kernel/plugin.js'
import {
  type BridgeAddress,
  BridgeDeliveryFailed,
  BridgeErrors,
  type DeliveryStanding,
  type DeliveryState,
} from '../api.js'
import { routeOf } from '../instances/addresses.js'
import type { Instances } from '../instances/instances.js'
import type { K } from '../needs.js'
import { furthest, isActive, step } from './states.js'
import { type Delivery, type DeliveryKind, deliveries, type Part, parts } from './table.js'

/** Milliseconds that a part may wait before it is listed as failed instead of sent. */
export const TTL_MS = 3_600_000
/** Milliseconds for which ended messages are remembered, and failed ones listed. */
const KEPT_MS = 7 * 86_400_000
const FAILED_KEPT_MS = 30 * 86_400_000
/** Messages deleted per transaction of a sweep. */
const SWEEP = 500
/** Characters of the reason of a failure. */
const MAX_REASON = 500

const ACTIVE = "state IN ('prepared', 'queued', 'send_attempt_started', 'unknown_after_send')"

/** A new message. */
export interface NewDelivery {
  readonly bridgeId: string
  readonly kind: DeliveryKind
  readonly key?: string | undefined
  readonly source: string
  readonly target: BridgeAddress
  readonly replyTo?: string | undefined
  readonly sessionId?: string | undefined
  readonly turnId?: string | undefined
  readonly from?: number | undefined
  readonly eventId?: string | undefined
  readonly open?: boolean
  readonly ttl?: number
}

/** The worker of an address: messages to one address are sent in order. */
export const laneOf = (bridgeId: string, target: BridgeAddress): string => `${bridgeId} ${routeOf(target)}`

/** Called when a message has ended. */
export type Ended = (t: Tx, delivery: Delivery, standing: DeliveryStanding) => void

/** The ledger of messages: all state changes of parts go through it. */
export class Ledger {
  constructor(
    private readonly kernel: K,
    private readonly instances: Instances,
    private readonly ended: Ended,
  ) {}

  get(reads: Reads, id: string): Delivery | undefined {
    return deliveries.get(reads, { id })
  }

  partsOf(reads: Reads, deliveryId: string): Part[] {
    return parts.all(reads, { deliveryId }, 'ORDER BY part')
  }

  part(reads: Reads, deliveryId: string, part: number): Part | undefined {
    return parts.get(reads, { deliveryId, part })
  }

  /** Adds a message without parts; undefined if its key was used before. */
  add(t: Tx, wanted: NewDelivery): Delivery | undefined {
    const { key, open = false, ttl = TTL_MS, ...rest } = wanted
    if (key !== undefined && deliveries.get(t, { key })) return undefined
    const { ids, clock } = this.kernel
    const lane = laneOf(wanted.bridgeId, wanted.target)
    const row: Delivery = { id: ids.id('dlv'), ...rest, lane, key, open, ttl, createdAt: clock.now() }
    deliveries.insert(t, row)
    return row
  }

  /** Appends a part to a message. */
  append(t: Tx, { id, bridgeId, lane, ttl }: Delivery, part: number, text: string, event: Part['event']): Part {
    const { ids, clock } = this.kernel
    const now = clock.now()
    const row = {
      ...{ deliveryId: id, part, bridgeId, lane, state: 'prepared' as const, event, text, nonce: ids.id('msg') },
      ...{ attempts: 0, expiresAt: now + ttl, updatedAt: now },
    }
    parts.insert(t, row)
    return parts.get(t, { deliveryId: id, part }) as Part
  }

  /** Moves a part to another state, and updates its message in the same transaction. */
  move(t: Tx, part: Part, to: DeliveryState, changes: Partial<Part> = {}): Part {
    const at = this.kernel.clock.now()
    const reason = changes.reason && clip(changes.reason, MAX_REASON)
    const next = { state: step(part.state, to), updatedAt: at, nextAt: undefined, ...changes, reason }
    parts.update(t, { seq: part.seq }, next)
    if (to === 'failed') this.#failed(t, part, reason ?? 'unknown')
    if (!isActive(to)) this.settle(t, part.deliveryId)
    return { ...part, ...next }
  }

  /** Marks a part as delivered, and queues an edit if its text changed meanwhile. */
  arrived(t: Tx, part: Part, remoteId: string | undefined): void {
    const { lastText } = parts.get(t, { seq: part.seq }) ?? {}
    const arrived = this.move(t, part, 'delivered', { remoteId, lastText: undefined })
    if (lastText === undefined || lastText === part.text) return
    if (remoteId !== undefined) {
      this.move(t, arrived, 'queued', { text: lastText, attempts: 0 })
      return
    }
    const delivery = deliveries.get(t, { id: part.deliveryId })
    const rest = lastText.startsWith(part.text) ? lastText.slice(part.text.length).trimStart() : lastText
    if (delivery) this.append(t, delivery, this.partsOf(t, delivery.id).length, rest, 'final')
  }

  /** Changes members of a part other than its state. */
  change(t: Tx, part: Part, changes: Partial<Omit<Part, 'state'>>): void {
    parts.update(t, { seq: part.seq }, changes)
  }

  /**
   * Handles a platform's report that an accepted message did not arrive. Its id is removed, so that a resend creates a
   * new message. `unknown`: no part has the id; `busy`: a part is being sent and may be the one.
   */
  rejected(t: Tx, bridgeId: string, remoteId: string, reason: string): 'recorded' | 'unknown' | 'busy' {
    const [part] = parts.query(t, 'WHERE bridge_id = ? AND remote_id = ? ORDER BY seq DESC LIMIT 1', [
      bridgeId,
      remoteId,
    ])
    if (!part) return this.#isSending(t, bridgeId) ? 'busy' : 'unknown'
    if (part.state === 'send_attempt_started') return 'busy'
    if (part.state !== 'delivered' && part.state !== 'queued') return 'unknown'
    this.move(t, part, 'failed', { reason: `rejected: ${reason}`, remoteId: undefined })
    return 'recorded'
  }

  /** Sets whether more parts of a message may follow. */
  setOpen(t: Tx, id: string, open: boolean): void {
    deliveries.update(t, { id }, { open })
    if (!open) this.settle(t, id)
  }

  /** Ends a message with its last part; resending a part reopens it. */
  settle(t: Tx, id: string): void {
    const delivery = deliveries.get(t, { id })
    if (!delivery || delivery.open) return
    const of = this.partsOf(t, id)
    if (of.some(({ state }) => isActive(state))) return
    deliveries.update(t, { id }, { endedAt: this.kernel.clock.now() })
    const standing = standingOf(of)
    // Texts of delivered or discarded messages are not kept.
    if (standing.state !== 'failed') parts.update(t, { deliveryId: id }, { text: '' })
    this.ended(t, delivery, standing)
  }

  /** Queues the failed parts again on a person's request; returns their number. */
  resend(t: Tx, delivery: Delivery): number {
    const failed = this.partsOf(t, delivery.id).filter(({ state }) => state === 'failed')
    if (failed.some(({ text, lastText }) => (lastText ?? text) === ''))
      throw BridgeErrors.bridge_delivery_text_gone(
        `the text of ${delivery.id} is not stored: the platform had accepted it`,
      )
    const expiresAt = this.kernel.clock.now() + delivery.ttl
    for (const part of failed) this.move(t, part, 'queued', { attempts: 0, expiresAt })
    if (failed.length > 0) deliveries.update(t, { id: delivery.id }, { endedAt: undefined })
    return failed.length
  }

  /** Suppresses unsent parts; returns their number. */
  suppress(t: Tx, deliveryId: string, reason: string, states: readonly DeliveryState[]): number {
    const found = this.partsOf(t, deliveryId).filter(({ state }) => states.includes(state))
    for (const part of found) this.move(t, part, 'suppressed', { reason })
    return found.length
  }

  /** The next part that the worker sends. */
  next(lane: string): Part | undefined {
    return parts.query(this.kernel.db, `WHERE lane = ? AND ${ACTIVE} ORDER BY seq LIMIT 1`, [lane])[0]
  }

  /** Number of waiting parts of a worker. */
  waiting(lane: string): number {
    return this.#count(`lane = ? AND ${ACTIVE}`, [lane])
  }

  backlog(bridgeId: string): number {
    return this.#count(`bridge_id = ? AND ${ACTIVE}`, [bridgeId])
  }

  /** Messages in progress, including those whose turn still runs: their number and the first ones. */
  underWay(reads: Reads, bridgeId: string, most: number): { readonly n: number; readonly first: readonly Delivery[] } {
    const where = `WHERE bridge_id = ? AND (open = 1 OR EXISTS
      (SELECT 1 FROM bridges_part p WHERE p.delivery_id = bridges_delivery.id AND ${ACTIVE}))`
    const n = reads.get<{ n: number }>(`SELECT count(*) AS n FROM bridges_delivery ${where}`, [bridgeId])?.n ?? 0
    return { n, first: deliveries.query(reads, `${where} ORDER BY created_at, id LIMIT +?`, [bridgeId, most]) }
  }

  /** Routes with waiting parts. */
  lanes(): string[] {
    const sql = `SELECT DISTINCT lane FROM bridges_part WHERE ${ACTIVE}`
    return this.kernel.db.all<{ lane: string }>(sql).map(({ lane }) => lane)
  }

  /** Parts handed to an adapter by an earlier daemon, without a result. */
  attempted(): Part[] {
    return parts.all(this.kernel.db, { state: 'send_attempt_started' })
  }

  /** Messages whose turn still runs. */
  open(): Delivery[] {
    return deliveries.query(this.kernel.db, 'WHERE open = 1 ORDER BY created_at')
  }

  /** Instances with failed parts, with the number of messages. */
  failedByBridge(): { readonly bridge_id: string; readonly n: number }[] {
    const sql =
      "SELECT bridge_id, count(DISTINCT delivery_id) AS n FROM bridges_part WHERE state = 'failed' GROUP BY bridge_id"
    return this.kernel.db.all<{ bridge_id: string; n: number }>(sql)
  }

  /**
   * Whether a message was sent by this bridge. The route is compared because ids of some platforms are unique only
   * within a room.
   */
  isOwn(bridgeId: string, target: BridgeAddress, remoteId: string): boolean {
    const params = [bridgeId, remoteId, laneOf(bridgeId, target)]
    return parts.query(this.kernel.db, 'WHERE bridge_id = ? AND remote_id = ? AND lane = ? LIMIT 1', params).length > 0
  }

  standing(key: string): DeliveryStanding | undefined {
    const delivery = deliveries.get(this.kernel.db, { key })
    return delivery && standingOf(this.partsOf(this.kernel.db, delivery.id))
  }

  /** Deletes messages that ended long ago; resolves with the time of the next sweep. */
  async sweep(): Promise<number | undefined> {
    const now = this.kernel.clock.now()
    const oldest = () => deliveries.query(this.kernel.db, 'WHERE ended_at IS NOT NULL ORDER BY ended_at LIMIT 1')[0]
    const due = oldest()?.endedAt
    if (due === undefined || due > now - KEPT_MS) return due === undefined ? undefined : due + KEPT_MS
    await this.kernel.db.tx(t => {
      const isFailed =
        "EXISTS (SELECT 1 FROM bridges_part p WHERE p.delivery_id = bridges_delivery.id AND p.state = 'failed')"
      const due = deliveries.query(
        t,
        `WHERE ended_at <= ? AND (ended_at <= ? OR NOT ${isFailed}) ORDER BY ended_at LIMIT ${SWEEP}`,
        [now - KEPT_MS, now - FAILED_KEPT_MS],
      )
      for (const { id } of due) this.#delete(t, id)
    })
    const next = oldest()?.endedAt
    // Failed messages are kept longer, so those are checked hourly.
    return next === undefined ? undefined : Math.max(next + KEPT_MS, now + 3_600_000)
  }

  /** Deletes all messages of an instance. */
  forget(t: Tx, bridgeId: string): void {
    parts.delete(t, { bridgeId })
    deliveries.delete(t, { bridgeId })
  }

  /** Deletes a message without parts. */
  delete(t: Tx, id: string): void {
    this.#delete(t, id)
  }

  #delete(t: Tx, id: string): void {
    parts.delete(t, { deliveryId: id })
    deliveries.delete(t, { id })
  }

  /** Whether a part without a known id is being sent. */
  #isSending(t: Tx, bridgeId: string): boolean {
    const where = `WHERE ${ACTIVE} AND state = 'send_attempt_started' AND remote_id IS NULL AND bridge_id = ? LIMIT 1`
    return parts.query(t, where, [bridgeId]).length > 0
  }

  #failed(t: Tx, { bridgeId, deliveryId }: Part, reason: string): void {
    this.instances.count(t, bridgeId, 'delivery_failures')
    this.instances.failed(t, bridgeId, `a message was not delivered: ${reason}`)
    const source = deliveries.get(t, { id: deliveryId })?.source
    const payload = { bridge_id: bridgeId, delivery_id: deliveryId, reason, ...(source !== undefined && { source }) }
    this.kernel.needs.events.emit(t, BridgeDeliveryFailed, payload, { subject: bridgeId })
  }

  #count(where: string, params: readonly string[]): number {
    return this.kernel.db.get<{ n: number }>(`SELECT count(*) AS n FROM bridges_part WHERE ${where}`, params)?.n ?? 0
  }
}

/** State of a message: that of its least finished part. */
export function standingOf(of: readonly Part[]): DeliveryStanding {
  const state = furthest(of.map(part => part.state))
  const reason = of.find(part => part.state === state)?.reason
  return { state, ...(reason !== undefined && { reason }) }
}
