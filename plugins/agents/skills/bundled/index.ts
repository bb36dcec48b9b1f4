import type { Candidate } from '../candidate.js'
import { parseSkillFile } from '../skill-file.js'
import { own } from './own.js'
import { schedule } from './schedule.js'
import { write } from './write.js'

/** Skills of the program itself: how an agent uses `svc`. */
export const bundledSkills: readonly Candidate[] = [own, schedule, write].map(text => {
  const { spec } = parseSkillFile(text)
  return {
    name: spec.name,
    tier: 'bundled',
    path: `bundled:${spec.name}/SKILL.md`,
    dir: `bundled:${spec.name}`,
    ofWorkspace: false,
    spec,
    warnings: [],
  }
})
