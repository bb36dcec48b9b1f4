import type { NativeTool } from '../tools/api.js'

const toolsets = ['operator_debug'] as const

/** How people ask who changed what. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'observe_audit', route: 'GET /api/audit', toolsets, visibility: 'operator' },
  { name: 'observe_why', route: 'GET /api/audit/why', toolsets, visibility: 'operator' },
]
