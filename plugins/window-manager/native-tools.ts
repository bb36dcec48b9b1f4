import * as v from 'valibot'
import type { NativeTool, NativeToolsetId } from '../tools/api.js'
import { commandTable } from './reduce/command-table.js'

const BASE = '/api/workspaces/{workspace_id}/window-manager'
const toolsets: readonly NativeToolsetId[] = ['window_manager']

/** Each command is a tool, `window_open` for `window.open`; its payload is what the command takes. */
const commands = Object.entries(commandTable).map(
  ([id, { summary, payload }]): NativeTool => ({
    name: id.replace('.', '_'),
    route: `POST ${BASE}/commands`,
    description: `${summary}. expected_revision is the revision of window_manager_state.`,
    toolsets,
    fixed: { command_id: id },
    input: v.strictObject({
      expected_revision: v.pipe(v.number(), v.integer()),
      client_id: v.optional(v.string()),
      command_id: v.literal(id),
      payload: payload as v.GenericSchema,
    }),
  }),
)

/** How agents arrange desktops, windows and layouts. */
export const nativeTools: readonly NativeTool[] = [
  ...commands,
  { name: 'window_manager_state', route: `GET ${BASE}`, toolsets },
  { name: 'layout_get', route: `GET ${BASE}/layout`, toolsets },
  { name: 'layout_apply', route: `PUT ${BASE}/layout`, toolsets },
  { name: 'layout_validate', route: `POST ${BASE}/layout/validate`, toolsets, risk: 'read' },
  { name: 'layout_profiles_list', route: `GET ${BASE}/layout-profiles`, toolsets },
  { name: 'layout_profile_save', route: `PUT ${BASE}/layout-profiles/{profile_id}`, toolsets },
  { name: 'layout_profile_delete', route: `DELETE ${BASE}/layout-profiles/{profile_id}`, toolsets },
]
