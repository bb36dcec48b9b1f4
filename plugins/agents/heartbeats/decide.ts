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

/** Reasons that lie in the sessions and not in the policy: whoever asked by hand gets a conflict. */
export const SESSION_REASONS: ReadonlySet<WakeReason> = new Set<WakeReason>([
  'heartbeat_no_eligible_session',
  'session_not_found',
  'session_not_attachable',
  'session_unhealthy',
  'session_prompt_active',
  'session_prompt_active_race',
  'synthetic_prompt_failed',
])

/** What is known when a wake-up is decided. Times are epoch milliseconds. */
export interface WakeFacts {
  readonly now: number
  readonly source: WakeSource
  readonly config: HeartbeatConfig
  readonly policy: Heartbeat
  /** Of the preferences, in milliseconds. */
  readonly intervalMs: number
  /** The same, longer where the last wake-ups were the end of the agent. */
  readonly pauseMs: number
  /** The schedule of the policy allows it now. */
  readonly open: boolean
  /** Whoever asks names a session; else it is the one that could be woken, if there is one. */
  readonly named: boolean
  /** Undefined also when it belongs to another agent or workspace. */
  readonly session: SessionInfo | undefined
  readonly health: SessionHealth | undefined
  /** A wake-up of this session is on its way, or its turn still runs. */
  readonly underWay: boolean
  readonly lastSentAt: number | undefined
  /** This cycle has sent as many as it may. */
  readonly spent: boolean
}

/**
 * Milliseconds that a wake-up may come late by the load of the machine without pushing the next one a minute further: wake-ups
 * come at whole minutes.
 */
export const LATE_MS = 5000

/** Milliseconds of the longest pause, unless the interval is longer itself. */
const LONGEST_PAUSE_MS = 24 * 3_600_000

/** Milliseconds from one wake-up to the next: the interval, doubled with each failure in a row after the first. */
export function pauseMs(intervalMs: number, failures: number): number {
  const doubled = intervalMs * 2 ** Math.max(0, failures - 1)
  return Math.max(intervalMs, Math.min(doubled, LONGEST_PAUSE_MS))
}

type Rule = readonly [reason: WakeReason, applies: (facts: WakeFacts) => boolean]

/** Why a wake-up is not sent; the first that applies. When none does it is tried. */
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
  // Whoever asks by hand may have mended the agent.
  [
    'session_unhealthy',
    ({ source, lastSentAt, intervalMs, pauseMs, now }) =>
      source !== 'manual' && pauseMs > intervalMs && isWithin(lastSentAt, pauseMs - LATE_MS, now),
  ],
  ['session_prompt_active', ({ health }) => health?.active_prompt === true],
  ['cooldown_active', ({ lastSentAt, now, config }) => isWithin(lastSentAt, config.wake_cooldown, now)],
  // Whoever asks by hand waits for the cooldown alone.
  [
    'heartbeat_rate_limited',
    ({ source, lastSentAt, intervalMs, now }) => source !== 'manual' && isWithin(lastSentAt, intervalMs - LATE_MS, now),
  ],
  ['heartbeat_rate_limited', ({ source, spent }) => source === 'scheduler' && spent],
]

/** Why a wake-up is not sent; undefined: it is to be tried. */
export function refusalOf(facts: WakeFacts): WakeReason | undefined {
  return RULES.find(([, applies]) => applies(facts))?.[0]
}

type Reachable = Pick<SessionInfo, 'state' | 'stopReason'>
type Health = Pick<SessionHealth, 'health' | 'active_prompt'>

/** A prompt can reach it: it is active, or where the configuration allows that, a prompt starts it again. */
export function isAttachable(
  session: Reachable | undefined,
  config: Pick<HeartbeatConfig, 'active_session_only'>,
): boolean {
  if (session === undefined) return false
  return session.state === 'active' || (!config.active_session_only && isRestartable(session.state, session.stopReason))
}

/** A process that does not answer; where there is none the next prompt starts one. */
const isUnwell = (session: Reachable | undefined, health: Health | undefined) =>
  session?.state === 'active' && health?.health !== 'healthy'

/** It could be woken now, whatever its policy says. */
export function isEligible(
  session: Reachable,
  health: Health | undefined,
  config: Pick<HeartbeatConfig, 'active_session_only'>,
): boolean {
  return isAttachable(session, config) && !isUnwell(session, health) && health?.active_prompt !== true
}

/** Not when the clock was set back meanwhile: a wake-up that lies ahead must not silence all until then. */
const isWithin = (last: number | undefined, ms: number, now: number) =>
  last !== undefined && now - last < ms && last <= now

/** When the scheduler tries again, by what its last try came to: when the policy says, a little later, or not before something changes. */
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
