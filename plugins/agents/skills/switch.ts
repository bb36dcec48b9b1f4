import { type Actor, Fault } from '../../../kernel/plugin.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import { SkillErrors } from './api.js'
import type { K } from './needs.js'
import { SkillSettings } from './settings.js'

const { path: KEY } = SkillSettings.disabled

/**
 * Reads and writes the disabled skills: `skills.disabled_skills` of the home or a workspace, and `skills.disabled` of
 * an agent.
 */
export class SkillSwitch {
  constructor(private readonly kernel: K) {}

  /** The effective list. The one of a workspace applies only while its files are trusted. */
  async disabled(workspace: Workspace | undefined): Promise<readonly string[]> {
    const { config, needs } = this.kernel
    const everywhere = config.get(SkillSettings.disabled)
    if (!workspace) return everywhere
    return (await needs.keys.current?.valueIn(SkillSettings.disabled, workspace.id)) ?? everywhere
  }

  /** @throws Fault `skill_switch_refused` with the reason */
  async set(
    name: string,
    enabled: boolean,
    { workspace, agent }: { readonly workspace: Workspace | undefined; readonly agent: string | undefined },
    actor: Actor,
  ): Promise<void> {
    const definition = agent === undefined ? undefined : await this.kernel.needs.agents.current?.find(agent, workspace)
    const before = definition ? definition.disabledSkills : await this.disabled(workspace)
    if (before.includes(name) !== enabled) return
    const after = enabled ? before.filter(one => one !== name) : [...before, name]
    const isOfWorkspace = definition ? definition.origin === 'workspace' : workspace !== undefined
    const keys = this.kernel.needs.keys.current
    if (!keys) throw SkillErrors.skill_switch_refused('the plugin settings does not run')
    const body = {
      changes: [{ key: KEY, value: after }],
      target: `${isOfWorkspace ? 'workspace' : 'global'}-${definition ? 'agent-file' : 'config'}` as const,
      ...(isOfWorkspace && workspace && { workspace_id: workspace.id }),
      ...(definition && { agent_name: definition.name }),
    }
    await keys.patchKeys(body, actor).catch(error => {
      if (!(error instanceof Fault)) throw error
      const { message, next } = error
      throw SkillErrors.skill_switch_refused(message, { ...(next !== undefined && { next }) })
    })
  }
}
