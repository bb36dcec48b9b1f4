import * as v from 'valibot'
import { event, token } from '../../../kernel/plugin.js'
import { type WindowManagerState, type WindowPreferences, WindowStreamEvent } from '../../../schemas/window-manager.js'
import type { HappeningName } from './document/changes.js'

export { readLayoutFile } from './layouts/file.js'
export { type DecodedLayout, decodeLayout, LayoutKind, MAX_LAYOUT_BYTES } from './layouts/kind.js'

/** The window manager of each workspace. */
export interface WindowManagerApi {
  /** The state of a workspace, by id; undefined when there is no such workspace. */
  state(workspaceId: string): WindowManagerState | undefined
  /** Effective preferences of a workspace: settings with the workspace's overrides. Undefined if the workspace does not exist. */
  preferences(workspaceId: string): WindowPreferences | undefined
}

export const WindowManager = token<WindowManagerApi>('window-manager@1')

/** A command that changed a document, as sent to readers of the stream. */
export const CommandApplied = event('window_manager.command.applied', WindowStreamEvent)

const happened = v.object({
  workspace_id: v.string(),
  revision: v.number(),
  command_id: v.string(),
  /** Ids of the affected desktops or windows. */
  ids: v.array(v.string()),
})

/** A layout replaced the arrangement. */
export const LayoutApplied = event('window_manager.layout.applied', happened)

/** One event per command and name, whatever the number of windows. */
export const happeningEvents = {
  'desktop.created': event('window_manager.desktop.created', happened),
  'desktop.deleted': event('window_manager.desktop.deleted', happened),
  'window.opened': event('window_manager.window.opened', happened),
  'window.closed': event('window_manager.window.closed', happened),
  'window.moved': event('window_manager.window.moved', happened),
  'stack.grouped': event('window_manager.stack.grouped', happened),
  'stack.ungrouped': event('window_manager.stack.ungrouped', happened),
  'stack.activated': event('window_manager.stack.activated', happened),
} as const satisfies Record<HappeningName, unknown>
