import type { NativeTool } from '../tools/api.js'

const toolsets = ['bootstrap', 'coordination'] as const

/** How agents learn who they are, and start others. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'session_me', route: 'GET /api/agent/me', toolsets },
  { name: 'session_context', route: 'GET /api/agent/context', toolsets },
  { name: 'session_spawn', route: 'POST /api/agent/spawn', toolsets },
]
