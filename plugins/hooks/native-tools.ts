import type { NativeTool } from '../tools/api.js'

const toolsets = ['hooks'] as const

/** How agents see which hooks run for what. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'hooks_list', route: 'GET /api/hooks/catalog', toolsets },
  { name: 'hooks_events', route: 'GET /api/hooks/events', toolsets },
]
