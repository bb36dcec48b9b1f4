import type { NativeTool } from '../tools/api.js'

const toolsets = ['skills'] as const

/** How agents find skills and read one. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'skill_list', route: 'GET /api/skills', toolsets },
  { name: 'skill_info', route: 'GET /api/skills/{name}', toolsets },
  { name: 'skill_view', route: 'GET /api/skills/{name}/content', toolsets },
  { name: 'skill_shadows', route: 'GET /api/skills/{name}/shadows', toolsets },
  { name: 'skill_enable', route: 'POST /api/skills/{name}/enable', toolsets },
  { name: 'skill_disable', route: 'POST /api/skills/{name}/disable', toolsets },
]
