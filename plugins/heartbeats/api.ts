import * as v from 'valibot'
import { defineErrors, event, type Fault, type Hook, registry, token } from '../../kernel/plugin.js'
import type { WakeDecision, WakeSource } from '../../schemas/agents/sidecars.js'
import type { SessionInfo } from '../sessions/api.js'

/** A wake-up that is about to be sent, or was decided. */
export interface Wake {
  readonly sessionId: string
  readonly agentName: string
  readonly workspaceId: string
  readonly source: WakeSource
}

/** Wake-ups of sessions by the heartbeat policies of their agents. A wake-up never claims work. */
export interface HeartbeatsApi {
  /** Sessions that wait for a wake-up by the clock; one that is being decided about does not. */
  readonly waiting: number
  /** When the first of them is due, in epoch milliseconds. */
  readonly nextDue: number | undefined
  /** May it be sent; a refusal makes it `skipped`. */
  readonly wakeBefore: Hook<(wake: Wake) => Promise<Fault | undefined>>
  /** It was decided, durably. */
  readonly wakeAfter: Hook<(wake: Wake, decision: WakeDecision) => unknown>
}

export const Heartbeats = token<HeartbeatsApi>('heartbeats@1')

/** Contributes what a wake-up tells of one thing that policies may include: `context: { include: [task] }`. */
export interface WakeContext {
  /** Its own among all contributors: `self`, `session_health`, `task`, `inbox_summary`. */
  readonly name: string
  /** A line or a few; undefined or empty: there is nothing to tell. */
  readonly read: (session: SessionInfo) => Promise<string | undefined>
}

export const WakeContexts = registry<WakeContext>('heartbeats.context@1')

/** A wake-up was sent. */
export const HeartbeatSent = event(
  'agent.heartbeat.sent',
  v.object({ session_id: v.string(), agent_name: v.string(), wake_event_id: v.string(), turn_id: v.string() }),
)

export const HeartbeatErrors = defineErrors({
  wake_session_not_found: { status: 404, message: 'no such session', next: 'svc session list' },
})
