import type { NativeTool } from '../tools/api.js'

const toolsets = ['extensions'] as const

/** How agents look at extensions and ask for changes of them. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'extensions_list', route: 'GET /api/extensions', toolsets },
  { name: 'extensions_info', route: 'GET /api/extensions/{name}', toolsets },
  { name: 'extensions_inventory', route: 'GET /api/extensions/{name}/inventory', toolsets },
  { name: 'extensions_provenance', route: 'GET /api/extensions/{name}/provenance', toolsets },
  { name: 'extensions_install', route: 'POST /api/extensions', toolsets },
  { name: 'extensions_update', route: 'PUT /api/extensions/{name}', toolsets },
  { name: 'extensions_remove', route: 'DELETE /api/extensions/{name}', toolsets },
  { name: 'extensions_enable', route: 'POST /api/extensions/{name}/enable', toolsets },
  { name: 'extensions_disable', route: 'POST /api/extensions/{name}/disable', toolsets },
  { name: 'extensions_reload', route: 'POST /api/extensions/{name}/reload', toolsets },
]
