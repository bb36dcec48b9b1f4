import { Fault, messageOf } from '../../../kernel/plugin.js'
import type { SessionInfo, TurnOutcome } from '../../sessions/api.js'
import type { TaskCore } from '../core.js'
import type { Health } from '../health/health.js'
import type { Profiles } from '../profiles/profiles.js'
import { update } from '../rows.js'
import type { RunRow } from '../runs/run-row.js'
import type { Stalls } from '../scheduler/stalls.js'
import type { SchedulerState } from '../scheduler/state.js'
import { TaskSettings } from '../settings.js'
import { FINAL_RUN } from '../states.js'
import type { TaskBundles } from '../views/bundle.js'
import { whoOf } from '../who.js'
import { type Admission, isOwned } from './admission.js'
import type { Ladder } from './ladder.js'
import { ERROR_CHARS, promptOf, reminderOf } from './prompt.js'
import { startSession } from './session.js'
import { type WorkerRow, worktreeOf } from './worker-row.js'

/** How long a run is offered to sessions that wait for one, before a session is started for it. */
const OFFER_MS = 250
/** Runs that are looked at together. */
const BATCH = 100
/** How long the end of a process may take to be written down. */
const END_MS = 10_000
const POLL_MS = 50
/** How long a turn may go on whose run has ended. */
const LINGER_MS = 60_000

/** What keeps a session from being started now and says nothing about the run. */
const LATER: ReadonlySet<string> = new Set(['session_limit', 'draining', 'storage_full', 'stopping', 'tasks_stopping'])

/** Whose a run is: `over` when it ended by the hand of the worker, `lost` when it is not the worker's any more. */
type Holding = 'mine' | 'unclaimed' | 'attention' | 'over' | 'lost'

/** Starts sessions for runs that nobody claims, one for each, and sees to it that they end with them. */
export class Workers {
  readonly #active = new Map<string, Promise<void>>()
  /** Why sessions are stopped that worked for too long. */
  readonly #late = new Map<string, string>()
  #closing = false

  constructor(
    private readonly core: TaskCore,
    private readonly profiles: Profiles,
    private readonly scheduler: SchedulerState,
    private readonly health: Health,
    private readonly ladder: Ladder,
    private readonly admission: Admission,
    private readonly bundles: TaskBundles,
    private readonly stalls: Stalls,
    /** Milliseconds that a session may work on a run; 0 for no limit. */
    private readonly runtimeMs: () => number,
    /** Why a session may not have the runs of a task. */
    private readonly refused: (session: SessionInfo | undefined, task: string) => string | undefined,
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.core.kernel
    const close = () => {
      this.#closing = true
    }
    signal.addEventListener('abort', close, { once: true })
    while (!signal.aborted) {
      try {
        await this.look()
      } catch (error) {
        log.error(`the runs that wait could not be looked at: ${messageOf(error)}`)
      }
      await this.core.untilClaimable(signal)
      if (!signal.aborted) await clock.sleep(OFFER_MS, signal).catch(() => {})
    }
  }

  /** Ends what has nothing more to do, and starts what is missing. */
  async look(): Promise<void> {
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

  /** Runs of tasks with a profile that nobody works on. */
  #wanted(): RunRow[] {
    return this.core.kernel.db.all<RunRow>(
      `SELECT r.* FROM tasks_run r INDEXED BY tasks_run_profiled
       WHERE r.status = 'queued' AND r.claimable = 1 AND r.profiled = 1 AND r.place <> ''
         AND NOT EXISTS (SELECT 1 FROM tasks_worker w WHERE w.run_id = r.id AND w.ended_at IS NULL)
       ORDER BY r.priority DESC, r.queued_at, r.id LIMIT ${BATCH}`,
    )
  }

