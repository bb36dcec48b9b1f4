import type { NativeTool } from '../tools/api.js'

const toolsets = ['config'] as const

/** How agents read the configuration and ask for changes of it. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'config_list', route: 'GET /api/settings/keys', toolsets },
  { name: 'config_get', route: 'GET /api/settings/keys/{key}', toolsets },
  { name: 'config_check', route: 'GET /api/settings/check', toolsets },
  { name: 'config_apply_history', route: 'GET /api/settings/apply', toolsets },
  { name: 'config_set', route: 'PATCH /api/settings/keys', toolsets },
  { name: 'config_reload', route: 'POST /api/settings/reload', toolsets },
]
