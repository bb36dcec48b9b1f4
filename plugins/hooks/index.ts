import { definePlugin, surfaceOf } from '../../kernel/plugin.js'
import { ResourceFamilies } from '../extensions/api.js'
import { HookKind } from './api.js'
import type { HooksService } from './service.js'

const { contribute } = surfaceOf<HooksService>()

/**
 * The kind, and how extensions ship records of it: they are checked, made canonical and kept; nothing projects them yet, and
 * the status says so.
 */
export default definePlugin({
  name: 'hooks',
  version: '0.1.0',
  service: () => import('./service.js').then(module => module.HooksService),
}).surface({
  kinds: [HookKind],
  registries: [contribute(ResourceFamilies, self => [self.family()])],
})
