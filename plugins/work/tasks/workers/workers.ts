import { clip } from '../../../../kernel/kit/text.js'
import { Fault, messageOf } from '../../../../kernel/plugin.js'
import type { SessionInfo, TurnOutcome } from '../../sessions/api.js'
import type { TaskCore } from '../core.js'
import type { Health } from '../health/health.js'
import type { Profiles } from '../profiles/profiles.js'
import type { RunRow } from '../runs/run-row.js'
import type { Stalls } from '../scheduler/stalls.js'
import type { SchedulerState } from '../scheduler/state.js'
import { TaskSettings } from '../settings.js'
import { FINAL_RUN } from '../states.js'
import type { TaskBundles } from '../views/bundle.js'
import { whoOf } from '../who.js'
import { type Admission, isOwned } from './admission.js'
import type { Coordinators } from './coordinators.js'
import type { Ladder } from './ladder.js'
import { ERROR_CHARS, promptOf, reminderOf } from './prompt.js'
import { startSession } from './session.js'
import { changeWorker, type WorkerRow, worktreeOf } from './worker-row.js'

/** How long waiting sessions can claim a new run before a session is started for it. */
const OFFER_MS = 250
/** Interval in milliseconds of the passes while workers run or runs wait for one. */
const LOOK_MS = 5000
/** Maximum number of runs per pass. */
const BATCH = 100
/** How long to wait until the exit of a process is recorded. */
const END_MS = 10_000
const POLL_MS = 50
/** How long a turn may continue after its run has ended. */
const LINGER_MS = 60_000

/** Temporary errors that do not count as a failed session. */
const LATER: ReadonlySet<string> = new Set([
  'session_limit',
  'draining',
  'home_held',
  'storage_full',
  'stopping',
  'tasks_stopping',
])

/** State of a run from the view of its worker: `over`: ended by the worker; `lost`: no longer held by it. */
type Holding = 'mine' | 'unclaimed' | 'attention' | 'over' | 'lost'

/** Starts one session per unclaimed run, and stops it when the run ends. */
export class Workers {
  readonly #active = new Map<string, Promise<void>>()
  /** Stop reason of sessions that exceeded the maximum runtime. */
  readonly #late = new Map<string, string>()
  #closing = false

