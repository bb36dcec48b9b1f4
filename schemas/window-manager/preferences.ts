/** Window manager preferences: section `window-manager` of the settings, and workspace overrides. */
import * as v from 'valibot'
import { mapOf } from '../kernel/map-of.js'

const Binding = v.picklist(['none', 'reserved', 'zoom'])
const Modifier = v.picklist(['alt', 'control', 'meta', 'shift', 'none'])
const Pixels = v.pipe(v.number(), v.minValue(0), v.maxValue(1000))
const Key = v.pipe(v.string(), v.maxLength(100))

/** Lengths are in pixels; `history_limit` counts commands, `repeat_ratios` are fractions of the screen. */
export const WindowPreferences = v.strictObject({
  /** Action for a window dragged to the middle of an edge. */
  bindings: v.strictObject({ bottom_center: Binding, top_center: Binding }),
  desktop_transition: v.picklist(['slide', 'crossfade', 'instant']),
  drag_away_policy: v.picklist(['window', 'group']),
  focus_follows_pointer: v.boolean(),
  focus_policy: v.picklist(['click_directional', 'directional']),
  focus_wrap: v.boolean(),
  gaps: v.strictObject({ bottom: Pixels, inner: Pixels, left: Pixels, right: Pixels, top: Pixels }),
  group_move_modifier: Modifier,
  history_limit: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(1000)),
  new_window_policy: v.picklist(['floating', 'beside_focus']),
  raise_on_focus: v.boolean(),
  /** Keys by action name. */
  shortcuts: v.pipe(mapOf(Key, Key), v.maxEntries(200)),
  small_viewport_policy: v.picklist(['stack', 'reject']),
  snap: v.strictObject({
    corner_reach: Pixels,
    edge_band: Pixels,
    exit_slack: Pixels,
    repeat_ratios: v.pipe(v.array(v.pipe(v.number(), v.gtValue(0), v.maxValue(1))), v.maxLength(16)),
  }),
  swap_modifier: Modifier,
})
export type WindowPreferences = v.InferOutput<typeof WindowPreferences>
