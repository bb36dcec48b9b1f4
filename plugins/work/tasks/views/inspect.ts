import { clip } from '../../../../kernel/kit/text.js'
import { iso } from '../../../../kernel/plugin.js'
import type { InspectedRun, InspectReply, RunDetailReply } from '../../../../schemas/tasks.js'
import type { SessionInfo } from '../../sessions/api.js'
import type { TaskCore } from '../core.js'
import { runFinding } from '../doctor/findings.js'
import type { EventRow } from '../journal.js'
import { optionalMember } from '../rows.js'
import { type RunRow, runToWire } from '../runs/run-row.js'
import type { SchedulerState } from '../scheduler/state.js'
import { summaryToWire, type TaskRow } from '../tasks/task-row.js'
import { latestWorker, runWorktree, workerToWire } from '../workers/worker-row.js'
import type { TaskDetails } from './detail.js'
import { decidingRun, nextStepOf } from './next-step.js'

const RECENT = { runs: 10, events: 20 }
/** Characters of a hash that distinguish two leases. */
const HASH_CHARS = 'sha256:'.length + 12
const ERROR_CHARS = 500

/** Inspection of tasks and runs: why they are not progressing and what to do next. */
export class TaskInspection {
  constructor(
    private readonly core: TaskCore,
    private readonly details: TaskDetails,
    private readonly scheduler: SchedulerState,
  ) {}

  run(id: string): RunDetailReply['run'] {
    const run = this.core.runs.find(id)
    const task = this.core.tasks.find(run.task_id)
    const session = this.#session(run)
    const [latest] = this.#events('run_id', run.id, 1)
    const worker = latestWorker(this.core.kernel.db, run.id)
    return {
      run: runToWire(run),
      task: summaryToWire(task),
      ...optionalMember('worker', worker && workerToWire(worker)),
      ...optionalMember('worktree', runWorktree(worker)),
      session: session
        ? {
            session_id: session.id,
            agent_name: session.agentName,
            ...optionalMember('name', session.name),
            state: session.state,
            workspace_id: session.workspaceId,
            created_at: iso(session.createdAt),
            updated_at: iso(session.updatedAt),
          }
        : null,
      summary: {
        last_activity_at: iso(latest?.at ?? run.queued_at),
        ...optionalMember('last_event_type', latest?.name),
      },
    }
  }

  inspectRun(id: string): InspectReply['inspect'] {
    const run = this.core.runs.find(id)
    return this.#inspect(id, this.core.tasks.find(run.task_id), run)
  }

  inspectTask(id: string): InspectReply['inspect'] {
    const task = this.core.tasks.find(id)
    return this.#inspect(id, task, decidingRun(this.core, id))
  }

  #inspect(target: string, task: TaskRow, run: RunRow | undefined): InspectReply['inspect'] {
    const { paused, paused_at, paused_by, paused_reason } = this.scheduler.toWire()
    const session = this.#session(run)
    const { why, next } = nextStepOf(this.core, task, run)
    return {
      target,
      as_of: iso(this.core.now()),
      ...optionalMember('why', why),
      next_action: next,
      task: this.details.overview(task),
      current_run: run ? this.#inspected(run) : null,
      recent_runs: this.core.runs.list(task.id, { limit: RECENT.runs }).map(recent => this.#inspected(recent)),
      bound_session: session
        ? {
            session_id: session.id,
            agent_name: session.agentName,
            provider_name: session.provider,
            workspace_id: session.workspaceId,
            state: session.state,
            ...optionalMember('stop_reason', session.stopReason),
            ...optionalMember('failure_kind', session.failure?.kind),
            started_at: iso(session.createdAt),
            last_activity_at: iso(session.updatedAt),
          }
        : null,
      recent_events: this.#events('task_id', task.id, RECENT.events).map(event => ({
        id: event.event_id,
        type: event.name,
        task_id: event.task_id,
        ...optionalMember('run_id', event.run_id),
        ...(event.actor_kind === 'agent_session' ? { session_id: event.actor_ref } : {}),
        timestamp: iso(event.at),
      })),
      scheduler: {
        paused,
        paused_at,
        ...optionalMember('paused_by', paused_by),
        ...optionalMember('reason', paused_reason),
      },
      diagnostics: run ? [runFinding(this.core, run)].filter(item => item !== undefined) : [],
    }
  }

  #inspected(run: RunRow): InspectedRun {
    const time = (at: number | null) => (at === null ? null : iso(at))
    const beat = run.heartbeat_at
    return {
      run_id: run.id,
      task_id: run.task_id,
      status: run.status,
      attempt: run.attempt,
      retries: run.recovery_count,
      ...optionalMember('previous_run_id', run.previous_run_id),
      ...optionalMember('bound_session_id', run.session_id),
      ...optionalMember('claim_token_hash_truncated', run.token_hash?.slice(0, HASH_CHARS)),
      queued_at: iso(run.queued_at),
      started_at: time(run.started_at),
      ended_at: time(run.ended_at),
      heartbeat_at: time(beat),
      heartbeat_age_seconds: beat === null ? null : Math.floor((this.core.now() - beat) / 1000),
      lease_until: time(run.lease_until),
      ...optionalMember('failure_kind', run.failure_kind),
      ...optionalMember('last_error_summary', run.error && clip(run.error, ERROR_CHARS)),
    }
  }

  #session(run: RunRow | undefined): SessionInfo | undefined {
    return run?.session_id ? this.core.kernel.needs.sessions.get(run.session_id) : undefined
  }

  /** The newest events, newest first. Events of a run are searched among those of its task. */
  #events(column: 'task_id' | 'run_id', id: string, limit: number): EventRow[] {
    const task = column === 'task_id' ? id : this.core.runs.find(id).task_id
    return this.core.kernel.db.all<EventRow>(
      `SELECT * FROM tasks_event WHERE task_id = ? AND ${column} = ? ORDER BY seq DESC LIMIT +?`,
      [task, id, limit],
    )
  }
}
