import type { NativeTool } from '../tools/api.js'

const toolsets = ['workspace'] as const

/** How agents look at their workspace; people also at the others. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'workspace_list', route: 'GET /api/workspaces', toolsets, visibility: 'operator' },
  { name: 'workspace_info', route: 'GET /api/workspaces/{id}', toolsets },
  { name: 'workspace_add', route: 'POST /api/workspaces', toolsets, visibility: 'operator' },
  { name: 'workspace_update', route: 'PATCH /api/workspaces/{id}', toolsets },
  { name: 'workspace_remove', route: 'DELETE /api/workspaces/{id}', toolsets, visibility: 'operator' },
]
