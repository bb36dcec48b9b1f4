import type { NativeTool } from '../tools/api.js'

const toolsets = ['workspace'] as const

/** How agents see whether the files of their workspace may run code; only a person says so. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'workspace_trust_status', route: 'GET /api/workspaces/{id}/trust', toolsets },
]
