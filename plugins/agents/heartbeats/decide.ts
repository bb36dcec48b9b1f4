import type { Heartbeat, WakeSource } from '../../../schemas/agents/sidecars.js'
import type { SessionHealth, WakeReason, WakeResult } from '../../../schemas/sessions.js'
import { isRestartable, type SessionInfo } from '../../work/sessions/api.js'
import type { HeartbeatConfig } from '../sidecars/api.js'

/** The result for each reason. */
export const RESULTS: { readonly [R in WakeReason]: WakeResult } = {
  wake_sent: 'sent',
  wake_coalesced: 'coalesced',
  heartbeat_disabled: 'skipped',
  heartbeat_no_policy: 'skipped',
  heartbeat_invalid: 'skipped',
  heartbeat_no_eligible_session: 'skipped',
  quiet_window: 'skipped',
  session_not_found: 'skipped',
  session_not_attachable: 'skipped',
  session_unhealthy: 'skipped',
  session_prompt_active: 'skipped',
  session_prompt_active_race: 'skipped',
  cooldown_active: 'rate_limited',
  heartbeat_rate_limited: 'rate_limited',
  synthetic_prompt_failed: 'failed',
}

/** Reasons that lie in the session, not in the policy: a manual wake-up returns a conflict. */
export const SESSION_REASONS: ReadonlySet<WakeReason> = new Set<WakeReason>([
  'heartbeat_no_eligible_session',
  'session_not_found',
  'session_not_attachable',
  'session_unhealthy',
  'session_prompt_active',
  'session_prompt_active_race',
  'synthetic_prompt_failed',
])

/** Facts for the decision about a wake-up. Times are epoch milliseconds. */
export interface WakeFacts {
  readonly now: number
  readonly source: WakeSource
  readonly config: HeartbeatConfig
  readonly policy: Heartbeat
  /** Interval of the preferences, in milliseconds. */
  readonly intervalMs: number
  /** The interval with back-off after wake-ups that ended with a crash of the agent. */
  readonly pauseMs: number
  /** Whether the policy's schedule allows it now. */
  readonly open: boolean
  /** Whether the request names a session; otherwise an eligible one is chosen, if any. */
  readonly named: boolean
  /** Undefined also for a session of another agent or workspace. */
  readonly session: SessionInfo | undefined
  readonly health: SessionHealth | undefined
  /** Whether a wake-up of this session is being sent, or its turn still runs. */
  readonly underWay: boolean
  readonly lastSentAt: number | undefined
  /** Whether the limit of this cycle is reached. */
  readonly spent: boolean
}

/**
 * Tolerance in milliseconds for delays under load: wake-ups come at whole minutes, and a late one must not push the
 * next by a minute.
 */
export const LATE_MS = 5000

/** Maximum back-off in milliseconds, unless the interval is longer. */
const LONGEST_PAUSE_MS = 24 * 3_600_000

/** Milliseconds between wake-ups: the interval, doubled with each failure in a row after the first. */
export function pauseMs(intervalMs: number, failures: number): number {
  const doubled = intervalMs * 2 ** Math.max(0, failures - 1)
  return Math.max(intervalMs, Math.min(doubled, LONGEST_PAUSE_MS))
}

type Rule = readonly [reason: WakeReason, applies: (facts: WakeFacts) => boolean]

/** Reasons against a wake-up; the first match decides. Without one it is tried. */
export const RULES: readonly Rule[] = [
  ['heartbeat_disabled', ({ config }) => !config.enabled],
  ['heartbeat_no_policy', ({ policy }) => !policy.present],
  ['heartbeat_invalid', ({ policy }) => !policy.valid],
  ['heartbeat_disabled', ({ policy }) => !policy.active],
  ['heartbeat_no_eligible_session', ({ session, named }) => session === undefined && !named],
  ['session_not_found', ({ session }) => session === undefined],
  ['session_not_attachable', ({ session, config }) => !isAttachable(session, config)],
  ['quiet_window', ({ open }) => !open],
  ['wake_coalesced', ({ underWay }) => underWay],
  ['session_unhealthy', ({ session, health }) => isUnwell(session, health)],
  // A manual request skips the back-off: the person may have fixed the agent.
  [
    'session_unhealthy',
    ({ source, lastSentAt, intervalMs, pauseMs, now }) =>
      source !== 'manual' && pauseMs > intervalMs && isWithin(lastSentAt, pauseMs - LATE_MS, now),
  ],
  ['session_prompt_active', ({ health }) => health?.active_prompt === true],
  ['cooldown_active', ({ lastSentAt, now, config }) => isWithin(lastSentAt, config.wake_cooldown, now)],
  // A manual request is limited by the cooldown only.
  [
    'heartbeat_rate_limited',
    ({ source, lastSentAt, intervalMs, now }) => source !== 'manual' && isWithin(lastSentAt, intervalMs - LATE_MS, now),
  ],
  ['heartbeat_rate_limited', ({ source, spent }) => source === 'scheduler' && spent],
]

/** The reason against a wake-up; undefined if it is to be tried. */
export function refusalOf(facts: WakeFacts): WakeReason | undefined {
  return RULES.find(([, applies]) => applies(facts))?.[0]
}

type Reachable = Pick<SessionInfo, 'state' | 'stopReason'>
type Health = Pick<SessionHealth, 'health' | 'active_prompt'>

/** Whether a prompt can reach the session: it is active, or the configuration allows restarting it. */
export function isAttachable(
  session: Reachable | undefined,
  config: Pick<HeartbeatConfig, 'active_session_only'>,
): boolean {
  if (session === undefined) return false
  return session.state === 'active' || (!config.active_session_only && isRestartable(session.state, session.stopReason))
}

/** Whether its process does not respond; a stopped session is started by the next prompt. */
const isUnwell = (session: Reachable | undefined, health: Health | undefined) =>
  session?.state === 'active' && health?.health !== 'healthy'

/** Whether it could be woken now, apart from its policy. */
export function isEligible(
  session: Reachable,
  health: Health | undefined,
  config: Pick<HeartbeatConfig, 'active_session_only'>,
): boolean {
  return isAttachable(session, config) && !isUnwell(session, health) && health?.active_prompt !== true
}

/** False if the clock was set back: a last wake-up in the future must not block all others until then. */
const isWithin = (last: number | undefined, ms: number, now: number) =>
  last !== undefined && now - last < ms && last <= now

/** When the scheduler tries again after each result: when the policy allows, shortly after, or only after a change. */
export const NEXT_TRY: { readonly [R in WakeReason]: 'due' | 'soon' | 'never' } = {
  wake_sent: 'due',
  cooldown_active: 'due',
  heartbeat_rate_limited: 'due',
  quiet_window: 'due',
  wake_coalesced: 'soon',
  session_unhealthy: 'soon',
  session_prompt_active: 'soon',
  session_prompt_active_race: 'soon',
  synthetic_prompt_failed: 'soon',
  heartbeat_disabled: 'never',
  heartbeat_no_policy: 'never',
  heartbeat_invalid: 'never',
  heartbeat_no_eligible_session: 'never',
  session_not_found: 'never',
  session_not_attachable: 'soon',
}
