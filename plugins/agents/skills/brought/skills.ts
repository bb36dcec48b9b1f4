import os from 'node:os'
import path from 'node:path'
import type { SkillView } from '../api.js'
import { declaredIn, type Member } from '../candidate.js'
import type { K } from '../needs.js'
import { type Resolved, resolve } from '../resolve.js'
import type { SkillSources } from '../sources.js'
import type { SkillSwitch } from '../switch.js'

/** What this needs of the service. */
export interface BringingWorld {
  readonly kernel: K
  readonly sources: SkillSources
  readonly switches: SkillSwitch
  readonly capabilities: (view: SkillView, trusted: boolean) => Promise<ReadonlySet<string> | undefined>
}

/** Skills whose servers or hooks may run. Those of an installed one only where a person allows them, by its name. */
export async function bringing(
  world: BringingWorld,
  view: SkillView,
  member: Member,
  allowed: readonly string[],
  disabledByAgent: readonly string[],
): Promise<Resolved[]> {
  const skills = await skillsOf(world, view, member, disabledByAgent)
  return skills.filter(skill => mayBring(skill) && (!skill.winner.meta || allowed.includes(skill.winner.name)))
}

/** Skills of a place, judged without a look at tools: these come from servers too. */
async function skillsOf(
  { kernel, sources, switches, capabilities }: BringingWorld,
  view: SkillView,
  member: Member,
  more: readonly string[],
): Promise<Resolved[]> {
  const { workspace } = view
  const agents = kernel.needs.agents.current
  const { candidates } = await sources.of(view)
  // Asked with each call of a tool, and few skills bring something: only what decides about those is looked at.
  const names = new Set(candidates.flatMap(one => (declaredIn(one, member) === undefined ? [] : [one.name])))
  if (names.size === 0) return []
  const [disabled, trusted] = await Promise.all([
    switches.disabled(workspace),
    (workspace && agents?.mayRunFilesOf(workspace)) ?? true,
  ])
  const wanted = candidates.filter(({ name }) => names.has(name))
  return resolve(wanted, {
    platforms: [os.platform()],
    environments: view.environments,
    tools: undefined,
    capabilities: await capabilities(view, trusted),
    disabled: new Set([...disabled, ...more]),
    trusted,
  })
}

/** Which tools there are is not asked here, so a gate of tools keeps no server away. */
const mayBring = ({ enabled, untrusted, reasons, winner }: Resolved): boolean =>
  enabled && !untrusted && winner.failure === undefined && reasons.every(({ gate }) => gate === 'requires_tools')

/** What begins with `./` is a file of the skill, wherever its program is started. */
export function inside(folder: string, text: string): string {
  if (!text.startsWith('./')) return text
  const file = path.join(folder, text)
  return file.startsWith(`${folder}${path.sep}`) ? file : text
}
