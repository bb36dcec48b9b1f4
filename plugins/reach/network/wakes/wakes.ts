import { Alarm } from '../../../../kernel/kit/alarm.js'
import { Fault, messageOf, type Tx } from '../../../../kernel/plugin.js'
import type { FollowedPage, SessionsApi } from '../../../work/sessions/api.js'
import { Tally } from '../conversations/tally.js'
import type { K } from '../needs.js'
import { NetworkEnabled } from '../settings.js'
import { type MessageRow, messages } from '../tables.js'
import { Admission, type Decided, isAwake, type Recipient, type WakingSender } from './admission.js'
import type { BoundsOf } from './bounds.js'
import { Ledger } from './ledger.js'
import { Pairs } from './pairs.js'
import { MOST, promptOfAll } from './prompts.js'
import { SOURCE } from './source.js'
import { type WakeRow, wakes } from './table.js'
import { Tale } from './tale.js'

export type { Recipient } from './admission.js'

/** The chain of wakes that a session's current message belongs to. */
export interface Lineage {
  readonly rootId: string
  readonly depth: number
}

const RETRY_MS = 5_000
/** Restarts of a stopped session's queue, and the initial delay for its journal to continue. */
const MAX_TRIES = 6
const STARTING_MS = 50
/** Temporary reasons why a prompt cannot be queued. */
const LATER: ReadonlySet<string> = new Set([
  'draining',
  'home_held',
  'storage_full',
  'stopping',
  'queue_full',
  'session_limit',
])

/** A message delivered to a session. */
export type DeliveredMessage = Pick<MessageRow, 'seq' | 'workspaceId' | 'kind' | 'size'>

/** Wakes of sessions by messages, with their prompts. */
export class Wakes {
  readonly ledger: Ledger
  readonly pairs = new Pairs()
  readonly #admission: Admission
  readonly #alarm: Alarm
  readonly #tally: Tally
  /** Wakes whose prompts are being followed, by session. */
  readonly #carried = new Map<string, Promise<void>>()
  #signal: AbortSignal | undefined

  constructor(
    private readonly kernel: K,
    boundsOf: BoundsOf,
  ) {
    this.ledger = new Ledger(kernel)
    this.#admission = new Admission(kernel, this.ledger, boundsOf)
    this.#alarm = new Alarm(kernel.clock, { retryMs: RETRY_MS })
    this.#tally = new Tally(kernel)
  }

  /** The chain of a session's current turn; undefined if messages did not start it. */
  lineage(sessionId: string | undefined): Lineage | undefined {
    const wake = sessionId === undefined ? undefined : this.ledger.inFlight(this.kernel.db, sessionId)
    if (!wake || !this.isWoken(wake.sessionId)) return undefined
    return { rootId: wake.rootId, depth: wake.depth }
  }

  /** Whether the running turn of a session was started by messages. */
  isWoken(sessionId: string): boolean {
    return this.kernel.needs.sessions.shown(sessionId)?.activity?.turn_source === SOURCE
  }

  /** Decides for each recipient in the message's transaction. @throws Fault `wake_confirmation_required` */
  decide(t: Tx, message: MessageRow, recipients: readonly Recipient[], sender: WakingSender): readonly Decided[] {
    const { decided, admitted } = this.#admission.decide(t, message, recipients, sender)
    if (admitted.length > 0)
      this.kernel.db.onDurable(t, () => {
        for (const { id, dueAt } of admitted) this.#alarm.set(id, dueAt)
      })
    return decided
  }

  /** Marks messages as delivered to a session, which removes them from its inbox. */
  markDelivered(t: Tx, sessionId: string, peerId: string, messages: readonly DeliveredMessage[]): void {
    const now = this.kernel.clock.now()
    for (const { seq, workspaceId, kind, size } of messages) {
      const { changes } = t.run(
        'UPDATE network_delivery SET delivered_at = ?, bytes = ? WHERE session_id = ? AND seq = ? AND delivered_at IS NULL',
        [now, size, sessionId, seq],
      )
      if (changes > 0) this.#tally.add(t, workspaceId, peerId, kind, 'delivered', size)
    }
  }

