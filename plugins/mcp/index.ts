import { definePlugin, surfaceOf } from '../../kernel/plugin.js'
import { ResourceFamilies } from '../extensions/api.js'
import { McpServerKind } from './api.js'
import type { McpService } from './service.js'

const { contribute } = surfaceOf<McpService>()

/**
 * The kind, and how extensions ship records of it: they are checked, made canonical and kept; nothing projects them yet, and
 * the status says so.
 */
export default definePlugin({
  name: 'mcp',
  version: '0.1.0',
  service: () => import('./service.js').then(module => module.McpService),
}).surface({
  kinds: [McpServerKind],
  registries: [contribute(ResourceFamilies, self => [self.family()])],
})
