import { Feed } from '../../../../kernel/kit/feed.js'
import type { Actor } from '../../../../kernel/plugin.js'
import { RemoteOffer } from '../../../../schemas/network/offers.js'
import { TaskEvents } from '../../../work/tasks/api.js'
import type { K } from '../needs.js'
import { noteRefusal } from '../refusing.js'
import { opened, type Signer, sealed } from './envelopes.js'
import { GivenOffers } from './given-offers.js'
import { type GivenRow, givenOffers, takenOffers } from './table.js'
import { type Held, TakenOffers } from './taken-offers.js'

/** An expired offer is removed from the stream only after this time, because clocks differ. */
const LINGER_MS = 60 * 60_000
const LISTED = 100
const SETTLING = ['task.run_completed', 'task.run_failed', 'task.run_canceled', 'task.run_needs_attention'] as const
const CHANGING = ['task.run_lease_expired', 'task.run_operator_forced_fail', 'task.deleted'] as const

/** Task offers between daemons, in both directions. */
export class Offers {
  /** Key and realm of the connection. */
  signer: Signer | undefined
  /** Wakes when offers need to be compared with runs. */
  readonly #runs = new Feed<never>()
  readonly #givenOffers: GivenOffers
  readonly #takenOffers: TakenOffers

  constructor(
    private readonly kernel: K,
    /** Wakes when an offer may need to be published, answered or taken. */
    readonly feed: Feed<never>,
  ) {
    this.#givenOffers = new GivenOffers(kernel, () => this.#wake())
    this.#takenOffers = new TakenOffers(kernel, () => this.#runs.wake())
    for (const name of [...SETTLING, ...CHANGING]) kernel.needs.events.on(TaskEvents[name], () => this.#wake())
  }

  #wake(): void {
    this.#runs.wake()
    this.feed.wake()
  }

  get #signer(): Signer {
    if (!this.signer) throw new Error('offers have no connection')
    return this.signer
  }

  get realm(): string {
    return this.#signer.realm
  }

  get daemon(): string {
    return this.#signer.identity.daemon
  }

  /** Compares offers with runs until the signal aborts, whether connected or not. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.kernel
    const wake = () => this.#runs.wake()
    signal.addEventListener('abort', wake, { once: true })
    while (!signal.aborted) {
      const next = this.#runs.next()
      const times = [await this.#givenOffers.sync(), await this.#takenOffers.lapse()].filter(at => at !== undefined)
      const at = times.length > 0 ? Math.min(...times) : undefined
      const timer = at === undefined ? undefined : clock.timeout(Math.max(10, at - clock.now()), wake)
      await next
      timer?.cancel()
    }
    signal.removeEventListener('abort', wake)
  }

  async offer(actor: Actor, taskId: string, withinMs: number): Promise<RemoteOffer> {
    return wireGiven(await this.#givenOffers.offer(actor, taskId, withinMs))
  }

  withdraw(actor: Actor, taskId: string): Promise<void> {
    return this.#givenOffers.withdraw(actor, taskId)
  }

  /** Encoded offers missing from the stream. @param incarnation when the stream was created */
  unpublished(incarnation: string): { readonly row: GivenRow; readonly data: Uint8Array }[] {
    const now = this.kernel.clock.now()
    return this.#givenOffers
      .unpublished(incarnation)
      .map(({ row, content }) => ({ row, data: sealed(this.#signer, content, now) }))
  }

  published(row: GivenRow, incarnation: string): Promise<void> {
    return this.#givenOffers.published(row, incarnation)
  }

  hasRoom(): boolean {
    return this.#takenOffers.room() > 0
  }

  /** Why offers cannot be worked on here. Undefined if they can. */
  unfit(): Promise<string | undefined> {
    return this.#takenOffers.unfit()
  }

  disconnected(): void {
    this.#takenOffers.disconnected()
  }

  /**
   * @returns `held`: the attempt is requested from its origin; `again`: the server delivers the message again; `drop`
   */
  async offered(daemon: string, data: Uint8Array, held: Held): Promise<'held' | 'again' | 'drop'> {
    const found = opened(this.kernel.db, this.#signer, ['svc-offer/v1'], daemon, data)
    if (found.state === 'own') return 'again'
    if (found.state !== 'ok') {
      await this.kernel.db.tx(t => noteRefusal(this.kernel, t, found.peer, '', found.refusal))
      // Other daemons may trust a key that this one does not trust.
      return found.state === 'stranger' ? 'again' : 'drop'
    }
    const { content, peer } = found
    const late = this.kernel.clock.now() - content.expires_at * 1000
    if (late >= 0) return late > LINGER_MS ? 'drop' : 'again'
    if (!this.hasRoom() || !this.#takenOffers.accepts(peer) || !(await this.#takenOffers.canWork())) return 'again'
    await this.#takenOffers.offered(peer, content, held)
    return 'held'
  }

  /** @returns the answer to send to the daemon */
  async heard(daemon: string, data: Uint8Array): Promise<Uint8Array | undefined> {
    const { clock, db } = this.kernel
    const protocols = ['svc-offer-receipt/v1', 'svc-offer-answer/v1'] as const
    const found = opened(db, this.#signer, protocols, daemon, data)
    if (found.state === 'own') return undefined
    if (found.state !== 'ok') {
      await db.tx(t => noteRefusal(this.kernel, t, found.peer, '', found.refusal))
      return undefined
    }
    const { content, peer } = found
    if (content.protocol === 'svc-offer-receipt/v1')
      return sealed(this.#signer, await this.#givenOffers.received(peer, content), clock.now())
    await this.#takenOffers.answered(peer, content)
    return undefined
  }

  /** Receipts due now, and the time of the next one. */
  async receipts(): Promise<{ readonly due: readonly { to: string; data: Uint8Array }[]; readonly at?: number }> {
    const { due, next } = await this.#takenOffers.receipts()
    const now = this.kernel.clock.now()
    return {
      due: due.map(({ to, receipt }) => ({ to, data: sealed(this.#signer, receipt, now) })),
      ...(next !== undefined && { at: next }),
    }
  }
}

/** Lists offers in both directions, newest first. */
export function listOffers({ db }: Pick<K, 'db'>): RemoteOffer[] {
  const rows = [
    ...givenOffers.query(db, `ORDER BY offered_at DESC LIMIT ${LISTED}`).map(wireGiven),
    ...takenOffers
      .query(db, `WHERE lease_ms IS NOT NULL ORDER BY offered_at DESC LIMIT ${LISTED}`)
      .map(row => takenOffers.wire(row, RemoteOffer, { offer_id: row.id, direction: 'taken', peer: row.peer })),
  ]
  return rows.sort((a, b) => (a.offered_at < b.offered_at ? 1 : -1))
}

const wireGiven = (row: GivenRow): RemoteOffer =>
  givenOffers.wire(row, RemoteOffer, { offer_id: row.id, direction: 'given', task_id: row.taskId })
