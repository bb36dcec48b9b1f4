import type { ResourceFamily } from '../extensions/api.js'
import { SkillKind } from './api.js'

export class SkillsService {
  /** How extensions have their skills read. */
  family(): ResourceFamily {
    return {
      name: 'skills',
      kinds: [SkillKind],
      load: async extension => {
        const { readSkills } = await import('./skill-files.js')
        return { records: await readSkills(extension) }
      },
    }
  }
}