  /** Sends wakes until the signal aborts, starting with those left by an earlier daemon. */
  async run(signal: AbortSignal): Promise<void> {
    await this.kernel.needs.daemon.released(signal)
    this.#signal = signal
    for (const wake of this.ledger.open()) {
      if (wake.state === 'reserved') this.#alarm.set(wake.id, wake.dueAt)
      else this.#carry(wake)
    }
    await this.#alarm.run(signal, {
      fire: async wakeIds => {
        for (const wakeId of wakeIds) await this.#fire(wakeId)
      },
      failed: error => this.kernel.log.error(`sessions are not woken by messages: ${messageOf(error)}`),
    })
    await Promise.allSettled(this.#carried.values())
  }

  /**
   * Handles the end of a wake's collection time. While an earlier wake of its session is in progress, it continues to
   * collect.
   */
  async #fire(id: string): Promise<void> {
    const { db, needs, config } = this.kernel
    const wake = this.ledger.get(id)
    if (wake?.state !== 'reserved' || this.ledger.inFlight(db, wake.sessionId)) return
    const session = needs.sessions.get(wake.sessionId)
    const refusal = !config.get(NetworkEnabled)
      ? 'network_disabled'
      : !session || !isAwake(session)
        ? 'not_live'
        : undefined
    const moved = await db.tx(t =>
      refusal === undefined ? this.ledger.move(t, wake, 'queued') : this.ledger.giveBack(t, wake, refusal),
    )
    if (moved && refusal === undefined) this.#carry({ ...wake, state: 'queued' })
  }

  /** Queues the prompt of a wake and follows it until its turn ends. */
  #carry(wake: WakeRow): void {
    const { sessionId } = wake
    const carried = this.#untilOver(wake)
      .catch(error => this.kernel.log.error(`a wake is not followed: ${messageOf(error)}`, { wake: wake.id }))
      .finally(() => {
        this.#carried.delete(sessionId)
        const next = wakes.get(this.kernel.db, { sessionId, state: 'reserved' })
        if (next) this.#alarm.set(next.id, next.dueAt)
      })
    this.#carried.set(sessionId, carried)
  }

  async #untilOver(wake: WakeRow): Promise<void> {
    const signal = this.#signal ?? AbortSignal.abort()
    while (!signal.aborted) {
      try {
        const queued = await this.#queued(wake)
        if (queued) await this.#follow(queued, signal)
        return
      } catch (error) {
        const isLater = error instanceof Fault && LATER.has(error.code)
        if (!isLater) this.kernel.log.warn(`a wake is tried again: ${messageOf(error)}`, { wake: wake.id })
        await this.kernel.clock.sleep(RETRY_MS, signal).catch(() => {})
      }
    }
  }

  /** Queues the prompt of a wake, once; undefined if it wakes nothing. */
  async #queued(wake: WakeRow): Promise<WakeRow | undefined> {
    const { db, needs } = this.kernel
    const known = this.ledger.get(wake.id)
    if (!known || known.state === 'not_live' || known.state === 'settled') return undefined
    if (known.turnId !== undefined) return known
    const { id, sessionId } = known
    const waiting = this.#messagesOf(known)
    if (waiting.length === 0) return this.#refuse(known, 'already_delivered')
    const { tokens } = await needs.sessions.uses.of(sessionId).catch(() => ({ tokens: null }))
    try {
      const prompt = { text: promptOfAll(waiting), source: SOURCE, key: id, cause: waiting[0]?.id }
      const { turnId, from } = await needs.sessions.queue(sessionId, prompt)
      const change = { turnId, journalFrom: from, ...(tokens !== null && { tokensBefore: tokens }) }
      await db.tx(t => wakes.update(t, { id }, change))
      return { ...known, ...change }
    } catch (error) {
      if (!(error instanceof Fault) || LATER.has(error.code)) throw error
      return this.#refuse(known, error.code)
    }
  }

  async #refuse(wake: WakeRow, reason: string): Promise<undefined> {
    await this.kernel.db.tx(t => this.ledger.giveBack(t, wake, reason))
    return undefined
  }

  /** Messages in the prompt of a wake, oldest first, without repetitions and already received ones. */
  #messagesOf({ id, sessionId }: WakeRow): MessageRow[] {
    return messages.query(
      this.kernel.db,
      `WHERE seq IN (SELECT seq FROM network_delivery WHERE wake_id = ? AND session_id = ? AND delivered_at IS NULL
         AND reason IS NOT 'duplicate') ORDER BY seq`,
      [id, sessionId],
    )
  }

  async #follow(wake: WakeRow, signal: AbortSignal): Promise<void> {
    const { needs } = this.kernel
    const { sessionId, turnId = '', tokensBefore, limitMs } = wake
    const tale = new Tale(turnId, tokensBefore)
    let now = wake
    let next = wake.journalFrom ?? 1
    let tries = 0
    let reason: string | undefined
    const limit = (deliveredAt: number) =>
      this.kernel.clock.timeout(Math.max(0, deliveredAt + limitMs - this.kernel.clock.now()), () => {
        reason = 'max_wake_wall_time'
        void this.#end(sessionId, turnId)
      })
    let overdue = wake.deliveredAt === undefined ? undefined : limit(wake.deliveredAt)
    try {
      while (!signal.aborted) {
        const page = await this.#page(needs.sessions, sessionId, next, signal)
        if (signal.aborted) return
        for (const event of page?.events ?? []) tale.add(event)
        next = page?.next ?? next
        if (tale.end?.how === 'unsent' && now.state === 'queued') {
          await this.#refuse(now, tale.end.why)
          return
        }
        if (tale.isBegun && now.state === 'queued') {
          now = await this.#delivered(now)
          overdue = limit(now.deliveredAt ?? 0)
        }
        const isGone = !page || (page.isOver && !(await this.#goesOn(now, tries++, signal)))
        if (!tale.end && !isGone) continue
        if (now.state === 'queued') await this.#refuse(now, 'not_live')
        else {
          const cost = tale.end?.how === 'over' ? tale.end : {}
          const why = reason === undefined ? {} : { reason }
          await this.kernel.db.tx(t => this.ledger.settle(t, now, { ...cost, ...why }))
        }
        return
      }
    } finally {
      overdue?.cancel()
    }
  }

  /** The next events of a session; undefined if it was deleted. */
  async #page(sessions: SessionsApi, id: string, from: number, signal: AbortSignal): Promise<FollowedPage | undefined> {
    try {
      return await sessions.follow(id, from, signal)
    } catch (error) {
      if (!sessions.get(id)) return undefined
      throw error
    }
  }

  /** Whether the queue of a stopped session without new events continues, because a prompt restarts it. */
  async #goesOn({ sessionId, state }: WakeRow, tries: number, signal: AbortSignal): Promise<boolean> {
    const session = this.kernel.needs.sessions.get(sessionId)
    if (state !== 'queued' || !session || !isAwake(session) || tries >= MAX_TRIES) return false
    await this.kernel.needs.sessions.continueQueue(sessionId)
    await this.kernel.clock.sleep(STARTING_MS * 2 ** tries, signal).catch(() => {})
    return true
  }

  async #delivered(wake: WakeRow): Promise<WakeRow> {
    const deliveredAt = this.kernel.clock.now()
    await this.kernel.db.tx(t => {
      this.ledger.move(t, wake, 'delivered', { deliveredAt })
      const repeated = messages.query(
        t,
        "WHERE seq IN (SELECT seq FROM network_delivery WHERE wake_id = ? AND session_id = ? AND reason = 'duplicate')",
        [wake.id, wake.sessionId],
      )
      this.markDelivered(t, wake.sessionId, wake.peerId, [...this.#messagesOf(wake).slice(0, MOST), ...repeated])
    })
    return { ...wake, state: 'delivered', deliveredAt }
  }

  /** Cancels the turn of a wake, if it still runs. */
  async #end(sessionId: string, turnId: string): Promise<void> {
    const { sessions } = this.kernel.needs
    if (sessions.shown(sessionId)?.activity?.turn_id === turnId) await sessions.interrupt(sessionId)
  }
}
