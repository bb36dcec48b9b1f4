/** Events that sessions emit into the daemon's log. */
import * as v from 'valibot'
import { event } from '../../../../kernel/plugin.js'

export const SessionCreated = event(
  'session.created',
  v.object({ id: v.string(), agent_name: v.string(), workspace_id: v.string() }),
)
export const SessionStopped = event(
  'session.stopped',
  v.object({
    id: v.string(),
    agent_name: v.string(),
    workspace_id: v.string(),
    stop_reason: v.string(),
    stop_detail: v.optional(v.string()),
  }),
)
/** A prompt was sent on behalf of a person outside of the daemon, for example by a chat. */
export const SessionPromptedFor = event(
  'session.prompted_for',
  v.object({
    id: v.string(),
    agent_name: v.string(),
    workspace_id: v.string(),
    turn_id: v.string(),
    on_behalf_of: v.object({ id: v.string(), name: v.string(), via: v.string() }),
  }),
)
/** A permission request was answered; `allowed` is the final result, which another plugin may have refused. */
export const PermissionAnswered = event(
  'permission.answered',
  v.object({
    session_id: v.string(),
    request_id: v.string(),
    decision: v.picklist(['allow-once', 'allow-always', 'reject-once', 'reject-always']),
    allowed: v.boolean(),
  }),
)
export const SessionRepaired = event('session.repaired', v.object({ id: v.string(), repaired: v.number() }))

const HealthChange = v.object({
  id: v.string(),
  agent_name: v.string(),
  workspace_id: v.string(),
  health: v.string(),
  /** The reason in words. */
  reason: v.optional(v.string()),
})
/** The process or the turn has shown no sign of life for long. */
export const SessionHung = event('session.hung', HealthChange)
/** The session stopped because of a failure. */
export const SessionUnhealthy = event('session.unhealthy', HealthChange)
/** The session recovered after one of the two. */
export const SessionRecovered = event('session.recovered', HealthChange)
