import type { NativeTool } from '../tools/api.js'

const toolsets = ['config'] as const

/** How people find secrets through a program; values never come by a tool, and agents see no names. */
export const nativeTools: readonly NativeTool[] = [
  { name: 'vault_list', route: 'GET /api/vault/secrets', toolsets, visibility: 'operator' },
  { name: 'vault_info', route: 'GET /api/vault/secrets/metadata', toolsets, visibility: 'operator' },
]
