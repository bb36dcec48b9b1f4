import { command } from '../../../../kernel/kit/commands/command-line.js'
import { TokenBucket } from '../../../../kernel/kit/rate.js'
import { Fault, messageOf, type Tx } from '../../../../kernel/plugin.js'
import type {
  BulkRunsBody,
  BulkRunsReply,
  CompleteRunBody,
  FailRunBody,
  ReasonBody,
  SuccessorReply,
  Task,
  TaskRun,
} from '../../../../schemas/tasks.js'
import { TaskErrors, type TaskEventName } from '../api.js'
import type { ClaimTokens } from '../claims/tokens.js'
import type { Settle, TaskCore } from '../core.js'
import { LIMITS } from '../limits.js'
import { FINAL_TASK, type RunMove } from '../states.js'
import { NO_ATTENTION, showHint, taskTable } from '../tasks/task-row.js'
import { bounded, checked, invalid } from '../tasks/write.js'
import { moveRun } from '../transitions.js'
import { foreignWorkspace, type Who } from '../who.js'
import { type RunRow, runToWire } from './run-row.js'
import { unleased } from './run-state.js'

/** One change of a run without a lease. */
interface Change {
  readonly move: RunMove
  readonly event: TaskEventName
  readonly changes?: Partial<RunRow>
  readonly payload?: Readonly<Record<string, unknown>>
}

/** A run and its queued successor. */
interface Succession {
  readonly previous: RunRow
  readonly next: RunRow
}

/** Maximum number of rate-limit buckets; beyond that, all are reset. */
const MAX_BUCKETS = 10_000

/** Operations of an operator on runs without a lease, and forced operations on leased ones. */
export class RunControl {
  readonly #buckets = new Map<string, TokenBucket>()
  /** Number of force-failed runs since the daemon started. */
  forcedStops = 0

  constructor(
    private readonly core: TaskCore,
    private readonly tokens: ClaimTokens,
    /** Whether agents may use forced operations. */
    private readonly agentForce: () => boolean,
  ) {}

