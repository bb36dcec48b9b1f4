/** The parts of a window manager document. */
import * as v from 'valibot'
import { Integer } from '../kernel/common.js'
import { mapOf } from '../kernel/map-of.js'

/**
 * Known values or any string: unknown values pass here, so that document validation reports all problems (`topology.*`) in one
 * reply.
 */
const judged = <const T extends readonly string[]>(values: T) => v.union([v.picklist(values), v.string()])

/** Position and size as fractions of the desktop, 0 to 1. */
export const Rect = v.strictObject({ x: v.number(), y: v.number(), width: v.number(), height: v.number() })
export type Rect = v.InferOutput<typeof Rect>

/** A node of a layout tree: a window, a weighted split, or a stack of windows. */
export interface LayoutNode {
  id: string
  kind: string
  axis?: string | null | undefined
  children?: LayoutNode[] | undefined
  weights?: number[] | undefined
  window_id?: string | null | undefined
  window_ids?: string[] | undefined
  active_id?: string | null | undefined
}

export const LayoutNode: v.GenericSchema<LayoutNode> = v.pipe(
  v.strictObject({
    id: v.string(),
    kind: judged(['leaf', 'split', 'stack']),
    axis: v.nullish(judged(['horizontal', 'vertical'])),
    children: v.optional(v.array(v.lazy(() => LayoutNode))),
    weights: v.optional(v.array(v.number())),
    window_id: v.nullish(v.string()),
    window_ids: v.optional(v.array(v.string())),
    active_id: v.nullish(v.string()),
  }),
  v.title('LayoutNode'),
)

/** Tiled windows in a common frame. */
export const LayoutGroup = v.pipe(
  v.strictObject({ id: v.string(), frame: Rect, root: LayoutNode }),
  v.title('LayoutGroup'),
)
export type LayoutGroup = v.InferOutput<typeof LayoutGroup>

/** One desktop: groups of tiled windows, and floating ones from back to front. */
export const Desktop = v.pipe(
  v.strictObject({
    id: v.string(),
    name: v.string(),
    order: Integer,
    purpose: judged(['standard', 'focus']),
    floating: v.array(v.string()),
    focus_owner: v.nullish(v.string()),
    groups: v.array(LayoutGroup),
  }),
  v.title('Desktop'),
)
export type Desktop = v.InferOutput<typeof Desktop>

/** The tiled position that a floating window returns to. */
export const ReturnAnchor = v.strictObject({
  desktop_id: v.string(),
  source_revision: Integer,
  group_id: v.nullish(v.string()),
  parent_split_id: v.nullish(v.string()),
  child_index: v.nullish(Integer),
  weight: v.nullish(v.number()),
  neighbor_ids: v.optional(v.array(v.string())),
  source_group: v.nullish(LayoutGroup),
})
export type ReturnAnchor = v.InferOutput<typeof ReturnAnchor>

/** The view in a window. */
export const WindowRoute = v.strictObject({ pathname: v.string(), search: mapOf(v.string(), v.unknown()) })
export type WindowRoute = v.InferOutput<typeof WindowRoute>

export const Window = v.pipe(
  v.strictObject({
    id: v.string(),
    app: v.string(),
    desktop_id: v.string(),
    instance_key: v.nullish(v.string()),
    minimized: v.boolean(),
    placement: judged(['tiled', 'stacked', 'floating']),
    floating_rect: Rect,
    return_anchor: v.nullish(ReturnAnchor),
    route: WindowRoute,
  }),
  v.title('Window'),
)
export type Window = v.InferOutput<typeof Window>

/** Pixels around and between tiled windows. */
const Gaps = v.strictObject({
  top: v.number(),
  bottom: v.number(),
  left: v.number(),
  right: v.number(),
  inner: v.number(),
})

/** Overrides of a workspace; an absent or null member uses the setting. */
export const Overrides = v.pipe(
  v.strictObject({
    bindings: v.nullish(v.strictObject({ top_center: v.string(), bottom_center: v.string() })),
    desktop_transition: v.nullish(v.string()),
    drag_away_policy: v.nullish(v.string()),
    focus_follows_pointer: v.nullish(v.boolean()),
    focus_policy: v.nullish(v.string()),
    focus_wrap: v.nullish(v.boolean()),
    gaps: v.nullish(Gaps),
    group_move_modifier: v.nullish(v.string()),
    history_limit: v.nullish(Integer),
    new_window_policy: v.nullish(v.string()),
    raise_on_focus: v.nullish(v.boolean()),
    shortcuts: v.optional(mapOf(v.string(), v.string())),
    small_viewport_policy: v.nullish(v.string()),
    snap: v.nullish(
      v.strictObject({
        corner_reach: v.number(),
        edge_band: v.number(),
        exit_slack: v.number(),
        repeat_ratios: v.array(v.number()),
      }),
    ),
    swap_modifier: v.nullish(v.string()),
  }),
  v.title('Overrides'),
)
export type Overrides = v.InferOutput<typeof Overrides>

/** The parts of a document that commands change. */
export const Arrangement = v.strictObject({
  desktops: v.array(Desktop),
  windows: mapOf(v.string(), Window),
  overrides: Overrides,
})
export type Arrangement = v.InferOutput<typeof Arrangement>

/** A layout document: the unit of reading, writing and validation. */
export const LayoutDocument = v.strictObject({
  version: Integer,
  workspace_id: v.string(),
  desktops: v.array(Desktop),
  windows: mapOf(v.string(), Window),
  overrides: Overrides,
})
export type LayoutDocument = v.InferOutput<typeof LayoutDocument>

/** A window of a layout that is assigned to a participant when the layout is applied. */
export const ParticipantSlot = v.strictObject({
  id: v.string(),
  window_id: v.string(),
  display_name: v.optional(v.string()),
  required: v.optional(v.boolean()),
})
export type ParticipantSlot = v.InferOutput<typeof ParticipantSlot>

/** Spec of a `window_layout` record, decoded strictly. */
export const WindowLayoutSpec = v.strictObject({
  version: Integer,
  id: v.string(),
  display_name: v.string(),
  aspect: v.picklist(['any', 'landscape', 'portrait']),
  overflow: v.picklist(['stack', 'reject']),
  participants: v.optional(v.array(ParticipantSlot)),
  document: LayoutDocument,
})
export type WindowLayoutSpec = v.InferOutput<typeof WindowLayoutSpec>
