import type { NativeTool } from '../tools/api.js'

const toolsets = ['bundles'] as const

/** How agents find, activate and leave bundles. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'bundles_list', route: 'GET /api/bundles/catalog', toolsets },
  { name: 'bundles_status', route: 'GET /api/bundles/activations', toolsets },
  { name: 'bundles_info', route: 'GET /api/bundles/activations/{id}', toolsets },
  { name: 'bundles_preview', route: 'POST /api/bundles/preview', toolsets, risk: 'read' },
  { name: 'bundles_activate', route: 'POST /api/bundles/activations', toolsets },
  { name: 'bundles_update', route: 'PATCH /api/bundles/activations/{id}', toolsets },
  { name: 'bundles_deactivate', route: 'DELETE /api/bundles/activations/{id}', toolsets },
]
