import { shown } from '../../../kernel/kit/text.js'
import type { Reads, Tx } from '../../../kernel/plugin.js'
import type { ParticipationRequest } from '../../../schemas/network.js'
import type { ParticipationAnswer, SessionInfo } from '../sessions/api.js'
import { TaskErrors } from './api.js'
import { Budgets } from './budgets/budgets.js'
import { Cache } from './cache.js'
import { Deadlines } from './deadlines.js'
import { TaskJournal } from './journal.js'
import type { K } from './needs.js'
import { RunParticipation, UnaskedError } from './runs/participation.js'
import { Reservations, type Wants } from './runs/reserve.js'
import type { RunKind } from './runs/run-row.js'
import { RunStore } from './runs/run-store.js'
import { Reconciler } from './tasks/reconcile.js'
import type { TaskRow } from './tasks/task-row.js'
import { TaskStore } from './tasks/task-store.js'
import { Totals } from './totals.js'
import { settle } from './transitions.js'
import { Wakes } from './wakes/wakes.js'
import type { Who } from './who.js'
import type { WorkerRow } from './workers/worker-row.js'

/** Reconciles the statuses of the given tasks and of the tasks that depend on them, within the transaction. */
export type Settle = (...tasks: readonly string[]) => void

/** The states of sessions that may hold runs. */
const WORKING: ReadonlySet<SessionInfo['state']> = new Set(['active', 'starting'])

/** State and stores shared by all parts of the plugin. */
export class TaskCore {
  readonly tasks: TaskStore
  /** Counts of tasks and runs by status; tasks also by scope, runs also by kind of origin. */
  readonly totals: { readonly tasks: Totals; readonly runs: Totals }
  readonly runs: RunStore
  /** Facts that every claim needs. A transaction that changes them directly has to report it. */
  readonly caches: {
    /** The worker of a session; null: the session was not started for a run. */
    readonly workers: Cache<WorkerRow | null>
    /** When the first open block expires, in epoch milliseconds; null: none does. */
    readonly expiry: Cache<{ readonly at: number | null }>
    readonly paused: Cache<boolean>
  }
  readonly journal: TaskJournal
  readonly deadlines: Deadlines
  readonly participation: RunParticipation
  readonly reservations: Reservations
  readonly reconciler: Reconciler
  readonly budgets: Budgets
  readonly wakes: Wakes
  /** Callers waiting in {@link untilClaimable}. */
  readonly #waiting = new Set<() => void>()
  #wakings = 0
  #isPlaceWanted = false

  constructor(
    readonly kernel: K,
    {
      wantsOf,
      profiled,
      guided,
    }: {
      readonly wantsOf: (t: Tx, task: TaskRow, kind: RunKind) => Wants
      /** The participation request in the execution profile of a task. */
      readonly profiled: (t: Tx, task: TaskRow) => ParticipationRequest | null | undefined
      /** Whether the execution profile of a task wants a coordinator. */
      readonly guided: (reads: Reads, task: string) => boolean
    },
  ) {
    const now = () => kernel.clock.now()
    this.totals = {
      tasks: new Totals(kernel.db, 'tasks_task'),
      runs: new Totals(kernel.db, 'tasks_run'),
    }
    this.tasks = new TaskStore(kernel.db, now)
    this.runs = new RunStore(kernel.db)
    this.caches = { workers: new Cache(kernel.db), expiry: new Cache(kernel.db), paused: new Cache(kernel.db) }
    this.journal = new TaskJournal(kernel)
    this.deadlines = new Deadlines(kernel.clock, kernel.log)
    this.reconciler = new Reconciler(this)
    this.budgets = new Budgets(this)
    this.wakes = new Wakes(this)
    this.participation = new RunParticipation(kernel)
    this.reservations = new Reservations(
      ...([kernel.ids, now, this.runs, this.journal, this.totals.runs, this.participation] as const),
      profiled,
      wantsOf,
      guided,
    )
  }

  now(): number {
    return this.kernel.clock.now()
  }

  /** Returns a session that can hold runs. Throws `AUTONOMY_SESSION_REQUIRED` (409) if it is unknown, stopping or stopped. */
  activeSession(id: string): SessionInfo {
    const session = this.kernel.needs.sessions.get(id)
    if (session && WORKING.has(session.state)) return session
    const text = session ? `session ${id} is ${session.state}, not active` : `no active session: ${shown(id, 100)}`
    throw TaskErrors.AUTONOMY_SESSION_REQUIRED(text)
  }

  /**
   * One atomic change. Its effects on waiting claims and other tasks follow once it is durable.
   * @param applied called when later transactions can see the change; it is not durable yet, and they are not before it is
   */
  async write<T>(who: Who, work: (t: Tx, settle: Settle) => T, applied?: () => unknown): Promise<T> {
    const once = (t: Tx) => this.journal.collected(t, () => work(t, (...ids) => settle(this, t, who, ids)))
    const answers = new Map<string, ParticipationAnswer>()
    for (;;)
      try {
        return await this.kernel.db.tx(t => {
          const result = this.participation.with(answers, () => once(t))
          applied?.()
          return result
        })
      } catch (error) {
        // The transaction was rolled back; it is repeated after the hooks have answered, once per task.
        if (!(error instanceof UnaskedError) || answers.has(error.taskId)) throw error
        answers.set(error.taskId, await error.ask())
      }
  }

  /** Has to be called when rows of a task in other tables are deleted or inserted with it. */
  rowsMoved(t: Tx): void {
    this.caches.expiry.changedAll(t)
    this.caches.workers.changedAll(t)
  }

  /** Number of times that waiting claims were woken. */
  get wakings(): number {
    return this.#wakings
  }

  /** A claim waits for a free slot in its workspace. */
  get isPlaceWanted(): boolean {
    return this.#isPlaceWanted
  }

  /** Registers a claim that waits for a free slot in its workspace, which the end of any run may provide. */
  waitForPlace(): void {
    this.#isPlaceWanted = true
  }

  /** Wakes the waiting claims: a run has become claimable, or a slot free. */
  tellClaimable(): void {
    this.#wakings++
    this.#isPlaceWanted = false
    for (const tell of [...this.#waiting]) tell()
  }

  /**
   * Resolves when waiting claims are woken, when the signal aborts, or at the latest after `ms` milliseconds.
   * @param since value of `wakings` before the claim attempt, so that no waking since then is missed
   */
  untilClaimable(signal: AbortSignal, since: number, ms: number | undefined): Promise<void> {
    if (since !== this.#wakings) return Promise.resolve()
    return new Promise(resolve => {
      const end = () => {
        timer?.cancel()
        this.#waiting.delete(end)
        signal.removeEventListener('abort', end)
        resolve()
      }
      const timer = ms === undefined ? undefined : this.kernel.clock.timeout(ms, end, { unref: true })
      this.#waiting.add(end)
      signal.addEventListener('abort', end, { once: true })
      if (signal.aborted) end()
    })
  }
}
