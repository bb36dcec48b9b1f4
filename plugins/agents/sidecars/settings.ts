import * as v from 'valibot'
import type { Setting } from '../../../kernel/plugin.js'
import type { HeartbeatConfigSubset } from '../../../schemas/agents/sidecars.js'
import { Duration, durationText } from '../../../schemas/duration.js'

/** Largest file, in bytes; the same as for an AGENT.md file. */
export const MAX_SIDECAR_BYTES = 512 * 1024

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

const bytes = (initial: number) =>
  v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_SIDECAR_BYTES)), initial)
const flag = (initial: boolean) => v.optional(v.boolean(), initial)
const atLeast = (initial: string, min: number) =>
  v.optional(
    v.pipe(
      Duration,
      v.check(ms => ms >= min, `at least ${durationText(min)}`),
    ),
    initial,
  )
const projected = <C extends { context_projection_bytes: number; max_body_bytes: number }>() =>
  v.check<C, string>(
    config => config.context_projection_bytes <= config.max_body_bytes,
    'context_projection_bytes is at most max_body_bytes',
  )

const SoulSchema = v.pipe(
  v.strictObject({ enabled: flag(true), max_body_bytes: bytes(32_768), context_projection_bytes: bytes(2048) }),
  projected(),
)
export type SoulConfig = v.InferOutput<typeof SoulSchema>

const HeartbeatSchema = v.pipe(
  v.strictObject({
    enabled: flag(true),
    max_body_bytes: bytes(32_768),
    context_projection_bytes: bytes(4096),
    min_interval: atLeast('5m', MINUTE_MS),
    default_interval: atLeast('30m', MINUTE_MS),
    wake_cooldown: atLeast('1m', 1000),
    max_wakes_per_cycle: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000)), 25),
    active_session_only: flag(true),
    allow_active_hours_preferences: flag(true),
    wake_event_retention: atLeast('168h', HOUR_MS),
    session_health_stale_after: atLeast('2m', 1000),
    session_health_hook_min_interval: atLeast('1m', 1000),
  }),
  projected(),
  v.check(config => config.min_interval <= config.default_interval, 'min_interval is at most default_interval'),
)
/** Durations in milliseconds. */
export type HeartbeatConfig = v.InferOutput<typeof HeartbeatSchema>

/** Persona settings. */
export const SoulSetting: Setting<SoulConfig> = {
  path: 'agents.soul',
  section: 'general',
  schema: SoulSchema,
  default: v.parse(SoulSchema, {}),
  apply: 'live',
}

/** Settings of heartbeat policies and wake-ups. */
export const HeartbeatSetting: Setting<HeartbeatConfig> = {
  path: 'agents.heartbeat',
  section: 'general',
  schema: HeartbeatSchema,
  default: v.parse(HeartbeatSchema, {}),
  apply: 'live',
}

/** Wire form of the configuration in a snapshot. */
export function subsetOf(config: HeartbeatConfig): HeartbeatConfigSubset {
  const texts = {
    default_interval: durationText(config.default_interval),
    min_interval: durationText(config.min_interval),
    session_health_hook_min_interval: durationText(config.session_health_hook_min_interval),
    session_health_stale_after: durationText(config.session_health_stale_after),
    wake_cooldown: durationText(config.wake_cooldown),
    wake_event_retention: durationText(config.wake_event_retention),
  }
  return { ...config, ...texts }
}
