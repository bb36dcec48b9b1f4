import type { Setting } from '../../../kernel/plugin.js'
import { PermissionMode } from '../../../schemas/agents.js'

/** Permission mode of an agent whose definition sets none. */
export const DefaultPermissions: Setting<PermissionMode> = {
  path: 'permissions.mode',
  section: 'general',
  schema: PermissionMode,
  default: 'approve-reads',
  apply: 'restart-required',
}
