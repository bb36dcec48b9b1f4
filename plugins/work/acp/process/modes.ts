import type { PermissionMode } from '../../../agents/agents/api.js'

/** Modes in which an agent asks before it acts. Never `plan`: there an agent neither asks nor runs anything. */
export const ASKING: readonly string[] = ['ask', 'default', 'read-only', 'read_only', 'readOnly']
/** An agent's own mode names for each permission mode, in the order in which they are tried. */
export const MODE_NAMES: { readonly [M in PermissionMode]: readonly string[] } = {
  'approve-all': [
    'full-access',
    'agent-full-access',
    'full_access',
    'bypassPermissions',
    'bypass_permissions',
    'auto',
    'acceptEdits',
  ],
  'approve-reads': ASKING,
  'deny-all': ASKING,
}
