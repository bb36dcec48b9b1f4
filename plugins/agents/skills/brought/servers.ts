import { shown } from '../../../../kernel/kit/text.js'
import { type McpServerSource, parseDeclarations } from '../../../work/mcp/api.js'
import { declaredIn } from '../candidate.js'
import type { Resolved } from '../resolve.js'
import { SkillSettings } from '../settings.js'
import { type BringingWorld, bringing, inside } from './skills.js'

/**
 * MCP servers declared by skills in `metadata.svc.mcp_servers` of a SKILL.md. Skills that are disabled, inactive or
 * untrusted have none, and installed ones only if `skills.allowed_marketplace_mcp` names them.
 */
export const skillServers = (world: BringingWorld): McpServerSource => ({
  kind: 'skill',
  read: async scope => {
    const { workspace, definition } = scope
    const view = { workspace, agent: definition?.path === undefined ? undefined : definition.name }
    const allowed = world.kernel.config.get(SkillSettings.allowedMcp)
    const skills = await bringing(world, view, 'mcp_servers', allowed, definition?.disabledSkills ?? [])
    return skills.flatMap(({ winner }) => {
      const where = `skill ${winner.name}`
      const { ofWorkspace, extensionKey: extension } = winner
      const { servers, faults } = declaredBy(winner)
      const about = { where, ofWorkspace, extension }
      return [...servers.map(declaration => ({ ...about, declaration })), ...faults.map(fault => ({ ...about, fault }))]
    })
  },
})

function declaredBy(skill: Resolved['winner']): ReturnType<typeof parseDeclarations> {
  const { name, dir, tier } = skill
  const declared = declaredIn(skill, 'mcp_servers')
  if (declared === undefined || declared === null) return { servers: [], faults: [] }
  const { servers, faults } = parseDeclarations(`the skill ${shown(name)}`, declared)
  // A record has no files: its commands are found in the PATH.
  if (tier === 'extension') return { servers, faults }
  const inFolder = servers.map(server => ({
    ...server,
    ...(server.command !== undefined && { command: inside(dir, server.command) }),
    ...(server.args && { args: server.args.map(arg => inside(dir, arg)) }),
  }))
  return { servers: inFolder, faults }
}
