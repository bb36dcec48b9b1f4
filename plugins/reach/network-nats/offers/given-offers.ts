import { command } from '../../../../kernel/kit/commands/command-line.js'
import { clip } from '../../../../kernel/kit/text.js'
import { type Actor, Fault, messageOf } from '../../../../kernel/plugin.js'
import type { Reason } from '../../network/api.js'
import { RemoteErrors } from '../api.js'
import type { K } from '../needs.js'
import { noteRefusal } from '../refusing.js'
import type { PeerRow } from '../tables.js'
import type { Answer, OfferContent, Receipt } from './envelopes.js'
import { OfferLease } from './settings.js'
import { moved, type OfferMove } from './states.js'
import { type GivenRow, givenOffers, type Result } from './table.js'

const KEEPER = 'network'
/** Characters of a peer's error. */
const MAX_ERROR = 8000
/** Faults of tasks that are temporary: the attempt can be requested again. */
const LATER: ReadonlySet<string> = new Set([
  'task_conflict',
  'task_run_conflict',
  'draining',
  'home_held',
  'storage_full',
])

/** The verdict on a receipt, without the common members of answers. */
type Verdict = Pick<Answer, 'answer' | 'lease_ms' | 'message'>

/** Offers of this daemon to others. Only the origin assigns an attempt, by claiming its run. */
export class GivenOffers {
  constructor(
    private readonly kernel: K,
    /** Called when the state or attempt of an offer changes. */
    private readonly changed: () => void = () => {},
  ) {}

  open(): GivenRow[] {
    return givenOffers.query(this.kernel.db, 'WHERE ended_at IS NULL ORDER BY offered_at, id')
  }

  /** Offers a task. @throws Fault `remote_offer_exists`, those of tasks */
  async offer(actor: Actor, taskId: string, withinMs: number): Promise<GivenRow> {
    const { clock, db, ids } = this.kernel
    const now = clock.now()
    const id = ids.id('offer')
    // The row is written first, so that a daemon killed after keeping the run finds the offer.
    await db.tx(t => {
      const [known] = givenOffers.query(t, 'WHERE task_id = ? AND ended_at IS NULL', [taskId])
      if (known)
        throw RemoteErrors.remote_offer_exists(`task ${taskId} is already offered, as ${known.id}`, {
          next: command('network withdraw', taskId),
        })
      givenOffers.insert(t, {
        ...{ id, taskId, title: taskId, brief: '', state: 'offered', attempt: 1, receipts: 0 },
        ...{ offeredAt: now, expiresAt: now + withinMs },
      })
    })
    try {
      await this.#keep(actor, id, taskId)
    } catch (error) {
      await db.tx(t => givenOffers.delete(t, { id }))
      throw error
    }
    this.changed()
    return givenOffers.get(db, { id }) as GivenRow
  }

  /** Returns a task to this daemon. @throws Fault `remote_offer_not_found` */
  async withdraw(actor: Actor, taskId: string): Promise<void> {
    const [row] = givenOffers.query(this.kernel.db, 'WHERE task_id = ? AND ended_at IS NULL', [taskId])
    if (!row) throw RemoteErrors.remote_offer_not_found(`task ${JSON.stringify(taskId)} is not offered`)
    await this.#over(row, 'withdraw', actor, 'the offer was withdrawn')
  }

