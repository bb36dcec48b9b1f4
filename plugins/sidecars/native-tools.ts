import type { NativeTool } from '../tools/api.js'

const toolsets = ['authored_context'] as const

/** How agents read and write what agents are told of themselves. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'agent_soul_info', route: 'GET /api/agents/{name}/soul', toolsets },
  { name: 'agent_soul_history', route: 'GET /api/agents/{name}/soul/history', toolsets },
  { name: 'agent_soul_write', route: 'PUT /api/agents/{name}/soul', toolsets },
  { name: 'agent_soul_delete', route: 'DELETE /api/agents/{name}/soul', toolsets },
  { name: 'agent_soul_rollback', route: 'POST /api/agents/{name}/soul/rollback', toolsets },
  { name: 'agent_heartbeat_info', route: 'GET /api/agents/{name}/heartbeat', toolsets },
  { name: 'agent_heartbeat_history', route: 'GET /api/agents/{name}/heartbeat/history', toolsets },
  { name: 'agent_heartbeat_write', route: 'PUT /api/agents/{name}/heartbeat', toolsets },
  { name: 'agent_heartbeat_delete', route: 'DELETE /api/agents/{name}/heartbeat', toolsets },
  { name: 'agent_heartbeat_rollback', route: 'POST /api/agents/{name}/heartbeat/rollback', toolsets },
]