  /** Throws nothing: what keeps a session from being started is written with the run. */
  async #start(wanted: RunRow): Promise<void> {
    const worker = await this.admission.take(wanted)
    if (!worker) return
    const work = this.#work(worker).catch(error =>
      this.core.kernel.log.error(`the session for run ${worker.run_id} was lost: ${messageOf(error)}`, {
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
      started = await startSession(this.core, this.profiles, worker)
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
    const ms = this.runtimeMs()
    const stop = () => {
      const detail = `it worked longer than task.orchestration.default_max_runtime, ${ms / 1000} s`
      this.#late.set(session.id, detail)
      void sessions.stop(session.id, { reason: 'timeout', detail })
    }
    const overdue = ms === 0 ? undefined : this.core.kernel.clock.timeout(ms, stop, { unref: true })
    try {
      await this.#turns(worker, session.id, promptOf(task, run, { earlier, handoff, branch, bodyBytes }))
    } finally {
      overdue?.cancel()
      this.#late.delete(session.id)
    }
  }

  /** One turn, and another one when the agent has forgotten to end its run. */
  async #turns(worker: WorkerRow, session: string, prompt: string): Promise<void> {
    let error = await this.#turn(session, prompt)
    let holding = this.#holding(worker)
    if (error === undefined && (holding === 'mine' || holding === 'unclaimed')) {
      error = await this.#turn(session, reminderOf(this.core.runs.find(worker.run_id)))
      holding = this.#holding(worker)
    }
    // What stood still keeps its lease until that has expired or a person has decided; a daemon that ends decides nothing.
    if (this.#closing || holding === 'attention' || (holding === 'mine' && this.health.hasFrozen(session))) {
      await this.#save(worker)
      return
    }
    if (holding === 'over' || holding === 'lost') await this.#end(worker)
    else {
      // Its agent alone was told of the refusal.
      const refused =
        holding === 'unclaimed' ? this.refused(this.core.kernel.needs.sessions.get(session), worker.task_id) : undefined
      await this.#end(
        worker,
        error ??
          refused ??
          `the agent ended its turn, and the run is ${holding === 'mine' ? 'not ended' : 'not claimed'}`,
      )
    }
  }

  /** What went wrong; undefined when the agent was done. */
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
    // Whoever has the run then is decided when the end of the process is written down.
    if (outcome.failure.kind === 'process_exit') await this.#until(() => this.core.runs.ofSession(session).length === 0)
    return outcome.error
  }

  async #until(isSo: () => boolean): Promise<void> {
    const { clock } = this.core.kernel
    for (let waited = 0; !isSo() && waited < END_MS; waited += POLL_MS) await clock.sleep(POLL_MS)
  }

  /** Whose the run is, seen from a worker. */
  #holding(worker: WorkerRow): Holding {
    const { run_id: runId, session_id: session, claimed_at: claimed } = this.#row(worker)
    const run = this.core.runs.get(runId)
    if (run?.status === 'queued') return claimed === null ? 'unclaimed' : 'lost'
    if (!run || run.session_id !== session || run.status === 'canceled') return 'lost'
    if (FINAL_RUN.has(run.status)) return run.failure_kind === 'superseded' ? 'lost' : 'over'
    return run.status === 'needs_attention' ? 'attention' : 'mine'
  }

  /** Is there nothing more that the turn which runs could do for the run. One that has ended it may say a few words more. */
  #isOverdue(worker: WorkerRow): boolean {
    const holding = this.#holding(worker)
    if (holding === 'lost') return true
    const ended = this.core.runs.get(worker.run_id)?.ended_at ?? this.core.now()
    return holding === 'over' && this.core.now() - ended > LINGER_MS
  }

  #stop(session: string, run: string): void {
    const { needs, log } = this.core.kernel
    needs.sessions
      .stop(session, { reason: 'completed', detail: `run ${run} is not its own any more` })
      .catch(error => log.warn(`the session of a run did not stop: ${messageOf(error)}`, { session }))
  }

  /** Of a worker of which nobody waits for the end of a turn: an earlier daemon started it, or its process stood still. */
  async #retire(worker: WorkerRow): Promise<void> {
    const holding = this.#holding(worker)
    if (holding === 'attention' || (holding === 'mine' && this.health.hasFrozen(worker.session_id))) return
    if (holding === 'mine' && this.core.kernel.needs.sessions.get(worker.session_id ?? '')?.state !== 'stopped') return
    await this.#end(worker)
  }

  /** It ends: its session is stopped, which gives its run back, and what it has done is on its branch. */
  async #end(worker: WorkerRow, error?: string): Promise<void> {
    const { actor, needs, log } = this.core.kernel
    const row = this.#row(worker)
    const reason = error === undefined ? 'completed' : 'error'
    if (row.session_id !== null)
      await needs.sessions
        .stop(row.session_id, { reason, detail: error ?? `run ${worker.run_id} is over` })
        .catch(failed =>
          log.warn(`the session of a run did not stop: ${messageOf(failed)}`, { session: row.session_id }),
        )
    await this.#save(worker)
    const changes = {
      ended_at: this.core.now(),
      failed: Number(error !== undefined),
      error: error?.slice(0, ERROR_CHARS) ?? null,
    }
    await this.core.write(whoOf(actor), t => update(t, 'tasks_worker', worker.id, changes))
  }

  /** Commits what the agent has not. */
  async #save(worker: WorkerRow): Promise<void> {
    const { actor, needs, log } = this.core.kernel
    const worktree = worktreeOf(this.#row(worker))
    if (!worktree) return
    try {
      const commit = await needs.sessions.worktrees.save(worktree, `What was left of run ${worker.run_id}`)
      await this.core.write(whoOf(actor), t => update(t, 'tasks_worker', worker.id, { commit_id: commit }))
    } catch (error) {
      log.warn(`what run ${worker.run_id} left in ${worktree.folder} was not committed: ${messageOf(error)}`)
    }
  }

  #row({ id }: WorkerRow): WorkerRow {
    return this.core.kernel.db.get<WorkerRow>('SELECT * FROM tasks_worker WHERE id = ?', [id]) as WorkerRow
  }

  #forget({ id }: WorkerRow): Promise<void> {
    return this.core.write(
      whoOf(this.core.kernel.actor),
      t => void t.run('DELETE FROM tasks_worker WHERE id = ?', [id]),
    )
  }
}

const describe = (error: unknown) => (error instanceof Fault ? `${error.code}: ${error.message}` : messageOf(error))
