import type { NativeTool } from '../tools/api.js'

const toolsets = ['hooks'] as const

/** Tools that let agents list hooks and hook events. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'hooks_list', route: 'GET /api/hooks/catalog', toolsets },
  { name: 'hooks_events', route: 'GET /api/hooks/events', toolsets },
]
