import { definePlugin, surfaceOf } from '../../kernel/plugin.js'
import { ResourceFamilies, type ResourceFamily } from '../extensions/api.js'
import { SkillKind } from './api.js'

/** How extensions have their skills read. */
const family: ResourceFamily = {
  name: 'skills',
  kinds: [SkillKind],
  load: async extension => ({ records: await (await import('./skill-files.js')).readSkills(extension) }),
}

/**
 * The kind, and how extensions ship records of it: they are checked, made canonical and kept; nothing projects them yet, and
 * the status says so.
 */
export default definePlugin({ name: 'skills', version: '0.1.0' }).surface({
  kinds: [SkillKind],
  registries: [surfaceOf().contribute(ResourceFamilies, () => [family])],
})
