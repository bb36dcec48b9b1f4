import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, event, gate, hookTable, notify, registry, type TapsOf, token } from '../../../kernel/plugin.js'
import type { WakeDecision, WakeSource } from '../../../schemas/agents/sidecars.js'
import type { SessionInfo } from '../../work/sessions/api.js'

/** A wake-up that is about to be sent, or was decided. */
export interface Wake {
  readonly sessionId: string
  readonly agentName: string
  readonly workspaceId: string
  readonly source: WakeSource
}

/** The hooks of wake-ups. */
export const points = hookTable({
  wakeBefore: gate<[wake: Wake]>('wake.before', 'Before a wake-up is sent. A refusal makes it `skipped`.', {
    deadlineMs: 600_000,
  }),
  wakeAfter: notify<[wake: Wake, decision: WakeDecision]>('wake.after', 'A wake-up was decided, durably.'),
})

/** Wakes sessions according to the heartbeat policies of their agents. A wake-up never claims work. */
export interface HeartbeatsApi extends TapsOf<typeof points> {
  /** Sessions with a scheduled wake-up, without those being decided. */
  readonly waiting: number
  /** Epoch milliseconds of the next wake-up. */
  readonly nextDue: number | undefined
}

export const Heartbeats = token<HeartbeatsApi>('heartbeats@1')

/** Contributes text for a context that policies may include: `context: { include: [task] }`. */
export interface WakeContext {
  /** Unique name: `self`, `session_health`, `task`, `inbox_summary`. */
  readonly name: string
  /** One or a few lines; undefined or empty: nothing to report. */
  readonly read: (session: SessionInfo) => Promise<string | undefined>
}

export const WakeContexts = registry<WakeContext>(
  'heartbeats.context@1',
  v.looseObject({ name: v.string(), read: v.function() }),
)

/** A wake-up was sent. */
export const HeartbeatSent = event(
  'agent.heartbeat.sent',
  v.object({ session_id: v.string(), agent_name: v.string(), wake_event_id: v.string(), turn_id: v.string() }),
)

export const HeartbeatErrors = defineErrors({
  wake_session_not_found: { status: 404, message: 'no such session', next: command('session list') },
})
