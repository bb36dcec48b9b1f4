import type { StatusTasks } from '../../../schemas/daemon.js'
import type { Recovered } from '../claims/recovery.js'
import type { TaskCore } from '../core.js'
import { dashboardOf } from './dashboard.js'

/** Member `tasks` of the status: totals from the indexes. */
export function statusOf(
  core: TaskCore,
  since: Recovered,
  forcedStops: number,
): Omit<StatusTasks, 'status'> & { readonly status: string } {
  const { db } = core.kernel
  const { health, queue, active_runs: active } = dashboardOf(core, {}, undefined)
  const runs = db.rows('SELECT status, origin_kind, count(*) FROM tasks_run GROUP BY status, origin_kind')
  const tasks = db.rows('SELECT status, scope, count(*) FROM tasks_task GROUP BY status, scope')
  const stuck = (active.items ?? []).filter(item => item.stuck)
  return {
    active_orphan_runs: health.active_orphan_runs,
    channel_mismatch_since_start: core.reservations.counts.mismatches,
    duplicate_ingress_since_start: core.reservations.counts.duplicates,
    forced_stops_since_start: forcedStops,
    oldest_queue_age_ms: queue.oldest_queue_age_ms,
    oldest_queued_at: queue.total === 0 ? null : queue.oldest_queued_at,
    queue_depth_total: queue.total,
    recovery_since_start: { ...since },
    run_totals: runs.map(([status, origin, count]) => ({
      status: String(status),
      origin_kind: String(origin),
      count: Number(count),
    })),
    task_totals: tasks.map(([status, scope, count]) => ({
      status: String(status),
      scope: String(scope),
      count: Number(count),
    })),
    stuck_runs: stuck.map(({ run_id, task_id, run_status, age_ms, session_id }) => ({
      run_id,
      task_id,
      status: run_status,
      age_ms,
      origin_kind: core.runs.find(run_id).origin_kind,
      ...(session_id === undefined ? {} : { session_id }),
    })),
    status: health.status,
  }
}
