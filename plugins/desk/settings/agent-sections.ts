import { isDeepStrictEqual } from 'node:util'
import type { Actor } from '../../../kernel/plugin.js'
import type { ApplyOutcome } from '../../../schemas/settings.js'
import { SettingsErrors } from './errors.js'
import { keysIn, pathOf } from './keys.js'
import type { ScopeQuery, Section } from './section.js'
import type { Targets } from './targets.js'

/**
 * Sections with a member that an agent's definition sets. In the scope `agent`, that member is read from and written to the
 * definition.
 */
export class AgentSections {
  constructor(private readonly targets: Pick<Targets, 'workspace' | 'agent' | 'writeAgent'>) {}

  /**
   * Reads a section for an agent.
   * @param everywhere the reply for the section without an agent
   * @throws Fault `settings_scope_invalid`, `settings_target_invalid`
   */
  async read(section: Section, query: ScopeQuery, everywhere: Record<string, unknown>) {
    const { agent, workspace, of } = await this.#find(section, query)
    return {
      ...everywhere,
      scope: 'agent',
      agent_name: agent.name,
      ...(workspace && { workspace_id: workspace.id }),
      config: { ...(everywhere.config as object), [of.member]: of.read(agent) },
    }
  }

  /**
   * Changes a section for an agent.
   * @param everywhere the reply for the section without an agent; an unchanged member in the body changes nothing
   * @throws Fault `settings_target_invalid` for members that a definition does not have
   */
  async patch(
    section: Section,
    body: unknown,
    actor: Actor,
    query: ScopeQuery,
    everywhere: Record<string, unknown>,
  ): Promise<ApplyOutcome> {
    const { agent, workspace, of } = await this.#find(section, query)
    const changes = keysIn(section.members).flatMap(({ member, key }) => {
      const value = (body as Record<string, unknown>)[member]
      if (value === undefined) return []
      if (member === of.member) return [{ key: pathOf(section.prefix, member, key), value }]
      if (!isDeepStrictEqual(value, (everywhere.config as Record<string, unknown>)[member]))
        throw SettingsErrors.settings_target_invalid(`${member} is not a member of an agent; use ${of.member}`)
      return []
    })
    const target = agent.origin === 'workspace' ? 'workspace-agent-file' : 'global-agent-file'
    const outcome = await this.targets.writeAgent({ changes, actor, target, workspace, agentName: agent.name })
    return { ...outcome, section: section.name as NonNullable<ApplyOutcome['section']> }
  }

  async #find({ ofAgent: of }: Section, { agent_name: name, workspace_id: id }: ScopeQuery) {
    if (!of || !name) throw SettingsErrors.settings_scope_invalid('scope agent needs agent_name')
    const workspace = await this.targets.workspace(id)
    return { agent: await this.targets.agent(name, workspace), workspace, of }
  }
}
