import { clip } from '../../../../kernel/kit/text.js'
import { messageOf } from '../../../../kernel/plugin.js'
import type { Workspace } from '../../../desk/workspaces/api.js'
import type { Briefing, SessionInfo } from '../../../work/sessions/api.js'
import type { SkillView } from '../api.js'
import type { K } from '../needs.js'
import type { Resolved } from '../resolve.js'
import type { Seen } from '../service.js'
import { SkillSettings } from '../settings.js'

/** Code units of one description; the rest is read with the skill. */
const MAX_DESCRIPTION = 240
const HEAD = `Skills are instructions for particular tasks. Before you begin a task that one of these is for, run \`svc skill content <name>\` and follow what it prints.`

/** What agents are told of skills: their names and what each is for, when a session begins. */
export class Briefings implements Briefing {
  readonly name = 'skills'

  constructor(
    private readonly kernel: K,
    private readonly see: (view: SkillView) => Promise<Seen>,
  ) {}

  /** Skills that cannot be read keep no session from beginning: it is told of none. */
  read = async (session: SessionInfo, workspace: Workspace): Promise<string | undefined> => {
    if (!this.kernel.config.get(SkillSettings.enabled)) return undefined
    try {
      const view = { workspace, agent: session.agentName, environments: environmentsOf(session) }
      const { skills } = await this.see(view)
      return catalogText(skills, this.kernel.config.get(SkillSettings.contextBytes))
    } catch (error) {
      this.kernel.log.warn(`session ${session.id} is told of no skills: ${messageOf(error)}`)
      return undefined
    }
  }
}

/** What a skill can name as the environment of a process. */
export function environmentsOf({ confinement }: Pick<SessionInfo, 'confinement'>): string[] {
  return confinement?.kind === 'sandbox' ? ['sandbox', confinement.backend] : ['local']
}

/**
 * The skills that an agent can use, one a line, the nearest to it first; undefined for none. What does not fit is counted.
 * @param budget most bytes of the text
 */
export function catalogText(skills: readonly Resolved[], budget: number): string | undefined {
  const usable = skills.filter(({ active, winner }) => active && winner.spec.announced !== false)
  const near = ['agent_local', 'workspace', 'additional', 'extension', 'user', 'marketplace', 'bundled']
  const ordered = [...usable].sort((a, b) => near.indexOf(a.winner.tier) - near.indexOf(b.winner.tier))
  const lines: string[] = []
  // The line that counts the rest must fit as well.
  let left = budget - Buffer.byteLength(HEAD) - 80
  for (const { winner } of ordered) {
    const line = `- ${winner.name}: ${oneLine(winner.spec.description)}`
    left -= Buffer.byteLength(line) + 1
    if (left < 0) break
    lines.push(line)
  }
  if (lines.length === 0) return undefined
  const rest = ordered.length - lines.length
  return [HEAD, ...lines, ...(rest > 0 ? [`${rest} more: svc skill list`] : [])].join('\n')
}

function oneLine(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim()
  return line.length > MAX_DESCRIPTION ? `${clip(line, MAX_DESCRIPTION).trimEnd()}…` : line
}
