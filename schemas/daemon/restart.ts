import * as v from 'valibot'
import { Integer, Timestamp } from '../kernel/common.js'

/** Phase of a daemon restart. */
export const RestartStatus = v.picklist(['pending', 'stopping', 'waiting_release', 'starting', 'ready', 'failed'])
export type RestartStatus = v.InferOutput<typeof RestartStatus>

/** One restart. `old_*` is the daemon that was asked to restart, `new_pid` its successor. */
export const RestartOperation = v.object({
  operation_id: v.string(),
  status: RestartStatus,
  status_url: v.optional(v.string()),
  active_session_count: Integer,
  old_pid: Integer,
  old_started_at: Timestamp,
  old_socket_path: v.string(),
  new_pid: v.optional(Integer),
  started_at: Timestamp,
  updated_at: Timestamp,
  completed_at: v.optional(v.nullable(Timestamp)),
  failure_reason: v.optional(v.string()),
})
export type RestartOperation = v.InferOutput<typeof RestartOperation>

/** Reply to a restart request; a second request returns the open operation. */
export const RestartTriggered = v.object({
  operation_id: v.string(),
  status: RestartStatus,
  status_url: v.string(),
  active_session_count: Integer,
})
export type RestartTriggered = v.InferOutput<typeof RestartTriggered>
