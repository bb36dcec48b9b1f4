import type { NativeTool } from '../tools/api.js'

const toolsets = ['resources'] as const

/** How agents read and write records. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'resources_list', route: 'GET /api/resources', toolsets },
  { name: 'resources_snapshot', route: 'GET /api/resources/{kind}', toolsets },
  { name: 'resources_info', route: 'GET /api/resources/{kind}/{id}', toolsets },
  { name: 'resources_put', route: 'PUT /api/resources/{kind}/{id}', toolsets },
  { name: 'resources_delete', route: 'DELETE /api/resources/{kind}/{id}', toolsets },
]
