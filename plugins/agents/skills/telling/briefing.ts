import { clip } from '../../../../kernel/kit/text.js'
import { messageOf } from '../../../../kernel/plugin.js'
import type { Workspace } from '../../../desk/workspaces/api.js'
import type { Briefing, SessionInfo } from '../../../work/sessions/api.js'
import type { SkillView } from '../api.js'
import type { K } from '../needs.js'
import type { Resolved } from '../resolve.js'
import type { Seen } from '../service.js'
import { SkillSettings } from '../settings.js'

/** Code units of one description; the skill itself has the rest. */
const MAX_DESCRIPTION = 240
const HEAD = `Skills are instructions for particular tasks. Before you begin a task that one of these is for, run \`svc skill content <name>\` and follow what it prints.`

/** Announces skills to agents at the start of a session: their names and purposes. */
export class Briefings implements Briefing {
  readonly name = 'skills'

  constructor(
    private readonly kernel: K,
    private readonly see: (view: SkillView) => Promise<Seen>,
  ) {}

  /** Unreadable skills do not prevent a session; it starts without the announcement. */
  read = async (session: SessionInfo, workspace: Workspace): Promise<string | undefined> => {
    if (!this.kernel.config.get(SkillSettings.enabled)) return undefined
    try {
      const view = { workspace, agent: session.agentName, environments: environmentsOf(session) }
      const { skills } = await this.see(view)
      return catalogText(skills, this.kernel.config.get(SkillSettings.contextBytes))
    } catch (error) {
      this.kernel.log.warn(`session ${session.id} starts without its list of skills: ${messageOf(error)}`)
      return undefined
    }
  }
}

/** Environment names that a skill can require. */
export function environmentsOf({ confinement }: Pick<SessionInfo, 'confinement'>): string[] {
  return confinement?.kind === 'sandbox' ? ['sandbox', confinement.backend] : ['local']
}

/**
 * Lists the skills that an agent can use, one per line, nearest first; undefined for none. The rest beyond the budget
 * is counted.
 * @param budget maximum bytes of the text
 */
export function catalogText(skills: readonly Resolved[], budget: number): string | undefined {
  const usable = skills.filter(({ active, winner }) => active && winner.spec.announced !== false)
  const near = ['agent_local', 'workspace', 'additional', 'extension', 'user', 'marketplace', 'bundled']
  const ordered = [...usable].sort((a, b) => near.indexOf(a.winner.tier) - near.indexOf(b.winner.tier))
  const lines: string[] = []
  // Reserves space for the line that counts the rest.
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
