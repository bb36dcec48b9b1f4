import { createHash } from 'node:crypto'
import { messageOf } from '../../../../kernel/plugin.js'
import type { TaskRun } from '../../../../schemas/tasks.js'
import type { K } from '../needs.js'
import { type PeerRow, peers } from '../tables.js'
import type { Answer, OfferContent, Receipt } from './envelopes.js'
import { OfferAgent, OfferPeers, OffersAtOnce, OfferWorkspace } from './settings.js'
import { moved, type OfferMove, OPEN } from './states.js'
import { type Result, type TakenRow, takenOffers } from './table.js'

/** Milliseconds until a repeated request for an attempt, doubled each time. */
const ASK_MS = 1000
const MOST_MS = 30_000
/** Requests without an answer after which an attempt is left to others. */
const ASKS = 5
/** Milliseconds for which an unassigned attempt is remembered after its expiry. */
const LINGER_MS = 60 * 60_000
/** Milliseconds after which an unacknowledged result is given up. */
const KEPT_MS = 7 * 24 * 60 * 60_000

/** The stream message of an attempt. */
export interface Held {
  /** Settles the message: the attempt has ended. */
  done(): void
  /** Returns the message, to be delivered to another daemon later. */
  again(): void
}
type Key = Pick<TakenRow, 'daemon' | 'id' | 'attempt'>
type Due = { at: number; times: number }

/** Offers of other daemons. Work on an attempt starts only after its origin assigned it to this daemon. */
export class TakenOffers {
  /** Messages held by this connection, by attempt. */
  readonly #held = new Map<string, Held>()
  /** Time of the next receipt of an attempt, and the number of unanswered ones. */
  readonly #due = new Map<string, Due>()

  constructor(
    private readonly kernel: K,
    /** Called when the end of a lease changes. */
    private readonly held: () => void = () => {},
  ) {}

  /** Rows whose end the origin has not acknowledged. */
  untold(): TakenRow[] {
    return takenOffers.query(this.kernel.db, 'WHERE told_at IS NULL ORDER BY offered_at, daemon, id, attempt')
  }

  /** @param peer origin of the offers; absent: any */
  accepts(peer?: Pick<PeerRow, 'name'>): boolean {
    const { config } = this.kernel
    if (config.get(OfferAgent) === '' || config.get(OfferWorkspace) === '') return false
    const only = config.get(OfferPeers)
    return peer === undefined || only.length === 0 || only.includes(peer.name)
  }

  /** Whether agent and workspace exist: accepting an offer that then fails would take it from others. */
  async canWork(): Promise<boolean> {
    const error = await this.unfit()
    if (error !== undefined) this.kernel.log.warn('no offers are accepted: they could not be processed', { error })
    return error === undefined
  }

  /** Why offers cannot be worked on; undefined if they can. */
  async unfit(): Promise<string | undefined> {
    const { config, needs } = this.kernel
    try {
      await needs.agents.plan(config.get(OfferAgent), await needs.workspaces.find(config.get(OfferWorkspace)))
      return undefined
    } catch (error) {
      return messageOf(error)
    }
  }

