import * as v from 'valibot'
import { settingsSection } from '../../../kernel/kit/settings.js'
import type { Setting } from '../../../kernel/plugin.js'
import { type Overrides, WindowPreferences } from '../../../schemas/window-manager.js'

const { entries: of } = WindowPreferences
const { entries: gap } = of.gaps
const { entries: snap } = of.snap

const setting = settingsSection({ path: 'window_manager', section: 'window-manager', apply: 'live' })
/** Lengths are integers in settings; overrides of a workspace may be fractional. */
const whole = (schema: v.GenericSchema<unknown, number>) => v.pipe(schema, v.integer())

/**
 * The settings of the window manager, one per value so that an error names the value. The daemon uses only `history_limit`,
 * `new_window_policy` and `raise_on_focus`; the others concern pointers, keys and pixels, which only clients have. Clients get all
 * of them as `preferences` of the state.
 */
export const WindowManagerSettings = {
  bindings: {
    bottom_center: setting('bindings.bottom_center', of.bindings.entries.bottom_center, 'none'),
    top_center: setting('bindings.top_center', of.bindings.entries.top_center, 'none'),
  },
  desktop_transition: setting('desktop_transition', of.desktop_transition, 'slide'),
  drag_away_policy: setting('drag_away_policy', of.drag_away_policy, 'window'),
  focus_follows_pointer: setting('focus_follows_pointer', of.focus_follows_pointer, false),
  focus_policy: setting('focus_policy', of.focus_policy, 'click_directional'),
  focus_wrap: setting('focus_wrap', of.focus_wrap, false),
  gaps: {
    bottom: setting('gaps.bottom', whole(gap.bottom), 8),
    inner: setting('gaps.inner', whole(gap.inner), 8),
    left: setting('gaps.left', whole(gap.left), 8),
    right: setting('gaps.right', whole(gap.right), 8),
    top: setting('gaps.top', whole(gap.top), 8),
  },
  group_move_modifier: setting('group_move_modifier', of.group_move_modifier, 'alt'),
  /** Number of commands that can be undone. */
  history_limit: setting('history_limit', of.history_limit, 50),
  new_window_policy: setting('new_window_policy', of.new_window_policy, 'beside_focus'),
  raise_on_focus: setting('raise_on_focus', of.raise_on_focus, true),
  shortcuts: setting('shortcuts', of.shortcuts, {}),
  small_viewport_policy: setting('small_viewport_policy', of.small_viewport_policy, 'stack'),
  snap: {
    corner_reach: setting('snap.corner_reach', whole(snap.corner_reach), 64),
    edge_band: setting('snap.edge_band', whole(snap.edge_band), 24),
    exit_slack: setting('snap.exit_slack', whole(snap.exit_slack), 12),
    repeat_ratios: setting('snap.repeat_ratios', snap.repeat_ratios, [0.5, 0.67, 0.33]),
  },
  swap_modifier: setting('swap_modifier', of.swap_modifier, 'shift'),
} satisfies { readonly [N in keyof WindowPreferences]: Setting<WindowPreferences[N]> | Tree }

interface Tree {
  readonly [name: string]: Setting | Tree
}

const isSetting = (part: Setting | Tree): part is Setting => typeof part.path === 'string'

/** The settings as a list, for the surface. */
export function settingsIn(tree: Tree): Setting[] {
  return Object.values(tree).flatMap(part => (isSetting(part) ? [part] : settingsIn(part)))
}

/** The current settings, in the form of their section. */
export function preferences(read: <T>(entry: Setting<T>) => T): WindowPreferences {
  const valuesIn = (tree: Tree): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(tree).map(([name, part]) => [name, isSetting(part) ? read(part) : valuesIn(part)]),
    )
  return valuesIn(WindowManagerSettings) as WindowPreferences
}

/** Effective preferences of a workspace: its overrides replace settings; shortcuts are merged by name. */
export function preferred(settings: WindowPreferences, overrides: Overrides): WindowPreferences {
  const own = Object.entries(overrides).filter(([, value]) => value !== undefined && value !== null)
  const shortcuts = { ...settings.shortcuts, ...overrides.shortcuts }
  return { ...settings, ...(Object.fromEntries(own) as Partial<WindowPreferences>), shortcuts }
}
