import os from 'node:os'
import path from 'node:path'
import { shown } from '../../../kernel/kit/text.js'
import { type Declaration, type McpServerSource, type Place, parseDeclarations } from '../../mcp/api.js'
import type { SkillView } from '../api.js'
import { type Resolved, resolve } from '../resolve.js'
import type { SkillsKernel } from '../service.js'
import { SkillSettings } from '../settings.js'
import type { SkillSources } from '../sources.js'
import type { SkillSwitch } from '../switch.js'

/** What this needs of the service. */
interface World {
  readonly kernel: SkillsKernel
  readonly sources: SkillSources
  readonly switches: SkillSwitch
  readonly capabilities: (view: SkillView, trusted: boolean) => Promise<ReadonlySet<string> | undefined>
}

/**
 * MCP servers that skills bring, as `metadata.svc.mcp_servers` of a SKILL.md has them. Those of a skill that is off, not active or
 * not trusted count for nothing, and those of an installed one only where `skills.allowed_marketplace_mcp` names it.
 */
export const skillServers = (world: World): McpServerSource => ({
  kind: 'skill',
  read: async place => {
    const allowed = new Set(world.kernel.config.get(SkillSettings.allowedMcp))
    return (await skillsOf(world, place)).flatMap(skill => {
      const { winner } = skill
      if (!mayBring(skill) || (winner.meta && !allowed.has(winner.name))) return []
      const where = `skill ${winner.name}`
      return declaredBy(winner).map(declaration => ({ where, declaration, ofWorkspace: winner.ofWorkspace }))
    })
  },
})

/** Skills of a place, judged without a look at tools: these come from servers too. */
async function skillsOf({ kernel, sources, switches, capabilities }: World, { workspace, definition }: Place) {
  const view = { workspace, agent: definition?.path === undefined ? undefined : definition.name }
  const agents = kernel.needs.agents.current
  const [{ candidates }, disabled, trusted] = await Promise.all([
    sources.of(view),
    switches.disabled(workspace),
    (workspace && agents?.mayRunFilesOf(workspace)) ?? true,
  ])
  return resolve(candidates, {
    platforms: [os.platform()],
    environments: undefined,
    tools: undefined,
    capabilities: await capabilities(view, trusted),
    disabled: new Set([...disabled, ...(definition?.disabledSkills ?? [])]),
    trusted,
  })
}

/** Which tools there are is not asked here, so a gate of tools keeps no server away. */
const mayBring = ({ enabled, untrusted, reasons, winner }: Resolved): boolean =>
  enabled && !untrusted && winner.failure === undefined && reasons.every(({ gate }) => gate === 'requires_tools')

function declaredBy({ name, dir, spec, tier }: Resolved['winner']): readonly Declaration[] {
  const declared = (spec.metadata as { svc?: { mcp_servers?: unknown } } | undefined)?.svc?.mcp_servers
  if (declared === undefined) return []
  const servers = parseDeclarations(`the skill ${shown(name)}`, declared)
  // The files of a record are nowhere: what it names is on the PATH.
  if (tier === 'extension') return servers
  return servers.map(server => ({
    ...server,
    ...(server.command !== undefined && { command: inside(dir, server.command) }),
    ...(server.args && { args: server.args.map(arg => inside(dir, arg)) }),
  }))
}

/** What begins with `./` is a file of the skill, wherever its program is started. */
function inside(folder: string, text: string): string {
  if (!text.startsWith('./')) return text
  const file = path.join(folder, text)
  return file.startsWith(`${folder}${path.sep}`) ? file : text
}
