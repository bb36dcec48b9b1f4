import type { NativeTool } from '../tools/api.js'

const toolsets = ['observe'] as const

/** How agents see how the daemon is; what tells of all workspaces is for people. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'observe_status', route: 'GET /api/status', toolsets },
  { name: 'observe_doctor', route: 'GET /api/doctor', toolsets, visibility: 'operator' },
]
