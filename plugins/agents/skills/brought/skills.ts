import os from 'node:os'
import path from 'node:path'
import type { SkillView } from '../api.js'
import type { Member } from '../candidate.js'
import type { K } from '../needs.js'
import { type Resolved, resolve } from '../resolve.js'
import type { SkillSources } from '../sources.js'
import type { SkillSwitch } from '../switch.js'

/** Dependencies from the service. */
export interface BringingWorld {
  readonly kernel: K
  readonly sources: SkillSources
  readonly switches: SkillSwitch
  readonly capabilities: (view: SkillView, trusted: boolean) => Promise<ReadonlySet<string> | undefined>
}

/** Skills whose servers or hooks may run. For an installed skill a person has to allow that by name. */
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

/** Resolved skills of a place without tool gates, because tools come from servers too. */
async function skillsOf(
  { kernel, sources, switches, capabilities }: BringingWorld,
  view: SkillView,
  member: Member,
  more: readonly string[],
): Promise<Resolved[]> {
  const { workspace } = view
  const agents = kernel.needs.agents.current
  // Called on every tool call, while few skills declare this member: only names with one are resolved.
  const wanted = await sources.declaring(view, member)
  if (wanted.length === 0) return []
  const [disabled, trusted] = await Promise.all([
    switches.disabled(workspace),
    (workspace && agents?.mayRunFilesOf(workspace)) ?? true,
  ])
  return resolve(wanted, {
    platforms: [os.platform()],
    environments: view.environments,
    tools: undefined,
    capabilities: await capabilities(view, trusted),
    disabled: new Set([...disabled, ...more]),
    trusted,
  })
}

/** Whether servers or hooks of a skill may run. Tools are unknown here, so tool gates are ignored. */
const mayBring = ({ enabled, untrusted, reasons, winner }: Resolved): boolean =>
  enabled && !untrusted && winner.failure === undefined && reasons.every(({ gate }) => gate === 'requires_tools')

/** Resolves a path that begins with `./` in the skill's folder, independent of the working directory. */
export function inside(folder: string, text: string): string {
  if (!text.startsWith('./')) return text
  const file = path.join(folder, text)
  return file.startsWith(`${folder}${path.sep}`) ? file : text
}
