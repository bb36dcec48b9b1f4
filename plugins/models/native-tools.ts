import type { NativeTool } from '../tools/api.js'

const toolsets = ['provider_models'] as const

/** How agents see which models there are. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'provider_models_list', route: 'GET /api/model-catalog/models', toolsets },
  { name: 'provider_models_status', route: 'GET /api/model-catalog/sources/status', toolsets },
  { name: 'provider_models_refresh', route: 'POST /api/model-catalog/models/refresh', toolsets },
  { name: 'provider_models_curate', route: 'POST /api/model-catalog/providers/{provider_id}/models/curate', toolsets },
]