  async #keep(actor: Actor, id: string, taskId: string): Promise<void> {
    const { db, needs } = this.kernel
    const { run, title, description } = await needs.tasks.kept.keep(actor, taskId, KEEPER)
    await db.tx(t => givenOffers.update(t, { id }, { runId: run.id, title, brief: description }))
  }

  /** Offers missing from the stream, in the form to publish. @param incarnation creation time of the stream */
  unpublished(incarnation: string): { readonly row: GivenRow; readonly content: OfferContent }[] {
    return this.open()
      .filter(({ state, runId, published }) => state === 'offered' && runId !== undefined && published !== incarnation)
      .map(row => {
        const { id: offer, attempt, title, brief, expiresAt } = row
        const expires = Math.ceil(expiresAt / 1000)
        return { row, content: { protocol: 'svc-offer/v1', offer, attempt, title, brief, expires_at: expires } }
      })
  }

  async published({ id, attempt }: GivenRow, incarnation: string): Promise<void> {
    await this.kernel.db.tx(t => givenOffers.update(t, { id, attempt }, { published: incarnation }))
  }

  /** Compares open offers with their runs. @returns time of the next comparison, epoch milliseconds */
  async sync(): Promise<number | undefined> {
    const next: number[] = []
    for (const row of this.open()) next.push(...(await this.#compare(row)))
    return next.length > 0 ? Math.min(...next) : undefined
  }

  /** @returns times of the next comparison; empty if the offer is over */
  async #compare(before: GivenRow): Promise<readonly number[]> {
    const { clock, actor, db, needs } = this.kernel
    if (before.runId === undefined) {
      try {
        await this.#keep(actor, before.id, before.taskId)
      } catch (error) {
        if (!(error instanceof Fault)) throw error
        await this.#over(before, 'withdraw', actor, messageOf(error))
        return []
      }
      return [before.expiresAt]
    }
    const storedRun = needs.tasks.run(before.runId)
    const isOver = storedRun?.lease_until && Date.parse(storedRun.lease_until) <= clock.now()
    const run = isOver ? await needs.tasks.kept.look(before.runId) : storedRun
    // Read again after the run: its result may have arrived during the comparison of others.
    const row = givenOffers.get(db, { id: before.id, endedAt: null })
    if (!row) return []
    const isLate = row.expiresAt <= clock.now()
    switch (run?.status) {
      case 'queued':
        if (isLate) {
          await this.#over(row, 'expire', actor, 'no peer accepted it in time')
          return []
        }
        if (row.state === 'taken') await this.#again(row)
        return [row.expiresAt]
      case 'claimed':
      case 'starting':
      case 'running':
        return [Date.parse(run.lease_until ?? '') || clock.now() + 60_000]
      case 'needs_attention':
        await this.#over(row, 'fail', actor, run.error ?? 'the run needs attention')
        return []
      default:
        // The peer's outcome is stored before its run ends. A run that ended without one was ended by this daemon.
        if (row.outcome === undefined || run === undefined || run.status === 'canceled')
          await this.#over(row, 'withdraw', actor, run ? `the run is ${run.status}` : 'the task is deleted')
        else await this.#over(row, row.outcome.status === 'completed' ? 'complete' : 'fail', actor, undefined)
        return []
    }
  }

  /** Starts the next attempt, which makes receipts of the former worker invalid. */
  async #again({ id, attempt, state }: GivenRow): Promise<void> {
    const next = { state: moved(state, 'again'), attempt: attempt + 1, published: undefined, daemon: undefined }
    await this.kernel.db.tx(t =>
      givenOffers.update(t, { id, attempt }, { ...next, peer: undefined, receipts: 0, outcome: undefined }),
    )
    this.changed()
  }

  async #over(
    { id, taskId, state }: GivenRow,
    move: OfferMove,
    actor: Actor,
    error: string | undefined,
  ): Promise<void> {
    const { clock, db, needs } = this.kernel
    const to = moved(state, move)
    await needs.tasks.kept.free(actor, taskId, error ?? to)
    await db.tx(t => givenOffers.update(t, { id, endedAt: null }, { state: to, error, endedAt: clock.now() }))
    this.changed()
  }

  /** Handles a worker's receipt. The receipt number and the fence of the run make repetitions idempotent. */
  async received(peer: PeerRow, receipt: Receipt): Promise<Answer> {
    const { offer, attempt, number } = receipt
    const row = givenOffers.get(this.kernel.db, { id: offer })
    const verdict =
      receipt.status === 'working'
        ? await this.#working(peer, receipt, row)
        : await this.#settled(peer, receipt, receipt.status, row)
    return { protocol: 'svc-offer-answer/v1', offer, attempt, number, to: peer.daemon, ...verdict }
  }

  async #working(peer: PeerRow, receipt: Receipt, row: GivenRow | undefined): Promise<Verdict> {
    if (!row || row.endedAt !== undefined || row.attempt !== receipt.attempt)
      return { answer: 'closed', message: 'the attempt has ended' }
    if (row.state === 'offered') return this.#give(peer, receipt, row)
    if (row.daemon !== peer.daemon) return { answer: 'busy', message: 'another daemon has the attempt' }
    const leaseMs = this.kernel.config.get(OfferLease)
    // A replayed receipt must not keep a lease alive.
    if (receipt.number <= row.receipts) return { answer: 'held', lease_ms: leaseMs }
    return this.#fenced(row, async () => {
      await this.kernel.needs.tasks.kept.extend(row.runId ?? '', holderOf(row, peer), leaseMs)
      await this.kernel.db.tx(t => givenOffers.update(t, { id: row.id }, { receipts: receipt.number }))
      return { answer: 'held', lease_ms: leaseMs }
    })
  }

  /** Assigns an attempt to a peer: first its run, then the offer, then the answer. */
  async #give(peer: PeerRow, { number }: Receipt, row: GivenRow): Promise<Verdict> {
    const { clock, config, db, needs } = this.kernel
    if (row.expiresAt <= clock.now()) return { answer: 'closed', message: 'the offer expired' }
    const leaseMs = config.get(OfferLease)
    try {
      await needs.tasks.kept.claim(row.runId ?? '', holderOf(row, peer), leaseMs)
    } catch (error) {
      if (error instanceof Fault && LATER.has(error.code)) return { answer: 'busy', message: messageOf(error) }
      throw error
    }
    const { daemon, name } = peer
    await db.tx(t =>
      givenOffers.update(
        t,
        { id: row.id, attempt: row.attempt },
        { state: moved(row.state, 'take'), daemon, peer: name, receipts: number },
      ),
    )
    this.changed()
    return { answer: 'held', lease_ms: leaseMs }
  }

  async #settled(
    peer: PeerRow,
    { offer, attempt, result, error }: Receipt,
    status: 'completed' | 'failed',
    row: GivenRow | undefined,
  ): Promise<Verdict> {
    if (!row) return this.#refuse(peer, 'not_found', `there is no offer ${offer}`)
    if (row.attempt !== attempt) return this.#refuse(peer, 'work_closed', `attempt ${attempt} of ${offer} has ended`)
    if (row.daemon !== peer.daemon)
      return this.#refuse(peer, 'not_target', `attempt ${attempt} of ${offer} belongs to another daemon`)
    if (row.state === 'completed' || row.state === 'failed') return { answer: 'done' }
    if (row.endedAt !== undefined) return this.#refuse(peer, 'work_closed', `${offer} is ${row.state}`)
    const { db, needs } = this.kernel
    let outcome: Result =
      status === 'completed'
        ? { status, result: result ?? null }
        : { status, error: error?.trim() || 'no reason was given' }
    return this.#fenced(row, async () => {
      await db.tx(t => givenOffers.update(t, { id: row.id, attempt }, { outcome }))
      const holder = holderOf(row, peer)
      if (outcome.status === 'completed')
        try {
          await needs.tasks.kept.complete(row.runId ?? '', holder, outcome.result)
        } catch (refused) {
          if (!(refused instanceof Fault) || refused.code !== 'task_result_required') throw refused
          // The worker's run has ended and will not provide another result.
          outcome = { status: 'failed', error: refused.message }
          await db.tx(t => givenOffers.update(t, { id: row.id, attempt }, { outcome }))
        }
      if (outcome.status === 'failed')
        await needs.tasks.kept.fail(row.runId ?? '', holder, `${peer.name}: ${clip(outcome.error, MAX_ERROR)}`)
      const move = outcome.status === 'completed' ? 'complete' : 'fail'
      await this.#over(row, move, this.kernel.actor, outcome.status === 'failed' ? outcome.error : undefined)
      return { answer: 'done' }
    })
  }

  /** Executes work that requires the lease. An expired lease is taken back immediately. */
  async #fenced(row: GivenRow, work: () => Promise<Verdict>): Promise<Verdict> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      const message = messageOf(error)
      if (error.code === 'AUTONOMY_LEASE_EXPIRED') await this.#compare(row)
      const { peer = '' } = row
      await this.kernel.db.tx(t =>
        noteRefusal(this.kernel, t, peer, '', {
          reason: error.code === 'AUTONOMY_LEASE_EXPIRED' ? 'work_closed' : 'malformed',
          message,
        }),
      )
      return { answer: 'closed', message: clip(message, 1000) }
    }
  }

  async #refuse(peer: PeerRow, reason: Reason, message: string): Promise<Verdict> {
    await this.kernel.db.tx(t => noteRefusal(this.kernel, t, peer.name, '', { reason, message }))
    return { answer: 'closed', message }
  }
}

/** Holder of an attempt. Its key contains the attempt and daemon, so that no other claim of the run has it. */
const holderOf = ({ id, attempt }: GivenRow, { name, daemon }: PeerRow) => ({ name, key: `${id}:${attempt}:${daemon}` })
