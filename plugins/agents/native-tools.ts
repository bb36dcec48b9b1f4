import type { NativeTool } from '../tools/api.js'

const toolsets = ['catalog'] as const

/** How agents read and write definitions of agents. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'agent_list', route: 'GET /api/agents', toolsets },
  { name: 'agent_info', route: 'GET /api/agents/{name}', toolsets },
  { name: 'agent_create', route: 'POST /api/agents', toolsets },
  { name: 'agent_update', route: 'PUT /api/agents/{name}', toolsets },
  { name: 'agent_delete', route: 'DELETE /api/agents/{name}', toolsets },
  { name: 'agent_duplicate', route: 'POST /api/agents/{name}/duplicate', toolsets },
]
