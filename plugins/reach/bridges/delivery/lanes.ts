import { Alarm } from '../../../../kernel/kit/alarm.js'
import { backoff } from '../../../../kernel/kit/backoff.js'
import { messageOf, type Tx } from '../../../../kernel/plugin.js'
import type { BridgeProvider, DeliveryRequest, DeliveryResult } from '../adapter.js'
import type { Instances } from '../instances/instances.js'
import type { K } from '../needs.js'
import { deliver, settle } from './attempt.js'
import { type Dropped, LaneQueue, type Passing } from './lane-queue.js'
import type { Ledger } from './ledger.js'
import type { Delivery, Part } from './table.js'

/** Back-off for resending a message that was certainly not sent, and for asking a platform again. */
const RETRY = { firstMs: 250, longestMs: 60_000 }
const ASK_AGAIN = { firstMs: 1000, longestMs: 60_000 }
/** Milliseconds before the platform is asked: a message may arrive shortly after its adapter was cut off. */
const SETTLE_AFTER_MS = 2000
/** Milliseconds before the attempt that the platform's search includes, because clocks differ. */
const SINCE_MS = 60_000
/** Milliseconds between two edits on one route. */
export const EDIT_MS = 1000
/** Milliseconds after which a worker that failed internally tries again. */
const FAULT_MS = 1000

/** A step that shows the growth of an answer. */
export interface Showing extends Passing {
  /** Earliest time. */
  readonly at: number
  /** Returns the milliseconds for which the route rests afterwards. */
  readonly run: (provider: BridgeProvider, signal: AbortSignal) => Promise<number>
}

interface Lane {
  readonly id: string
  readonly bridgeId: string
  readonly queue: LaneQueue<Showing>
  /** Earliest time of the next edit. */
  restsUntil: number
  isBusy: boolean
  /** Whether new work arrived while it was busy. */
  isStirred: boolean
}

