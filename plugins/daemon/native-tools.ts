import type { NativeTool } from '../tools/api.js'

const toolsets = ['observe'] as const

/** How people see how the daemon is; it tells of all workspaces. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'observe_status', route: 'GET /api/status', toolsets, visibility: 'operator' },
  { name: 'observe_doctor', route: 'GET /api/doctor', toolsets, visibility: 'operator' },
]
