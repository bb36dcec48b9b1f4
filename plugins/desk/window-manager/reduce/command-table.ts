import * as v from 'valibot'
import { text } from '../../../../kernel/kit/text.js'
import { LayoutDocument, Rect, WindowRoute } from '../../../../schemas/window-manager.js'

const Id = text(64)
const Name = text(200)
const App = text(512)
const Purpose = v.picklist(['standard', 'focus'])
const Axis = v.picklist(['horizontal', 'vertical'])
const Edge = v.picklist(['left', 'right', 'top', 'bottom', 'center'])
const Order = v.pipe(v.number(), v.integer(), v.minValue(0))
const Index = Order
const Delta = v.pipe(v.number(), v.minValue(-1), v.maxValue(1))

/** Participants by slot of a layout; an unfilled slot is omitted unless it is required. */
const Participants = v.record(
  v.string(),
  v.strictObject({ instance_key: v.optional(v.string()), route: v.optional(WindowRoute) }),
)

/** A command: its description, its payload, and whether it can be undone. */
export interface CommandEntry<P extends v.GenericSchema = v.GenericSchema> {
  readonly summary: string
  readonly payload: P
  /** False for focus changes: they create a revision but no history entry. */
  readonly recorded: boolean
}

const command = <P extends v.GenericSchema>(summary: string, payload: P, recorded = true): CommandEntry<P> => ({
  summary,
  payload,
  recorded,
})

/** All commands of the window manager. The reducers, the command line, the README and the tests use this table. */
export const commandTable = {
  'desktop.create': command(
    'Add a desktop, at the end unless `order` says where',
    v.strictObject({
      id: v.optional(Id),
      name: v.optional(Name),
      purpose: v.optional(Purpose),
      order: v.optional(Order),
    }),
  ),
  'desktop.update': command(
    'Change name or purpose of a desktop',
    v.strictObject({ desktop_id: Id, name: v.optional(Name), purpose: v.optional(Purpose) }),
  ),
  'desktop.reorder': command('Move a desktop to a place, from 0', v.strictObject({ desktop_id: Id, order: Order })),
  'desktop.switch': command('Show a desktop on one client', v.strictObject({ desktop_id: Id }), false),
  'desktop.delete': command(
    'Remove a desktop; its windows go to `move_to`',
    v.strictObject({ desktop_id: Id, move_to: v.optional(Id) }),
  ),
  'window.open': command(
    'Open a window, or focus the one that has the app and the instance key',
    v.strictObject({
      id: v.optional(Id),
      app: App,
      instance_key: v.optional(App),
      desktop_id: v.optional(Id),
      route: v.optional(WindowRoute),
      placement: v.optional(v.picklist(['tiled', 'floating'])),
      floating_rect: v.optional(Rect),
      target_window_id: v.optional(Id),
      edge: v.optional(Edge),
    }),
  ),
  'window.navigate': command('Change what a window shows', v.strictObject({ window_id: Id, route: WindowRoute })),
  'window.close': command('Close a window', v.strictObject({ window_id: Id })),
  'window.focus': command(
    'Focus a window: raise it, show it in its stack, restore it when it is minimized',
    v.strictObject({ window_id: Id }),
    false,
  ),
  'window.move': command(
    'Move a window beside another, on top of it (`center`), to another desktop, or to a floating position',
    v.strictObject({
      window_id: Id,
      desktop_id: v.optional(Id),
      target_window_id: v.optional(Id),
      edge: v.optional(Edge),
      floating_rect: v.optional(Rect),
    }),
  ),
  'window.swap': command('Swap the places of two windows', v.strictObject({ window_id: Id, target_window_id: Id })),
  'window.toggle_floating': command(
    'Float a tiled window, minimized if wanted, or tile a floating one where it came from',
    v.strictObject({ window_id: Id, minimized: v.optional(v.boolean()) }),
  ),
  'window.zoom': command('Zoom a window to cover its desktop, or put it back', v.strictObject({ window_id: Id })),
  'layout.arrange': command(
    'Tile the windows of a desktop again',
    v.strictObject({
      desktop_id: v.optional(Id),
      mode: v.picklist(['columns', 'rows', 'grid', 'main', 'stack']),
    }),
  ),
  'layout.resize': command(
    'Move the boundary of a split, or that of a window along an axis, or frame a group',
    v.union([
      v.strictObject({ split_id: Id, boundary_index: Index, delta: Delta }),
      v.strictObject({ window_id: Id, axis: Axis, delta: Delta }),
      v.strictObject({ group_id: Id, frame: Rect }),
    ]),
  ),
  'layout.balance': command(
    'Give the parts of a split, or of all splits of a desktop, the same size',
    v.strictObject({ desktop_id: v.optional(Id), split_id: v.optional(Id) }),
  ),
  'layout.undo': command('Undo the last recorded command', v.strictObject({}), false),
  'layout.redo': command('Redo what was undone', v.strictObject({}), false),
  'layout.replace': command(
    'Replace the arrangement by a document, or apply a saved layout to the windows that are open',
    v.union([
      v.strictObject({ document: LayoutDocument }),
      v.strictObject({
        layout_id: Id,
        participants: v.optional(Participants),
        viewport: v.optional(
          v.strictObject({ width: v.pipe(v.number(), v.minValue(1)), height: v.pipe(v.number(), v.minValue(1)) }),
        ),
      }),
    ]),
  ),
} as const

export type CommandId = keyof typeof commandTable
export type Payload<C extends CommandId> = v.InferOutput<(typeof commandTable)[C]['payload']>
export type Participants = v.InferOutput<typeof Participants>
