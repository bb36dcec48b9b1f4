import type { NativeTool } from '../tools/api.js'

const toolsets = ['marketplace'] as const

/** How agents look for what could be installed. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'marketplace_search', route: 'GET /api/marketplace/search', toolsets },
  { name: 'marketplace_info', route: 'GET /api/marketplace/{kind}/{entry_id}', toolsets },
]
