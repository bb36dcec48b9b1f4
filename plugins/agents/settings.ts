import type { Setting } from '../../kernel/plugin.js'
import { PermissionMode } from '../../schemas/agents.js'

/** What an agent may do that does not say it itself (Behaviour 11.3). */
export const DefaultPermissions: Setting<PermissionMode> = {
  path: 'permissions.mode',
  section: 'general',
  schema: PermissionMode,
  default: 'approve-all',
  apply: 'restart-required',
}
