import type { Candidate } from '../candidate.js'
import { parseSkillFile } from '../skill-file.js'
import { own } from './own.js'
import { schedule } from './schedule.js'
import { write } from './write.js'

let parsed: readonly Candidate[] | undefined

/** Skills of the program itself: how an agent uses `svc`. They are parsed on first use. */
export function bundledSkills(): readonly Candidate[] {
  parsed ??= [own, schedule, write].map(text => {
    const { spec } = parseSkillFile(text)
    const dir = `bundled:${spec.name}`
    return { name: spec.name, tier: 'bundled', path: `${dir}/SKILL.md`, dir, ofWorkspace: false, spec, warnings: [] }
  })
  return parsed
}
