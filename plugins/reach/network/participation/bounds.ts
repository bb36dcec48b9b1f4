import * as v from 'valibot'
import type { Setting } from '../../../../kernel/plugin.js'
import type { LiveParticipation, ParticipationBounds } from '../../../../schemas/network.js'
import { boundAmount as amount } from '../../../../schemas/network-bounds.js'

/** All bounds of a participation. */
export type Bounds = LiveParticipation['bounds']
export type BoundName = keyof Bounds

/** A bound: its default, and the maximum for settings and requests. */
interface Bound {
  readonly initial: number | string
  readonly ceiling: number | string
  /** Minimum value. */
  readonly floor?: string
  readonly text: string
}

/** The bounds of a participation. */
export const BOUNDS = {
  max_wakes: { initial: 8, ceiling: 64, text: 'wakes by messages' },
  max_wake_depth: { initial: 3, ceiling: 5, text: 'length of a chain of wakes' },
  max_wake_wall_time: { initial: '5m', ceiling: '15m', text: 'time of one wake' },
  max_total_wall_time: { initial: '30m', ceiling: '2h', text: 'time of all wakes' },
  max_input_tokens: { initial: 200_000, ceiling: 1_000_000, text: 'input tokens of all wakes' },
  max_output_tokens: { initial: 50_000, ceiling: 200_000, text: 'output tokens of all wakes' },
  coalesce_window: {
    initial: '500ms',
    ceiling: '5s',
    floor: '100ms',
    text: 'time window in which messages are combined into one wake',
  },
} as const satisfies Readonly<Record<BoundName, Bound>>

const NAMES = Object.keys(BOUNDS) as readonly BoundName[]

function schemaOf(name: BoundName, says: string): v.GenericSchema<number | string> {
  const { ceiling, floor = 1 } = BOUNDS[name] as Bound
  const [least, most] = [amount(floor), amount(ceiling)]
  const words = `expected ${floor} to ${ceiling}`
  const schema =
    typeof ceiling === 'number'
      ? v.pipe(v.number(), v.integer(words), v.minValue(least, words), v.maxValue(most, words), v.description(says))
      : v.pipe(
          v.string(),
          v.check(text => amount(text) >= least && amount(text) <= most, words),
          v.description(says),
        )
  return schema as v.GenericSchema<number | string>
}

const setting = (path: string, name: BoundName, initial: number | string, says: string): Setting<number | string> => ({
  path: `network.live.${path}`,
  section: 'network',
  schema: schemaOf(name, says),
  default: initial,
  apply: 'live',
})

const limitName = (name: BoundName) => (name === 'coalesce_window' ? 'max_coalesce_window' : name)

/** Defaults for bounds that a request omits. */
export const BoundDefaults = Object.fromEntries(
  NAMES.map(name => [
    name,
    setting(`defaults.${name}`, name, BOUNDS[name].initial, `Default of a live participation: ${BOUNDS[name].text}`),
  ]),
) as Readonly<Record<BoundName, Setting<number | string>>>

/** Maximum values for requests. */
export const BoundLimits = Object.fromEntries(
  NAMES.map(name => [
    name,
    setting(
      `limits.${limitName(name)}`,
      name,
      BOUNDS[name].ceiling,
      `Maximum that may be requested: ${BOUNDS[name].text}`,
    ),
  ]),
) as Readonly<Record<BoundName, Setting<number | string>>>

/** Minimum coalesce window for requests. */
export const MinCoalesceWindow = setting(
  'limits.min_coalesce_window',
  'coalesce_window',
  BOUNDS.coalesce_window.floor,
  `Minimum that may be requested: ${BOUNDS.coalesce_window.text}`,
)

/** Maximum age of messages. */
export const MaxReplayAge: Setting<number> = {
  path: 'network.max_replay_age',
  section: 'network',
  schema: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(1),
    v.maxValue(86_400),
    v.description('Seconds after which a message without `expires_at` is refused'),
  ),
  default: 300,
  apply: 'live',
}

export const ParticipationSettings = [
  ...Object.values(BoundDefaults),
  ...Object.values(BoundLimits),
  MinCoalesceWindow,
  MaxReplayAge,
] as Setting[]

/** Reads a setting. */
export type Read = <T>(setting: Setting<T>) => T

/**
 * All bounds of a request, with defaults for omitted ones. A default above a limit is reduced to the limit.
 * @returns a text for people if a bound is not allowed
 */
export function boundsFor(read: Read, requestedBounds: ParticipationBounds = {}): Bounds | string {
  const bounds: Partial<Record<BoundName, number | string>> = {}
  for (const name of NAMES) {
    const limit = read(BoundLimits[name])
    const least = name === 'coalesce_window' ? read(MinCoalesceWindow) : 1
    const initial = read(BoundDefaults[name])
    const wanted = requestedBounds[name]
    if (wanted === undefined) {
      bounds[name] = amount(initial) > amount(limit) ? limit : amount(initial) < amount(least) ? least : initial
      continue
    }
    const value = amount(wanted)
    // Zero does not mean unlimited and is refused.
    if (!(value >= amount(least)))
      return `bounds.${name}: ${wanted} is less than the minimum of ${least}; an unlimited value is not possible`
    if (value > amount(limit)) return `bounds.${name}: ${wanted} is over the limit of ${limit}`
    bounds[name] = wanted
  }
  return bounds as Bounds
}