  /**
   * Stops work on attempts whose lease expired without an answered receipt, because the origin assigns them to others.
   * Runs with or without a connection. @returns time of the next call, epoch milliseconds
   */
  async lapse(): Promise<number | undefined> {
    const { clock, needs } = this.kernel
    const next: number[] = []
    for (const row of this.untold()) {
      const { heldUntil, leaseMs = 0, runId, peer } = row
      if (row.state !== 'taken' || heldUntil === undefined) continue
      // A finished result is still reported to the origin, which may have waited.
      if (runId !== undefined && outcomeOf(needs.tasks.run(runId))) continue
      if (heldUntil > clock.now()) next.push(heldUntil)
      else
        await this.#lapsed(
          row,
          `${peer} was not reachable for ${Math.round(leaseMs / 1000)} s, and may have assigned the task to another daemon`,
        )
    }
    return next.length > 0 ? Math.min(...next) : undefined
  }

  async #lapsed(row: TakenRow, error: string): Promise<void> {
    const stopped = await this.#stop(row, error)
    if (stopped) await this.#report(stopped, error)
  }

  /** Number of further attempts that may be taken now. */
  room(): number {
    if (!this.accepts()) return 0
    const busy = this.untold().filter(row => row.state === 'taken' || this.#held.has(keyOf(row)))
    const working = busy.filter(({ state }) => OPEN.has(state))
    return this.kernel.config.get(OffersAtOnce) - working.length
  }

  /** Drops the messages of a closed connection: the server delivers them again. */
  disconnected(): void {
    this.#held.clear()
    this.#due.clear()
  }

  /** Stores an offer before acting on it, and requests the attempt from its origin. */
  async offered(peer: PeerRow, content: OfferContent, held: Held): Promise<void> {
    const { clock, config, db } = this.kernel
    const { offer: id, attempt, title, brief, expires_at: expires } = content
    const key = { daemon: peer.daemon, id, attempt }
    const row = await db.tx(t => {
      const known = takenOffers.get(t, key)
      if (known) return known
      takenOffers.insert(t, {
        ...{ ...key, peer: peer.name, title, brief, state: 'offered', offeredAt: clock.now(), receipts: 0 },
        ...{ expiresAt: expires * 1000, agent: config.get(OfferAgent), workspaceId: config.get(OfferWorkspace) },
      })
      return undefined
    })
    // The attempt is in the stream twice, or its end was acknowledged.
    if (row?.toldAt !== undefined || this.#held.has(keyOf(key))) return held.done()
    this.#held.set(keyOf(key), held)
    if (row === undefined || row.state === 'offered') this.#due.set(keyOf(key), { at: 0, times: 0 })
  }

  /** Processes the state of local runs, and collects the due receipts. */
  async receipts(): Promise<{ readonly due: readonly { to: string; receipt: Receipt }[]; readonly next?: number }> {
    const due: { to: string; receipt: Receipt }[] = []
    const next: number[] = []
    for (const row of this.untold()) {
      const now = await this.#settle(row)
      const receipt = now && (await this.#receipt(now))
      if (receipt) due.push({ to: row.daemon, receipt })
      const { at } = this.#due.get(keyOf(row)) ?? {}
      if (at !== undefined) next.push(at)
    }
    return { due, ...(next.length > 0 && { next: Math.min(...next) }) }
  }

  /** Creates the task of an assigned attempt, or applies the end of its run. */
  async #settle(row: TakenRow): Promise<TakenRow | undefined> {
    const { clock, needs } = this.kernel
    if (peers.get(this.kernel.db, { daemon: row.daemon })?.revokedAt !== undefined) return this.#revoked(row)
    if (row.state === 'offered') return this.#held.has(keyOf(row)) ? row : this.#forget(row)
    if (row.state !== 'taken') {
      if ((row.endedAt ?? 0) + KEPT_MS > clock.now()) return row
      await this.#report(row, 'the origin did not answer')
      return undefined
    }
    if (row.runId === undefined) return this.#start(row)
    const run = needs.tasks.run(row.runId)
    const outcome = outcomeOf(run)
    if (!outcome) return row
    const move = outcome.status === 'completed' ? 'complete' : 'fail'
    if (run?.status === 'needs_attention')
      await needs.tasks.cancel(this.kernel.actor, row.taskId ?? '', 'the failure of the run was reported to the origin')
    this.#due.delete(keyOf(row))
    return this.#change(row, move, {
      outcome,
      ...(outcome.status === 'failed' && { error: outcome.error }),
      endedAt: clock.now(),
    })
  }

  /** Stops work for a peer whose key was revoked. */
  async #revoked(row: TakenRow): Promise<undefined> {
    const error = `the key of ${row.peer} is revoked`
    if (row.state === 'taken') await this.#stop(row, error)
    await this.#report(row, error)
    return undefined
  }

  /** @returns undefined if the attempt has ended meanwhile */
  async #stop(row: TakenRow, error: string): Promise<TakenRow | undefined> {
    const now = await this.#change(row, 'expire', { error, endedAt: this.kernel.clock.now() })
    if (now?.taskId !== undefined) await this.kernel.needs.tasks.cancel(this.kernel.actor, now.taskId, error)
    return now
  }

  /** Keeps an attempt requested by an earlier connection until it expires, because its receipts are numbered. */
  async #forget(row: TakenRow): Promise<undefined> {
    if (row.expiresAt + LINGER_MS < this.kernel.clock.now())
      await this.kernel.db.tx(t => takenOffers.delete(t, whereOf(row)))
    return undefined
  }

  /** The task id is derived from the attempt, so that a restarted daemon creates it only once. */
  async #start(row: TakenRow): Promise<TakenRow | undefined> {
    const { actor, log, needs } = this.kernel
    const id = `task_${createHash('sha256').update(keyOf(row)).digest('hex').slice(0, 16)}`
    const body = {
      ...{ id, title: row.title, description: row.brief, scope: 'workspace' as const, workspace: row.workspaceId },
      metadata: { offer: { peer: row.peer, id: row.id, attempt: row.attempt } },
    } as const
    const profile = { worker: { mode: 'select', agent_name: row.agent } } as const
    const more = { key: keyOf(row), origin: { kind: 'network', ref: `${row.peer}/${row.id}` }, profile } as const
    try {
      const { task, run } = await needs.tasks.submit(actor, body, more)
      const made = await this.#change(row, undefined, { taskId: task.id, ...(run && { runId: run.id }) })
      // The lease ended meanwhile.
      if (!made) await needs.tasks.cancel(actor, task.id, 'the attempt has ended')
      return made
    } catch (error) {
      const message = messageOf(error)
      log.warn('no task is created for an offer', { offer: row.id, error: message })
      return this.#change(row, 'fail', {
        ...{ outcome: { status: 'failed', error: message }, error: message, endedAt: this.kernel.clock.now() },
      })
    }
  }

  /** The due receipt of an attempt, if any. */
  async #receipt(row: TakenRow): Promise<Receipt | undefined> {
    const now = this.kernel.clock.now()
    const key = keyOf(row)
    const due = this.#due.get(key) ?? { at: now, times: 0 }
    if (due.at > now) return undefined
    if (row.state === 'offered' && due.times >= ASKS) {
      this.#leave(row, 'again')
      return undefined
    }
    const wait = Math.min(MOST_MS, ASK_MS * 2 ** due.times)
    this.#due.set(key, { at: now + Math.min(wait, (row.leaseMs ?? MOST_MS) / 3), times: due.times + 1 })
    const number = row.receipts + 1
    if (!(await this.#change(row, undefined, { receipts: number }))) return undefined
    const { id: offer, attempt, daemon: to } = row
    const about = { protocol: 'svc-offer-receipt/v1', offer, attempt, to, number } as const
    if (!row.outcome) return { ...about, status: 'working' }
    return { ...about, ...row.outcome }
  }

  /** Handles the origin's answer to a receipt. */
  async answered(peer: PeerRow, { offer, attempt, number, answer, lease_ms: leaseMs, message }: Answer): Promise<void> {
    const { clock, db } = this.kernel
    const row = takenOffers.get(db, { daemon: peer.daemon, id: offer, attempt })
    if (!row || row.toldAt !== undefined || number > row.receipts) return
    const key = keyOf(row)
    switch (answer) {
      case 'held': {
        if (!OPEN.has(row.state)) return
        const lease = leaseMs ?? row.leaseMs ?? MOST_MS
        const isNew = row.state === 'offered'
        // This connection already left the attempt to others.
        if (isNew && !this.#held.has(key)) return
        const heldUntil = clock.now() + lease
        await this.#change(row, isNew ? 'take' : undefined, { leaseMs: lease, heldUntil })
        if (isNew || lease !== row.leaseMs) this.held()
        this.#due.set(key, { at: clock.now() + lease / 3, times: 0 })
        return
      }
      case 'busy':
        if (row.state === 'offered') this.#leave(row, 'again')
        return
      case 'done':
        if (!OPEN.has(row.state)) await this.#report(row)
        return
      case 'closed':
        if (row.state === 'taken') await this.#stop(row, message ?? 'the attempt has ended')
        await this.#report(row, message)
    }
  }

  async #report(row: TakenRow, message?: string): Promise<void> {
    const { clock, db } = this.kernel
    const now = clock.now()
    await db.tx(t => {
      const before = takenOffers.get(t, whereOf(row))
      if (before?.state === 'offered')
        takenOffers.update(t, whereOf(row), { state: moved('offered', 'expire'), endedAt: now })
      takenOffers.update(t, whereOf(row), { toldAt: now, ...(message !== undefined && { error: message }) })
    })
    this.#leave(row, 'done')
  }

  #leave(row: Key, how: keyof Held): void {
    this.#held.get(keyOf(row))?.[how]()
    this.#held.delete(keyOf(row))
    this.#due.delete(keyOf(row))
  }

  /** @returns undefined, without a change, if the state of the attempt differs from the row */
  async #change(row: TakenRow, move: OfferMove | undefined, changes: Partial<TakenRow>): Promise<TakenRow | undefined> {
    const all = { ...changes, ...(move && { state: moved(row.state, move) }) }
    return this.kernel.db.tx(t => {
      const before = takenOffers.get(t, whereOf(row))
      if (before?.state !== row.state || before.toldAt !== row.toldAt) return undefined
      takenOffers.update(t, whereOf(row), all)
      return { ...before, ...all }
    })
  }
}

const keyOf = ({ daemon, id, attempt }: Key): string => `${daemon}:${id}:${attempt}`
const whereOf = ({ daemon, id, attempt }: Key): Key => ({ daemon, id, attempt })

/** Result of a run; undefined while it is in progress. */
function outcomeOf(run: TaskRun | undefined): Result | undefined {
  switch (run?.status) {
    case undefined:
      return { status: 'failed', error: 'the task was deleted' }
    case 'completed':
      return { status: 'completed', result: run.result ?? null }
    case 'failed':
    case 'canceled':
    case 'needs_attention':
      return { status: 'failed', error: run.error ?? `the run is ${run.status}` }
    default:
      return undefined
  }
}
