import { definePlugin, surfaceOf } from '../../kernel/plugin.js'
import { ResourceFamilies } from '../extensions/api.js'
import { SkillKind } from './api.js'
import type { SkillsService } from './service.js'

const { contribute } = surfaceOf<SkillsService>()

/**
 * The kind, and how extensions ship records of it: they are checked, made canonical and kept; nothing projects them yet, and
 * the status says so.
 */
export default definePlugin({
  name: 'skills',
  version: '0.1.0',
  service: () => import('./service.js').then(module => module.SkillsService),
}).surface({
  kinds: [SkillKind],
  registries: [contribute(ResourceFamilies, self => [self.family()])],
})
