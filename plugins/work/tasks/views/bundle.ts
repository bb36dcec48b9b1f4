import { iso } from '../../../../kernel/plugin.js'
import type {
  ActiveRun,
  DatedRun,
  ReviewContinuation,
  TaskBundle,
  TaskLease,
  TaskSituation,
} from '../../../../schemas/tasks.js'
import { cutText } from '../../../agents/sidecars/api.js'
import type { SessionInfo } from '../../sessions/api.js'
import { tokensOf } from '../budgets/ledger.js'
import type { TaskCore } from '../core.js'
import type { Profiles } from '../profiles/profiles.js'
import { NEVER, type ReviewRow } from '../reviews/review-row.js'
import { optionalMember } from '../rows.js'
import { activeToWire, leaseToWire, type RunRow } from '../runs/run-row.js'
import { TaskSettings } from '../settings.js'
import { FINAL_RUN } from '../states.js'
import { summaryToWire, type TaskRow } from '../tasks/task-row.js'
import { refToWire } from '../who.js'
import type { TaskHistory } from './timeline.js'

const CUT = '\n[truncated]'

/** The context of a run for its lease holder, bounded by the settings in `task.orchestration`. */
export class TaskBundles {
  constructor(
    private readonly core: TaskCore,
    private readonly profiles: Profiles,
    private readonly history: TaskHistory,
  ) {}

  /** The active leases of a session. */
  leases({ id }: SessionInfo): TaskLease[] {
    return this.#held(id).map(leaseToWire)
  }

  /** The current work of a session. */
  situation({ id }: SessionInfo): TaskSituation {
    const [run] = this.#held(id)
    if (!run) return { available: false }
    const task = this.core.tasks.find(run.task_id)
    return { available: true, bundle: this.#bundle(task, run), lease: leaseToWire(run), task: summaryToWire(task) }
  }

  /** The ended runs of a task, newest first, without the given one. */
  earlier(run: RunRow): RunRow[] {
    const most = this.core.kernel.config.get(TaskSettings.priorAttempts)
    // Open runs of the same fan-out are in the list and are filtered out.
    const open = this.core.runs.open(run.task_id).length
    return this.core.runs
      .list(run.task_id, { limit: most + open + 1 })
      .filter(({ id, status }) => id !== run.id && FINAL_RUN.has(status))
      .slice(0, most)
  }

  /** Result or error of the previous run, cut to `summary_max_bytes`. */
  handoff(run: RunRow, earlier = this.earlier(run)): string | undefined {
    const before = earlier.find(({ id }) => id === run.previous_run_id) ?? earlier[0]
    if (!before) return undefined
    const text = before.result === null ? before.error : textOf(JSON.parse(before.result))
    return text ? cutText(text, this.core.kernel.config.get(TaskSettings.summaryBytes), CUT).text : undefined
  }

  #held(session: string): RunRow[] {
    const now = this.core.now()
    return this.core.runs.ofSession(session).filter(run => run.lease_until !== null && run.lease_until > now)
  }

  #bundle(task: TaskRow, run: RunRow): TaskBundle {
    const { config } = this.core.kernel
    const earlier = this.earlier(run)
    const wanted = continuationOf(run)
    const events = this.history.newest(task.id, config.get(TaskSettings.recentEvents))
    const shownRuns = [run, ...earlier, ...events.flatMap(event => event.run ?? [])].map(({ id }) => id)
    const tokens = tokensOf(this.core.kernel.db, [...new Set(shownRuns)])
    const dated = (one: ActiveRun): DatedRun => ({
      ...withTimes(one),
      ...optionalMember('tokens_used', tokens.get(one.id)),
    })
    return {
      task: summaryToWire(task),
      current_run: dated(activeToWire(run, task.max_attempts)),
      execution_profile: this.profiles.has(task.id) ? this.profiles.get(task.id) : null,
      ...optionalMember('handoff_summary', this.handoff(run, earlier)),
      latest_event_seq: task.latest_event_seq,
      limits: {
        context_body_max_bytes: config.get(TaskSettings.bodyBytes),
        max_runtime_seconds: Math.round(config.get(TaskSettings.maxRuntime) / 1000),
        summary_max_bytes: config.get(TaskSettings.summaryBytes),
      },
      prior_attempts: earlier.map(row => dated(activeToWire(row, task.max_attempts))),
      recent_events: this.#bounded(events.map(event => ({ ...event, run: event.run ? dated(event.run) : null }))),
      review_continuation: wanted ?? null,
      review_history: this.#reviews(task.id),
    }
  }

  /** Leaves out payloads beyond `context_body_max_bytes`, those of the oldest events first. */
  #bounded(events: TaskBundle['recent_events']): TaskBundle['recent_events'] {
    let left = this.core.kernel.config.get(TaskSettings.bodyBytes)
    const shownEvents = events.toReversed().map(({ payload, ...event }) => {
      left -= payload === undefined ? 0 : Buffer.byteLength(JSON.stringify(payload))
      return payload === undefined || left < 0 ? event : { ...event, payload }
    })
    return shownEvents.reverse()
  }

  #reviews(task: string): TaskBundle['review_history'] {
    const rows = this.core.kernel.db.all<ReviewRow>(
      'SELECT * FROM tasks_review WHERE task_id = ? ORDER BY requested_at DESC, round DESC, id LIMIT +?',
      [task, this.core.kernel.config.get(TaskSettings.priorAttempts)],
    )
    return rows.map(row => ({
      review_id: row.id,
      run_id: row.run_id,
      attempt: row.attempt,
      review_round: row.round,
      status: row.status,
      ...optionalMember('outcome', row.outcome),
      ...optionalMember('reason', row.verdict_reason ?? row.reason),
      ...(row.reviewed_at === null ? {} : { reviewed_at: iso(row.reviewed_at) }),
      ...optionalMember('reviewer_label', row.agent_name ?? (row.reviewed_by_ref && refToWire(row.reviewed_by_ref))),
    }))
  }
}

const withTimes = (run: ActiveRun): DatedRun => ({
  ...run,
  claimed_at: run.claimed_at ?? NEVER,
  started_at: run.started_at ?? NEVER,
  ended_at: run.ended_at ?? NEVER,
  heartbeat_at: run.heartbeat_at ?? NEVER,
  lease_until: run.lease_until ?? NEVER,
})

/** The idempotency key of the run that the verdict of a review queues. */
export const continuationKey = (review: string) => `review.${review}`

/** The verdict that caused a run, when the previous run was rejected. */
export function continuationOf({
  metadata,
  previous_run_id: reviewed,
  idempotency_key: key,
}: RunRow): ReviewContinuation | undefined {
  const review =
    metadata === null ? undefined : (JSON.parse(metadata) as { review?: Partial<ReviewContinuation> })?.review
  if (typeof review?.review_id !== 'string' || reviewed === null) return undefined
  // A retry may carry metadata with the same member; only the run that a verdict queued has this key.
  if (key !== continuationKey(review.review_id)) return undefined
  const { review_id, review_round = 1, reason = '', next_round_guidance = '', missing_work = [] } = review
  return {
    review_id,
    review_round,
    reviewed_run_id: reviewed,
    outcome: 'rejected',
    reason,
    next_round_guidance,
    missing_work: [missing_work].flat().map(item => (typeof item === 'string' ? item : JSON.stringify(item))),
  }
}

/** The result of a run as text: its summary if it has one. */
function textOf(result: unknown): string {
  if (typeof result === 'string') return result
  const { summary } = Object(result)
  return typeof summary === 'string' ? summary : JSON.stringify(result)
}