  /** Binds a session to a run. A queued run is claimed for it without a lease. */
  async attach(who: Who, id: string, session: string): Promise<TaskRun> {
    if (this.core.runs.find(id).status === 'queued') await this.core.kernel.needs.daemon.admit('task run claim')
    return this.#write(who, id, (t, run, settle) => {
      this.core.activeSession(session)
      const task = this.core.tasks.find(run.task_id, t)
      if (run.session_id !== null && run.session_id !== session)
        throw TaskErrors.task_run_leased(`run ${id} is held by session ${run.session_id}`)
      if (run.status === 'queued' && task.claimable === 0)
        throw TaskErrors.task_conflict(
          `run ${id} cannot be claimed: task ${task.id} is ${task.status}`,
          showHint(task.id),
        )
      const by = { session_id: session, claimed_by_kind: who.by.kind, claimed_by_ref: who.by.ref }
      const claimed =
        run.status === 'queued' ? moveRun(this.core, t, run, 'claim', { ...by, claimed_at: this.core.now() }) : run
      moveRun(this.core, t, claimed, 'bind', { session_id: session })
      if (run.status !== 'starting') this.core.journal.write(t, who, 'task.run_starting', { task, run: id })
      this.core.journal.write(t, who, 'task.run_session_bound', { task, run: id, payload: { session_id: session } })
      settle(task.id)
    })
  }

  start(who: Who, id: string): Promise<TaskRun> {
    return this.#write(who, id, (t, run, settle) => {
      const boundRun = unleased(run).status === 'claimed' ? moveRun(this.core, t, run, 'bind') : run
      this.#apply(t, who, boundRun, settle, { move: 'start', event: 'task.run_started' })
    })
  }

  complete(who: Who, id: string, body: CompleteRunBody): Promise<TaskRun> {
    const result = bounded('result', body.result, LIMITS.result)
    const change: Change = { move: 'complete', event: 'task.run_completed', changes: { result } }
    return this.#write(who, id, (t, run, settle) => this.#apply(t, who, unleased(run), settle, change))
  }

  fail(who: Who, id: string, { error, metadata }: FailRunBody): Promise<TaskRun> {
    const text = checked('error', error, LIMITS.text)
    if (text === undefined) throw invalid('error: required')
    const more = bounded('metadata', metadata)
    const changes = { error: text, failure_kind: 'operator_reported', ...(more === null ? {} : { metadata: more }) }
    const change: Change = { move: 'fail', event: 'task.run_failed', changes, payload: { error: text } }
    return this.#write(who, id, (t, run, settle) => this.#apply(t, who, unleased(run), settle, change))
  }

  /** Cancels a run and revokes its lease. */
  cancel(who: Who, id: string, { reason, metadata }: ReasonBody): Promise<TaskRun> {
    bounded('metadata', metadata)
    const why = checked('reason', reason, LIMITS.reason) ?? ''
    const changes = why === '' ? {} : { error: why }
    const change: Change = { move: 'cancel', event: 'task.run_canceled', changes, payload: { reason: why } }
    return this.#write(who, id, (t, run, settle) => this.#apply(t, who, run, settle, change))
  }

  forceRelease(who: Who, id: string, { reason, metadata }: ReasonBody): Promise<TaskRun> {
    bounded('metadata', metadata)
    const why = checked('reason', reason, LIMITS.reason) ?? ''
    return this.#write(who, id, (t, run, settle) => {
      this.#force(who, run)
      const { claimable } = this.core.tasks.find(run.task_id, t)
      const payload = { reason: why, forced: true }
      this.#apply(t, who, run, settle, {
        move: 'forceRelease',
        event: 'task.run_released',
        changes: { claimable },
        payload,
      })
    })
  }

  forceFail(who: Who, id: string, { reason, metadata }: ReasonBody): Promise<TaskRun> {
    bounded('metadata', metadata)
    const why = checked('reason', reason, LIMITS.reason)
    if (why === undefined) throw TaskErrors.task_reason_required(`reason: required to force-fail run ${id}`)
    const changes = { error: why, failure_kind: 'operator_forced' }
    const change: Change = {
      move: 'forceFail',
      event: 'task.run_operator_forced_fail',
      changes,
      payload: { reason: why },
    }
    return this.#write(who, id, (t, run, settle) => {
      this.#force(who, run)
      this.#apply(t, who, run, settle, change)
      this.forcedStops++
    })
  }

  /** Queues another attempt of a failed run, regardless of max_attempts. */
  retry(who: Who, id: string, metadata: unknown): Promise<SuccessorReply> {
    return this.#succession(who, (t, settle) => {
      const run = this.core.runs.find(id, t)
      if (run.status !== 'failed')
        throw TaskErrors.task_run_conflict(`run ${id} is ${run.status}; only failed runs can be retried`, {
          next: command('task run inspect', id),
        })
      return this.#succeed(t, who, run, settle, { event: 'task.run_operator_retry', metadata })
    })
  }

  /** Queues another attempt in place of a run that needs attention, and fails that run as superseded. */
  recover(who: Who, id: string, { reason, metadata }: ReasonBody): Promise<SuccessorReply> {
    const why = checked('reason', reason, LIMITS.reason)
    return this.#succession(who, (t, settle) =>
      this.#supersede(t, who, this.core.runs.find(id, t), settle, why, metadata),
    )
  }

  /** Recovers a task that needs attention: queues a run for each run that needs attention and for each failed part. */
  async recoverTask(who: Who, id: string, note: string | undefined): Promise<Task> {
    const why = checked('note', note, LIMITS.reason)
    await this.core.kernel.needs.daemon.admit('task recovery')
    return this.core.write(who, (t, settle) => {
      const task = this.core.tasks.find(id, t)
      const stuck = this.core.runs.open(id, t).filter(run => run.status === 'needs_attention')
      if (task.attention_at === null && stuck.length === 0)
        throw TaskErrors.task_conflict(`task ${id} does not need attention: it is ${task.status}`, showHint(id))
      for (const run of stuck) this.#supersede(t, who, run, settle, why)
      if (!FINAL_TASK.has(task.status))
        for (const run of this.core.runs.latest(id, t))
          if (run.status === 'failed' && run.designation_group_id !== null)
            this.#succeed(t, who, run, settle, { event: 'task.run_operator_retry' })
      taskTable.update(t, { id }, NO_ATTENTION)
      this.core.journal.write(t, who, 'task.recovered', { task, payload: { note: why ?? '' } })
      settle(id)
      return this.core.tasks.toWire(this.core.tasks.find(id, t), t)
    })
  }

  /** Applies the operation to each run. An error for one run does not affect the others. */
  async bulk(
    who: Who,
    what: 'forceRelease' | 'forceFail',
    { run_ids: ids, ...body }: BulkRunsBody,
  ): Promise<BulkRunsReply> {
    if (ids.length < 1 || ids.length > LIMITS.bulk) throw invalid(`run_ids: must have 1 to ${LIMITS.bulk} entries`)
    // A fault of the request refuses all of it; a fault of one run is the result of that run.
    this.#refuseAgent(who)
    bounded('metadata', body.metadata)
    if (checked('reason', body.reason, LIMITS.reason) === undefined && what === 'forceFail')
      throw TaskErrors.task_reason_required()
    const results: BulkRunsReply['results'] = []
    for (const id of ids) {
      try {
        results.push({ run_id: id, ok: true, run: await this[what](who, id, body) })
      } catch (error) {
        if (!(error instanceof Fault)) throw error
        results.push({ run_id: id, ok: false, error: { error: messageOf(error), code: error.code } })
      }
    }
    return { results }
  }

  async #succession(who: Who, work: (t: Tx, settle: Settle) => Succession): Promise<SuccessorReply> {
    await this.core.kernel.needs.daemon.admit('task run')
    const { previous, next } = await this.core.write(who, work)
    return { previous_run: runToWire(previous), run: runToWire(next) }
  }

  /** Fails a run that needs attention and queues its successor. */
  #supersede(t: Tx, who: Who, run: RunRow, settle: Settle, why?: string, metadata?: unknown): Succession {
    // The run keeps its original error; the reason for the recovery is in the event.
    const failed = moveRun(this.core, t, run, 'supersede', { failure_kind: 'superseded' })
    taskTable.update(t, { id: run.task_id }, NO_ATTENTION)
    const payload = why === undefined ? {} : { reason: why }
    return this.#succeed(t, who, failed, settle, { event: 'task.run_recovered_from_attention', payload, metadata })
  }

  /** Queues the successor of a failed run. */
  #succeed(
    t: Tx,
    who: Who,
    previous: RunRow,
    settle: Settle,
    { event, payload, metadata }: Pick<Change, 'event' | 'payload'> & { readonly metadata?: unknown },
  ): Succession {
    const { id } = previous
    this.#force(who, previous)
    if (this.#chain(t, previous) >= LIMITS.chain)
      throw TaskErrors.task_chain_too_long(
        `run ${id} already has a chain of ${LIMITS.chain} retries and recoveries; find out why they fail`,
        { next: command('task run list', previous.task_id) },
      )
    const task = this.core.tasks.find(previous.task_id, t)
    const { run, existing } = this.core.reservations.reserve(t, who, task, {
      key: `run.${event}.${id}`,
      metadata,
      previous,
      // A fan-out may have been completed although one of its parts had failed.
      reopens: this.core.runs.latest(task.id, t).some(latest => latest.id === id),
    })
    if (!existing)
      this.core.journal.write(t, who, event, { task, run: run.id, payload: { ...payload, previous_run_id: id } })
    settle(task.id)
    return { previous, next: this.core.runs.find(run.id, t) }
  }

  #chain(t: Tx, run: RunRow): number {
    let length = 1
    for (let at: RunRow | undefined = run; at?.previous_run_id; at = this.core.runs.get(at.previous_run_id, t)) length++
    return length
  }

  #apply(t: Tx, who: Who, run: RunRow, settle: Settle, { move, event, changes, payload }: Change): void {
    const task = this.core.tasks.find(run.task_id, t)
    moveRun(this.core, t, run, move, changes)
    // Ending a run that needs attention clears the mark of its task, unless another run still needs attention.
    const isAsked = () => this.core.runs.open(task.id, t).some(({ status }) => status === 'needs_attention')
    if (run.status === 'needs_attention' && !isAsked()) taskTable.update(t, { id: task.id }, NO_ATTENTION)
    if (run.session_id !== null && move !== 'start') this.tokens.forget(run.session_id, run.id)
    this.core.journal.write(t, who, event, { task, run: run.id, ...(payload ? { payload } : {}) })
    settle(task.id)
  }

  #write(who: Who, id: string, work: (t: Tx, run: RunRow, settle: Settle) => void): Promise<TaskRun> {
    return this.core.write(who, (t, settle) => {
      work(t, this.core.runs.find(id, t), settle)
      return runToWire(this.core.runs.find(id, t))
    })
  }

  /** Throws `task_force_refused` (403) when agents may not use forced operations. */
  #refuseAgent({ by }: Who): void {
    if (by.kind === 'agent_session' && !this.agentForce()) throw TaskErrors.task_force_refused()
  }

  /** Throws 403 when the agent may not use forced operations here, and `task_force_limit` (429) above the rate limit per caller and task. */
  #force(who: Who, run: RunRow): void {
    const { by } = who
    this.#refuseAgent(who)
    if (by.kind === 'agent_session') {
      const own = this.core.kernel.needs.sessions.get(by.ref)?.workspaceId
      if (run.place !== '' && run.place !== own) throw foreignWorkspace()
    }
    const { count, windowMs } = LIMITS.force
    const key = `${by.kind}/${by.ref}/${run.task_id}`
    if (this.#buckets.size > MAX_BUCKETS) this.#buckets.clear()
    const rate = { burst: count, perSecond: (count / windowMs) * 1000 }
    const bucket = this.#buckets.get(key) ?? new TokenBucket(rate, this.core.kernel.clock)
    this.#buckets.set(key, bucket)
    if (!bucket.tryTake(1)) {
      const text = `more than ${count} forced operations per minute on task ${run.task_id}`
      throw TaskErrors.task_force_limit(text, { retryAfter: Math.ceil(windowMs / count / 1000) })
    }
  }
}
