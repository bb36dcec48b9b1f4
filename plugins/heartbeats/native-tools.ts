import type { NativeTool } from '../tools/api.js'

const toolsets = ['autonomy', 'authored_context'] as const

/** How agents see and ask for wake-ups. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'agent_heartbeat_status', route: 'GET /api/agents/{name}/heartbeat/status', toolsets },
  { name: 'agent_heartbeat_wake', route: 'POST /api/agents/{name}/heartbeat/wake', toolsets },
]
