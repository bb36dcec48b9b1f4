import type { Actor } from '../../../kernel/plugin.js'
import { settingIn } from '../../desk/settings/api.js'
import type { Workspace } from '../../desk/workspaces/api.js'
import { SkillErrors } from './api.js'
import type { K } from './needs.js'
import { SkillSettings } from './settings.js'

const KEYS = '/api/settings/keys'
const { path: KEY } = SkillSettings.disabled

/**
 * Reads and writes the disabled skills: `skills.disabled_skills` of the home or a workspace, and `skills.disabled` of
 * an agent.
 */
export class SkillSwitch {
  constructor(private readonly kernel: K) {}

  /** The effective list. The one of a workspace applies only while its files are trusted. */
  async disabled(workspace: Workspace | undefined): Promise<readonly string[]> {
    const { config, needs, actor } = this.kernel
    const everywhere = config.get(SkillSettings.disabled)
    if (!workspace) return everywhere
    return (await settingIn(needs.request, actor, SkillSettings.disabled, workspace.id)) ?? everywhere
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
    const target = `${isOfWorkspace ? 'workspace' : 'global'}-${definition ? 'agent-file' : 'config'}`
    const reply = await this.kernel.needs.request(
      {
        method: 'PATCH',
        url: KEYS,
        body: {
          changes: [{ key: KEY, value: after }],
          target,
          ...(isOfWorkspace && workspace && { workspace_id: workspace.id }),
          ...(definition && { agent_name: definition.name }),
        },
      },
      actor,
    )
    if (reply.status === 200) return
    const { error = 'the configuration was not written', diagnostic } = JSON.parse(reply.body) as {
      error?: string
      diagnostic?: { suggested_command?: string }
    }
    throw SkillErrors.skill_switch_refused(error, {
      ...(diagnostic?.suggested_command && { next: diagnostic.suggested_command }),
    })
  }
}