  constructor(
    private readonly core: TaskCore,
    private readonly coordinators: Coordinators,
    private readonly profiles: Profiles,
    private readonly scheduler: SchedulerState,
    private readonly health: Health,
    private readonly ladder: Ladder,
    private readonly admission: Admission,
    private readonly bundles: TaskBundles,
    private readonly stalls: Stalls,
    /** Maximum runtime of a session for a run in milliseconds, and its setting; 0: no limit. */
    private readonly runtime: (run: RunRow) => { readonly ms: number; readonly path: string },
    /** Why budgets do not allow a session to claim runs of a task. */
    private readonly refused: (session: SessionInfo | undefined, task: string) => string | undefined,
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, needs } = this.core.kernel
    await needs.daemon.released(signal)
    const close = () => {
      this.#closing = true
    }
    signal.addEventListener('abort', close, { once: true })
    while (!signal.aborted) {
      const { wakings } = this.core
      let next: number | undefined = LOOK_MS
      try {
        await this.runPass()
        next = this.#next()
      } catch (error) {
        log.error(`the worker pass failed: ${messageOf(error)}`)
      }
      await this.core.untilClaimable(signal, wakings, next)
      if (!signal.aborted) await clock.sleep(OFFER_MS, signal).catch(() => {})
    }
  }

  /** One pass: ends finished workers and starts missing ones. */
  async runPass(): Promise<void> {
    const { db } = this.core.kernel
    for (const worker of db.all<WorkerRow>('SELECT * FROM tasks_worker WHERE ended_at IS NULL'))
      if (!this.#active.has(worker.id)) await this.#retire(worker)
      else if (worker.session_id !== null && this.#isOverdue(worker)) this.#stop(worker.session_id, worker.run_id)
    if (this.scheduler.pausedIn(db)) return this.stalls.note('fine', 0)
    const wanted = [...this.#wanted(), ...(await this.ladder.starved())].filter(run => !isOwned(run))
    for (const run of wanted) await this.#start(run)
    const isIdle = wanted.length === 0 || this.scheduler.activeClaims() > 0
    await this.stalls.note(isIdle ? 'fine' : this.#active.size > 0 ? 'starting' : 'vain', wanted.length)
  }

  /** Milliseconds until the next pass; undefined: nothing becomes due before a run becomes claimable. */
  #next(): number | undefined {
    const { db } = this.core.kernel
    if (db.row('SELECT 1 FROM tasks_worker WHERE ended_at IS NULL LIMIT 1')) return LOOK_MS
    if (this.scheduler.pausedIn(db)) return undefined
    if (this.#wanted().length > 0) return LOOK_MS
    const starving = this.ladder.next()
    return starving === undefined ? undefined : Math.max(LOOK_MS, starving - this.core.now())
  }

  /** Claimable runs of tasks with a profile that have no open worker. */
  #wanted(): RunRow[] {
    return this.core.kernel.db.all<RunRow>(
      `SELECT r.* FROM tasks_run r INDEXED BY tasks_run_profiled
       WHERE r.status = 'queued' AND r.claimable = 1 AND r.profiled = 1
         AND NOT EXISTS (SELECT 1 FROM tasks_worker w WHERE w.run_id = r.id AND w.ended_at IS NULL)
       ORDER BY r.priority DESC, r.queued_at, r.id LIMIT ${BATCH}`,
    )
  }

  /** Never throws: an error is recorded with the run. */
  async #start(wanted: RunRow): Promise<void> {
    const worker = await this.admission.take(wanted)
    if (!worker) return
    const work = this.#work(worker).catch(error =>
      this.core.kernel.log.error(`the worker of run ${worker.run_id} failed: ${messageOf(error)}`, {
        run: worker.run_id,
      }),
    )
    this.#active.set(
      worker.id,
      work.finally(() => this.#active.delete(worker.id)),
    )
  }

  async #work(worker: WorkerRow): Promise<void> {
    const { sessions } = this.core.kernel.needs
    let started: { readonly session: SessionInfo; readonly branch: string | undefined }
    try {
      started = await startSession(this.core, this.coordinators, this.profiles, worker)
    } catch (error) {
      if (error instanceof Fault && LATER.has(error.code)) await this.#forget(worker)
      else await this.#end(worker, describe(error))
      return
    }
    const { session, branch } = started
    this.stalls.started()
    const run = this.core.runs.find(worker.run_id)
    const task = this.core.tasks.find(run.task_id)
    const earlier = this.bundles.earlier(run)
    const handoff = this.bundles.handoff(run, earlier)
    const bodyBytes = this.core.kernel.config.get(TaskSettings.bodyBytes)
    const { ms, path } = this.runtime(run)
    const stop = () => {
      const detail = `exceeded ${path} (${ms / 1000} s)`
      this.#late.set(session.id, detail)
      void sessions.stop(session.id, { reason: 'timeout', detail })
    }
    const overdue = ms === 0 ? undefined : this.core.kernel.clock.timeout(ms, stop, { unref: true })
    try {
      const lead = this.#lead(run)
      await this.#turns(worker, session.id, promptOf(task, run, { earlier, handoff, branch, bodyBytes, lead }))
    } finally {
      overdue?.cancel()
      this.#late.delete(session.id)
    }
  }

  /** The guidance and the worker runs of a coordinator, for its prompt. */
  #lead({ kind, task_id: task, designation_group_id: group }: RunRow) {
    if (kind !== 'coordinator') return undefined
    const parts = this.core.runs.latest(task).filter(one => one.kind !== kind && one.designation_group_id === group)
    return { guidance: this.profiles.partsOf(task).coordinator.guidance, parts }
  }

  /** Runs one turn, and a reminder turn when the agent has not ended its run. */
  async #turns(worker: WorkerRow, session: string, prompt: string): Promise<void> {
    let error = await this.#turn(session, prompt)
    let holding = this.#holding(worker)
    if (error === undefined && (holding === 'mine' || holding === 'unclaimed')) {
      error = await this.#turn(session, reminderOf(this.core.runs.find(worker.run_id)))
      holding = this.#holding(worker)
    }
    // An unresponsive session keeps its lease until that expires or an operator decides; a stopping daemon decides nothing.
    if (this.#closing || holding === 'attention' || (holding === 'mine' && this.health.hasFrozen(session))) {
      await this.#save(worker)
      return
    }
    if (holding === 'over' || holding === 'lost') await this.#end(worker)
    else {
      // Only the agent has seen the error of its claim.
      const refused =
        holding === 'unclaimed' ? this.refused(this.core.kernel.needs.sessions.get(session), worker.task_id) : undefined
      await this.#end(
        worker,
        error ?? refused ?? `the agent ended its turn without ${holding === 'mine' ? 'ending' : 'claiming'} the run`,
      )
    }
  }

  /** Returns the error of the turn; undefined when it completed. */
  async #turn(session: string, text: string): Promise<string | undefined> {
    const { sessions } = this.core.kernel.needs
    let outcome: TurnOutcome
    try {
      outcome = await sessions.run(session, { text, source: 'tasks' })
    } catch (error) {
      return describe(error)
    }
    if (outcome.status === 'completed') return undefined
    if (outcome.status === 'canceled') return this.#late.get(session) ?? 'the turn was canceled'
    // The holder of the run is only known once the exit of the process is recorded.
    if (outcome.failure.kind === 'process_exit') await this.#until(() => this.core.runs.ofSession(session).length === 0)
    return outcome.error
  }

  async #until(isSo: () => boolean): Promise<void> {
    const { clock } = this.core.kernel
    for (let waited = 0; !isSo() && waited < END_MS; waited += POLL_MS) await clock.sleep(POLL_MS)
  }

  /** State of the run from the view of its worker. */
  #holding(worker: WorkerRow): Holding {
    const { run_id: runId, session_id: session, claimed_at: claimed } = this.#row(worker)
    const run = this.core.runs.get(runId)
    if (run?.status === 'queued') return claimed === null ? 'unclaimed' : 'lost'
    if (!run || run.session_id !== session || run.status === 'canceled') return 'lost'
    if (FINAL_RUN.has(run.status)) return run.failure_kind === 'superseded' ? 'lost' : 'over'
    return run.status === 'needs_attention' ? 'attention' : 'mine'
  }

  /** Whether the turn should be stopped. A session that has ended its run may finish its turn within the linger time. */
  #isOverdue(worker: WorkerRow): boolean {
    const holding = this.#holding(worker)
    if (holding === 'lost') return true
    const ended = this.core.runs.get(worker.run_id)?.ended_at ?? this.core.now()
    return holding === 'over' && this.core.now() - ended > LINGER_MS
  }

  #stop(session: string, run: string): void {
    const { needs, log } = this.core.kernel
    needs.sessions
      .stop(session, { reason: 'completed', detail: `run ${run} is no longer held by this session` })
      .catch(error => log.warn(`the session of run ${run} did not stop: ${messageOf(error)}`, { session }))
  }

  /** Ends a worker without a running turn: the previous daemon started it, or its process was unresponsive. */
  async #retire(worker: WorkerRow): Promise<void> {
    const holding = this.#holding(worker)
    if (holding === 'attention' || (holding === 'mine' && this.health.hasFrozen(worker.session_id))) return
    if (holding === 'mine' && this.core.kernel.needs.sessions.get(worker.session_id ?? '')?.state !== 'stopped') return
    await this.#end(worker)
  }

  /** Ends a worker: stops its session, which requeues an open run, and commits its worktree, or removes an unused one. */
  async #end(worker: WorkerRow, error?: string): Promise<void> {
    const { needs, log } = this.core.kernel
    const row = this.#row(worker)
    const reason = error === undefined ? 'completed' : 'error'
    if (row.session_id !== null)
      await needs.sessions
        .stop(row.session_id, { reason, detail: error ?? `run ${worker.run_id} has ended` })
        .catch(failed =>
          log.warn(`the session of run ${worker.run_id} did not stop: ${messageOf(failed)}`, {
            session: row.session_id,
          }),
        )
    if (error === undefined || !(await this.#discard(worker))) await this.#save(worker)
    const changes = {
      ended_at: this.core.now(),
      failed: Number(error !== undefined),
      error: error === undefined ? null : clip(error, ERROR_CHARS),
    }
    await this.#change(worker, changes)
    this.coordinators.ended(row, error)
  }

  /** Removes the worktree made for a session that failed before it changed anything. */
  async #discard(worker: WorkerRow): Promise<boolean> {
    const { needs, log } = this.core.kernel
    const worktree = worktreeOf(this.#row(worker))
    if (!worktree?.branch.startsWith(`svc/${worker.run_id}`)) return false
    try {
      if (!(await needs.sessions.worktrees.discardUnused(worktree))) return false
    } catch (error) {
      log.warn(`the unused worktree ${worktree.folder} was not removed: ${messageOf(error)}`)
      return false
    }
    await this.#change(worker, { worktree: null })
    return true
  }

  /** Commits uncommitted changes in the worktree. */
  async #save(worker: WorkerRow): Promise<void> {
    const { needs, log } = this.core.kernel
    const worktree = worktreeOf(this.#row(worker))
    if (!worktree) return
    try {
      const commit = await needs.sessions.worktrees.save(worktree, `Uncommitted changes of run ${worker.run_id}`)
      await this.#change(worker, { commit_id: commit })
    } catch (error) {
      log.warn(
        `uncommitted changes of run ${worker.run_id} in ${worktree.folder} were not committed: ${messageOf(error)}`,
      )
    }
  }

  #change({ id }: WorkerRow, changes: Partial<WorkerRow>): Promise<void> {
    return this.core.write(whoOf(this.core.kernel.actor), t => changeWorker(this.core, t, id, changes))
  }

  #row({ id }: WorkerRow): WorkerRow {
    return this.core.kernel.db.get<WorkerRow>('SELECT * FROM tasks_worker WHERE id = ?', [id]) as WorkerRow
  }

  #forget({ id }: WorkerRow): Promise<void> {
    return this.core.write(whoOf(this.core.kernel.actor), t => {
      t.run('DELETE FROM tasks_worker WHERE id = ?', [id])
      this.core.caches.workers.changedAll(t)
    })
  }
}

const describe = (error: unknown) => (error instanceof Fault ? `${error.code}: ${error.message}` : messageOf(error))