/** One ordered worker per route, so that a slow or failing target does not block the others. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>()
  readonly #alarm: Alarm
  readonly #ending = new AbortController()
  readonly #busy = new Set<Promise<void>>()
  #isClosed = false

  /** @param textOf current text of a part of a growing answer */
  constructor(
    private readonly kernel: K,
    private readonly instances: Instances,
    private readonly ledger: Ledger,
    private readonly textOf: (deliveryId: string, part: number) => string | undefined,
  ) {
    this.#alarm = new Alarm(kernel.clock, { retryMs: FAULT_MS })
  }

  /** Wakes workers at their times until the signal aborts. */
  run(signal: AbortSignal): Promise<void> {
    return this.#alarm.run(signal, {
      fire: async lanes => lanes.forEach(lane => void this.wake(lane)),
      failed: error => this.kernel.log.error(`messages are not sent in time: ${messageOf(error)}`),
    })
  }

  /** Wakes the worker of a route. */
  wake(id: string): void {
    if (this.#isClosed) return
    const lane = this.#laneOf(id)
    lane.isStirred = true
    if (lane.isBusy) return
    lane.isBusy = true
    const work = this.#work(lane).finally(() => this.#busy.delete(work))
    this.#busy.add(work)
  }

  /** Wakes the worker for new durable parts, and drops deltas if too many items wait. */
  entered(id: string, bridgeId: string): Promise<void> {
    const dropped = this.#lanes.get(id)?.queue.makeRoom(this.ledger.waiting(id)) ?? []
    this.wake(id)
    return this.#drop(bridgeId, dropped)
  }

  /** Queues a step of a growing answer, if there is room. */
  async show(id: string, item: Showing): Promise<void> {
    if (this.#isClosed) return
    const lane = this.#laneOf(id)
    const dropped = lane.queue.offer(item, this.ledger.waiting(id))
    this.wake(id)
    await this.#drop(lane.bridgeId, dropped)
  }

  /** Removes a queued step that became obsolete. */
  async hide(id: string, key: string): Promise<void> {
    const lane = this.#lanes.get(id)
    if (lane?.queue.delete(key)) await this.#drop(lane.bridgeId, ['coalesced'])
  }

  /** Stops all workers; attempts without an answer by then are settled after the next start. */
  async close(signal: AbortSignal): Promise<void> {
    this.#isClosed = true
    const end = () => this.#ending.abort(new Error('the daemon is stopping'))
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
    await Promise.allSettled([...this.#busy])
    end()
  }

  #laneOf(id: string): Lane {
    const known = this.#lanes.get(id)
    if (known) return known
    const bridgeId = id.slice(0, id.indexOf(' '))
    const lane: Lane = { id, bridgeId, queue: new LaneQueue(), restsUntil: 0, isBusy: false, isStirred: false }
    this.#lanes.set(id, lane)
    return lane
  }

  async #work(lane: Lane): Promise<void> {
    try {
      let goesOn = true
      while (goesOn && !this.#isClosed) {
        lane.isStirred = false
        goesOn = (await this.#step(lane)) || lane.isStirred
      }
    } catch (error) {
      this.kernel.log.error(`a message was not sent: ${messageOf(error)}`, { bridge: lane.bridgeId })
      this.#alarm.set(lane.id, this.kernel.clock.now() + FAULT_MS)
    }
    lane.isBusy = false
    if (lane.queue.size > 0) return
    if (lane.restsUntil <= this.kernel.clock.now()) this.#lanes.delete(lane.id)
    else if (this.ledger.next(lane.id) === undefined) this.#alarm.set(lane.id, lane.restsUntil)
  }

  /** Executes the next step of a route; true if there may be more work now. */
  async #step(lane: Lane): Promise<boolean> {
    const { ledger, instances } = this
    const now = this.kernel.clock.now()
    const part = ledger.next(lane.id)
    if (part && part.expiresAt <= now && part.state !== 'send_attempt_started') {
      const reason = part.state === 'unknown_after_send' ? 'unknown_after_send' : 'expired'
      await this.kernel.db.tx(t => ledger.move(t, part, 'failed', { reason }))
      return true
    }
    const provider = instances.provider(lane.bridgeId)
    if (!provider || !instances.accepts(lane.bridgeId)) {
      if (part) this.#alarm.set(lane.id, part.expiresAt)
      return false
    }
    if (part) return this.#part(lane, part, provider)
    const item = lane.queue.peek()
    if (!item) return false
    const at = Math.max(item.at, lane.restsUntil)
    if (at > now) {
      this.#alarm.set(lane.id, at)
      return false
    }
    lane.queue.shift()
    const rests = await item.run(provider, this.#ending.signal)
    lane.restsUntil = this.kernel.clock.now() + rests
    return true
  }

  async #part(lane: Lane, part: Part, provider: BridgeProvider): Promise<boolean> {
    const { clock, db } = this.kernel
    const now = clock.now()
    if (part.nextAt !== undefined && part.nextAt > now) return this.#later(lane, Math.min(part.nextAt, part.expiresAt))
    const delivery = this.ledger.get(db, part.deliveryId)
    if (!delivery) return false
    if (part.state === 'send_attempt_started') {
      // Its result could not be stored. An edit can be repeated safely.
      const to = part.remoteId === undefined ? 'unknown_after_send' : 'queued'
      await db.tx(t => this.ledger.move(t, part, to))
      return true
    }
    if (part.state === 'unknown_after_send') return this.#settle(lane, part, delivery, provider)
    const started = await db.tx(t => this.#start(t, part))
    if (!started) return true
    const result = await deliver(clock, provider, started.request, this.#ending.signal)
    await db.tx(t => this.#after(t, started.part, result))
    return true
  }

  /** Stores that a part is handed to its adapter, with its current text. */
  #start(t: Tx, { deliveryId, part: n }: Part): { readonly part: Part; readonly request: DeliveryRequest } | undefined {
    const { ledger } = this
    const [delivery, part] = [ledger.get(t, deliveryId), ledger.part(t, deliveryId, n)]
    if (!delivery || !part || (part.state !== 'prepared' && part.state !== 'queued')) return undefined
    const queued = part.state === 'prepared' ? ledger.move(t, part, 'queued') : part
    const text = (delivery.open ? this.textOf(deliveryId, n) : undefined) ?? part.lastText ?? part.text
    const started = ledger.move(t, queued, 'send_attempt_started', {
      ...{ text, lastText: undefined, attemptedAt: this.kernel.clock.now(), attempts: part.attempts + 1 },
    })
    return { part: started, request: requestOf(delivery, started, part.event) }
  }

  #after(t: Tx, part: Part, result: DeliveryResult): void {
    const { ledger, instances } = this
    const { bridgeId } = part
    if (result.status === 'delivered') {
      const { remote_message_id: remoteId = part.remoteId } = result
      ledger.arrived(t, part, remoteId)
      instances.succeeded(t, bridgeId, remoteId !== undefined)
    } else if (result.status === 'unknown') {
      instances.failed(t, bridgeId, result.message)
      // An edit can be repeated without asking the platform.
      if (part.remoteId === undefined) ledger.move(t, part, 'unknown_after_send', { reason: result.message })
      else ledger.move(t, part, 'queued', { nextAt: this.#pause(part) })
    } else if (result.permanent) {
      const reason = `${result.kind}: ${result.message}`
      if (result.kind === 'missing_token') instances.count(t, bridgeId, 'auth_failures')
      ledger.move(t, part, 'failed', { reason })
      for (const other of ledger.partsOf(t, part.deliveryId))
        if (other.part > part.part && (other.state === 'prepared' || other.state === 'queued'))
          ledger.move(t, other, 'failed', { reason })
    } else {
      instances.failed(t, bridgeId, result.message)
      const { retry_after_ms: retryAfterMs } = result
      const nextAt = retryAfterMs === undefined ? this.#pause(part) : this.kernel.clock.now() + retryAfterMs
      ledger.move(t, part, 'queued', { nextAt, reason: `${result.kind}: ${result.message}` })
    }
  }

  /** Asks the platform about a part with an unknown result. If that is not possible, a person decides. */
  async #settle(lane: Lane, part: Part, delivery: Delivery, provider: BridgeProvider): Promise<boolean> {
    const { clock, db, ids } = this.kernel
    const { ledger } = this
    if (!provider.capabilities.canSettle || !provider.settle) {
      await db.tx(t => ledger.move(t, part, 'failed', { reason: 'unknown_after_send' }))
      return true
    }
    const attemptedAt = part.attemptedAt ?? clock.now()
    const from = attemptedAt + SETTLE_AFTER_MS
    if (clock.now() < from) return this.#later(lane, from)
    const request = { ...requestOf(delivery, part, part.event), since: attemptedAt - SINCE_MS }
    const result = await settle(clock, provider, request, this.#ending.signal)
    if (this.#isClosed && result.outcome === 'unknown') return false
    await db.tx(t => {
      // A person may have discarded it meanwhile.
      if (ledger.part(t, part.deliveryId, part.part)?.state !== part.state) return
      if (result.outcome === 'delivered') {
        ledger.arrived(t, part, result.remote_message_id)
        this.instances.succeeded(t, part.bridgeId, result.remote_message_id !== undefined)
      } else if (result.outcome === 'absent') ledger.move(t, part, 'queued')
      else if (result.final) ledger.move(t, part, 'failed', { reason: 'unknown_after_send' })
      else {
        const attempts = part.attempts + 1
        const nextAt = clock.now() + backoff(attempts, () => ids.random(), ASK_AGAIN)
        ledger.change(t, part, { nextAt, attempts })
      }
    })
    return true
  }

  #later(lane: Lane, at: number): false {
    this.#alarm.set(lane.id, at)
    return false
  }

  #pause({ attempts }: Part): number {
    const { clock, ids } = this.kernel
    return clock.now() + backoff(attempts, () => ids.random(), RETRY)
  }

  async #drop(bridgeId: string, reasons: readonly Dropped[]): Promise<void> {
    if (reasons.length === 0) return
    await this.kernel.db.tx(t => {
      for (const reason of reasons) this.instances.count(t, bridgeId, 'dropped', reason)
    })
  }
}

/** The request for a part. */
export function requestOf(delivery: Delivery, part: Part, event: DeliveryRequest['event']): DeliveryRequest {
  const { remoteId, nonce, text } = part
  return {
    bridge_instance_id: delivery.bridgeId,
    delivery_id: delivery.id,
    part: part.part,
    event,
    target: delivery.target,
    text,
    nonce,
    ...(remoteId !== undefined && { remote_message_id: remoteId }),
    ...(part.part === 0 && delivery.replyTo !== undefined && { reply_to_message_id: delivery.replyTo }),
  }
}
