import { definePlugin, surfaceOf } from '../../kernel/plugin.js'
import { ResourceFamilies } from '../extensions/api.js'
import { ToolKind } from './api.js'
import type { ToolsService } from './service.js'

const { contribute } = surfaceOf<ToolsService>()

/**
 * The kind, and how extensions ship records of it: they are checked, made canonical and kept; nothing projects them yet, and
 * the status says so.
 */
export default definePlugin({
  name: 'tools',
  version: '0.1.0',
  service: () => import('./service.js').then(module => module.ToolsService),
}).surface({
  kinds: [ToolKind],
  registries: [contribute(ResourceFamilies, self => [self.family()])],
})
