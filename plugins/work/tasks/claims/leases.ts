import { shown } from '../../../../kernel/kit/text.js'
import type { Tx } from '../../../../kernel/plugin.js'
import type { AgentRunReply, CompleteRunBody, FailRunBody, ReleaseBody, TaskLease } from '../../../../schemas/tasks.js'
import type { SessionInfo } from '../../sessions/api.js'
import { TaskErrors, type TaskEventName } from '../api.js'
import type { Settle, TaskCore } from '../core.js'
import { LIMITS } from '../limits.js'
import { leaseToWire, type RunRow, runTable, runToWire, taskOf } from '../runs/run-row.js'
import type { RunMove } from '../states.js'
import { bounded, checked, invalid } from '../tasks/write.js'
import { moveRun } from '../transitions.js'
import type { Who } from '../who.js'
import { latestWorker, resolvedWorktree, type WorkerRow, workerOf } from '../workers/worker-row.js'
import { leaseOf } from './claims.js'
import type { ClaimTokens } from './tokens.js'

/** Ids as the daemon generates them. */
const NAMED = /\b(?:task|trun)_[0-9a-f]{16}\b/g

/** The end of a lease. */
interface End {
  readonly move: RunMove
  readonly event: TaskEventName
  readonly changes?: Partial<RunRow>
  readonly payload?: Readonly<Record<string, unknown>>
}

/** Operations of a lease holder on its run. Every operation is fenced: a former holder is rejected. */
export class Leases {
  constructor(
    private readonly core: TaskCore,
    private readonly tokens: ClaimTokens,
    /** Whether the profile of a task requires a result on completion. */
    private readonly wantsResult: (t: Tx, task: string) => boolean,
  ) {}

  /** Renews the lease, counted from now. */
  heartbeat(session: SessionInfo, who: Who, id: string, seconds: number | undefined): Promise<TaskLease> {
    const leaseMs = leaseOf(seconds)
    return this.core.write(who, t => {
      const run = this.#fence(t, session, id)
      const now = this.core.now()
      const ms = leaseMs ?? (seconds === 0 ? LIMITS.lease.byDefault : (run.lease_ms ?? LIMITS.lease.byDefault))
      const longer = { heartbeat_at: now, lease_until: now + ms, lease_ms: ms }
      const after = { ...run, ...longer }
      runTable.update(t, { id }, longer)
      this.core.runs.leaseChanged(t, run, after)
      // The new lease may be the shorter one.
      this.core.deadlines.arm('runs', longer.lease_until + LIMITS.lease.late)
      this.core.journal.write(t, who, 'task.run_lease_extended', { task: taskOf(run), run: id })
      return leaseToWire(after)
    })
  }

