import * as v from 'valibot'
import type { Setting } from '../../../kernel/plugin.js'
import { Duration } from '../../../schemas/duration.js'

const duration = (path: string, fallback: string): Setting<number> => ({
  path,
  section: 'general',
  schema: Duration,
  default: v.parse(Duration, fallback),
  apply: 'restart-required',
})

const count = (path: string, fallback: number, min: number, max: number): Setting<number> => ({
  path,
  section: 'general',
  schema: v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max)),
  default: fallback,
  apply: 'restart-required',
})

/** The agent of a session that names none, in a workspace without a default agent. */
export const DefaultAgent: Setting<string> = {
  path: 'defaults.agent',
  section: 'general',
  schema: v.pipe(v.string(), v.minLength(1), v.maxLength(128)),
  default: 'general',
  apply: 'restart-required',
}

/** The settings of sessions; durations in milliseconds. */
export const SessionSettings = {
  maxAgents: count('limits.max_concurrent_agents', 20, 1, 1000),
  queueCap: count('session.busy_input.queue_cap', 10, 1, 1000),
  /** Size limit of a session's journal; beyond it agent output is left out. */
  journalBytes: {
    ...count('observability.transcripts.max_bytes_per_session', 256 * 1024 * 1024, 1024 * 1024, 2 ** 40),
    section: 'observability',
  },
  /** Days for which the usage of sessions is kept. */
  usageDays: { ...count('observability.usage.retention_days', 90, 1, 3660), section: 'observability' },
  /** Days without activity after which a stopped session moves out of the catalog into the archive; 0: never. */
  archiveAfterDays: count('session.archive_after_days', 30, 0, 3650),
  /** Limit of one turn; 0: none. */
  turnTimeout: duration('session.limits.timeout', '0'),
  /** Tool calls of one turn; 0: none. */
  maxIterations: count('session.limits.max_iterations', 0, 0, 100_000),
  heartbeat: duration('session.supervision.activity_heartbeat_interval', '30s'),
  progressNotify: duration('session.supervision.progress_notify_interval', '10m'),
  /** Silence of an agent during a turn after which the turn says so. 0: never. */
  silenceNotice: duration('session.supervision.silence_notice_after', '20s'),
  inactivityWarning: duration('session.supervision.inactivity_warning_after', '15m'),
  inactivityTimeout: duration('session.supervision.inactivity_timeout', '30m'),
  /** Time after which a process in state `T` is ended; the first of three checks in that time already reports it. 0: never. */
  frozenAfter: duration('session.supervision.frozen_after', '18s'),
  /** Time after which the process of an idle session is ended. 0: never. */
  idleProcess: duration('session.idle_process_timeout', '30m'),
  cancelGrace: duration('session.supervision.timeout_cancel_grace', '30s'),
  /** Maximum number of turns to reach a goal before a person is asked. */
  goalTurns: count('session.goal.turn_limit', 20, 1, 1000),
  /** Limit for each briefing contributor when a session is made. */
  briefingTimeout: duration('session.startup.briefing_timeout', '5s'),
}

/** The values of {@link SessionSettings} in force. */
export type SessionLimits = { readonly [K in keyof typeof SessionSettings]: number }
