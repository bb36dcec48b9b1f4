import type { StatusTasks } from '../../../../schemas/daemon.js'
import type { Recovered } from '../claims/recovery.js'
import type { TaskCore } from '../core.js'
import { dashboardOf } from './dashboard.js'

/** Member `tasks` of the daemon status, from totals that are maintained on every change. */
export function statusOf(
  core: TaskCore,
  since: Recovered,
  forcedStops: number,
): Omit<StatusTasks, 'status'> & { readonly status: string } {
  const { health, queue, active_runs: active } = dashboardOf(core, {}, undefined)
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
    run_totals: core.totals.runs.all().map(({ of, ...total }) => ({ ...total, origin_kind: of })),
    task_totals: core.totals.tasks.all().map(({ of, ...total }) => ({ ...total, scope: of })),
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
