import * as v from 'valibot'
import { Integer, Timestamp } from '../kernel/common.js'

/** How far a restart of the daemon is. */
export const RestartStatus = v.picklist(['pending', 'stopping', 'waiting_release', 'starting', 'ready', 'failed'])
export type RestartStatus = v.InferOutput<typeof RestartStatus>

/** One restart of the daemon. `old_*` is the daemon that asked for it, `new_pid` the one that took its place. */
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

/** Reply to a request for a restart; a second request is answered with the operation that is open. */
export const RestartTriggered = v.object({
  operation_id: v.string(),
  status: RestartStatus,
  status_url: v.string(),
  active_session_count: Integer,
})
export type RestartTriggered = v.InferOutput<typeof RestartTriggered>