  /** Marks the run as running; has no effect on a running run. */
  start(session: SessionInfo, who: Who, id: string): Promise<AgentRunReply['run']> {
    return this.core.write(who, (t, settle) => {
      const run = this.#fence(t, session, id)
      const started = run.status === 'running' ? run : moveRun(this.core, t, run, 'startByLease')
      if (started !== run) {
        this.core.journal.defer(who, 'task.run_started', { task: taskOf(run), run: id })
        settle(run.task_id)
      }
      return { ...runToWire(started), ...resolvedWorktree(this.#worker(t, session, id), session.id) }
    })
  }

  /** @param next of the claim that follows in the same request: its key, and a function that is called when it can begin */
  complete(
    session: SessionInfo,
    who: Who,
    id: string,
    body: CompleteRunBody,
    next?: { readonly key: string | undefined; readonly begin: () => void },
  ): Promise<TaskLease> {
    const result = bounded('result', body.result, LIMITS.result)
    const created = body.created_task_ids ?? []
    if (created.length > LIMITS.children) throw invalid(`created_task_ids: at most ${LIMITS.children} entries`)
    return this.#end(
      session,
      who,
      id,
      { move: 'completeByLease', event: 'task.run_completed', changes: { result, next_key: next?.key ?? null } },
      created,
      next?.begin,
    )
  }

  fail(session: SessionInfo, who: Who, id: string, { error, metadata }: FailRunBody): Promise<TaskLease> {
    const text = checked('error', error, LIMITS.text)
    if (text === undefined) throw invalid('error: required')
    const more = bounded('metadata', metadata)
    const changes = { error: text, failure_kind: 'agent_reported', ...(more === null ? {} : { metadata: more }) }
    return this.#end(session, who, id, {
      move: 'failByLease',
      event: 'task.run_failed',
      changes,
      payload: { error: text },
    })
  }

  /** Returns the run to the queue with its attempt unchanged. */
  release(session: SessionInfo, who: Who, id: string, { reason }: ReleaseBody): Promise<TaskLease> {
    const why = checked('reason', reason, LIMITS.reason) ?? ''
    return this.#end(session, who, id, { move: 'releaseByLease', event: 'task.run_released', payload: { reason: why } })
  }

  async #end(
    session: SessionInfo,
    who: Who,
    id: string,
    { move, event, changes, payload }: End,
    created: readonly string[] = [],
    applied?: () => void,
  ): Promise<TaskLease> {
    let isEnded = false
    const end = (t: Tx, settle: Settle) => {
      const run = this.#fence(t, session, id)
      const task = taskOf(run)
      // A run without an execution profile has the default one, which requires no result.
      const isUnproven = move === 'completeByLease' && !changes?.result && run.profiled !== 0
      if (isUnproven && this.wantsResult(t, task.id))
        throw TaskErrors.task_result_required(
          `the execution profile of task ${task.id} requires a result to complete run ${id}; the run stays open`,
        )
      const unknown = this.#unknown(t, session, task.workspace_id, created)
      if (unknown.length > 0) {
        this.core.journal.write(t, who, 'task.completion.hallucination_blocked', {
          task,
          run: id,
          payload: { unknown },
        })
        return unknown
      }
      const after = moveRun(this.core, t, run, move, changes)
      const suspected = this.#suspected(t, session, task.workspace_id, changes?.result)
      if (suspected.length > 0) {
        const details = { task, run: id, payload: { unknown: suspected } }
        this.core.journal.write(t, who, 'task.completion.hallucination_suspected', details)
      }
      this.core.journal.defer(who, event, { task, run: id, ...(payload ? { payload } : {}) })
      settle(run.task_id)
      isEnded = true
      return leaseToWire(after)
    }
    const ended = await this.core.write(who, end, () => isEnded && applied?.())
    if ('run_id' in ended) {
      this.tokens.forget(session.id, id)
      return ended
    }
    const names = ended.map(name => shown(name)).join(', ')
    throw TaskErrors.AUTONOMY_CREATED_TASKS_UNKNOWN(
      `session ${session.id} did not create these tasks in this workspace: ${names}; run ${id} stays open`,
    )
  }

  /** The ids that are not tasks created by this session in that workspace. */
  #unknown(t: Tx, session: SessionInfo, workspace: string | null, ids: readonly string[]): string[] {
    return ids.filter(id => {
      const task = this.core.tasks.get(id, t)
      const isOwn = task?.created_by_kind === 'agent_session' && task.created_by_ref === session.id
      return !isOwn || task.workspace_id !== workspace
    })
  }

  /** Ids in a result that have the form of a task or run id, but belong to nothing that the session can have seen. */
  #suspected(t: Tx, session: SessionInfo, workspace: string | null, result: string | null | undefined): string[] {
    const named = new Set(result?.match(NAMED) ?? [])
    return [...named].slice(0, LIMITS.children).filter(id => {
      const task = this.core.tasks.get(id.startsWith('trun_') ? (this.core.runs.get(id, t)?.task_id ?? '') : id, t)
      return !task || (task.workspace_id !== null && task.workspace_id !== (workspace ?? session.workspaceId))
    })
  }

  /** The worker of the run, if it has the session. */
  #worker(t: Tx, { id }: SessionInfo, run: string): WorkerRow | undefined {
    return workerOf(this.core, t, id) ? latestWorker(t, run) : undefined
  }

  /** The run, if the session holds its lease. */
  #fence(t: Tx, session: SessionInfo, id: string): RunRow {
    const run = this.core.runs.findLeased(id, t)
    if (run.session_id !== null && run.session_id !== session.id)
      throw TaskErrors.AUTONOMY_FOREIGN_RUN(`run ${id} is held by another session`)
    if (run.session_id === null || run.lease_until === null)
      throw TaskErrors.AUTONOMY_NO_ACTIVE_LEASE(`run ${id} has no active lease: it is ${run.status}`)
    if (run.lease_until <= this.core.now() || !this.tokens.fits(session.id, run))
      throw TaskErrors.AUTONOMY_LEASE_EXPIRED(
        `the lease of run ${id} has expired; updates from this session are rejected`,
      )
    return run
  }
}
