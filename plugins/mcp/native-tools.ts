import type { NativeTool } from '../tools/api.js'

const toolsets = ['mcp'] as const

/** How people see which MCP servers there are. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'mcp_list', route: 'GET /api/settings/mcp-servers', toolsets, visibility: 'operator' },
  { name: 'mcp_info', route: 'GET /api/settings/mcp-servers/{name}', toolsets, visibility: 'operator' },
]
