import { shown } from '../../../../kernel/kit/text.js'
import type { HookDeclarations } from '../../../work/hooks/api.js'
import type { Candidate } from '../candidate.js'
import { SkillSettings } from '../settings.js'
import { environmentsOf } from '../telling/briefing.js'
import { hooksIn } from './hook-list.js'
import { type BringingWorld, bringing, inside } from './skills.js'

type Brought = Awaited<ReturnType<HookDeclarations['read']>>

/**
 * Hooks declared by skills in `metadata.svc.hooks` of a SKILL.md. Skills that are disabled, inactive or untrusted have
 * none, and installed ones only if `skills.allowed_marketplace_hooks` names them.
 */
export const skillHooks = (world: BringingWorld): HookDeclarations => ({
  source: 'skill',
  read: async ({ workspace, agent, session }) => {
    const agents = world.kernel.needs.agents.current
    const definition = agent === undefined ? undefined : await agents?.find(agent, workspace).catch(() => undefined)
    const view = {
      ...{ workspace, agent: definition?.path === undefined ? undefined : agent, session: session?.id },
      environments: session && environmentsOf(session),
    }
    const allowed = world.kernel.config.get(SkillSettings.allowedHooks)
    const skills = await bringing(world, view, 'hooks', allowed, definition?.disabledSkills ?? [])
    return skills.flatMap(({ winner }) => declaredBy(world, winner))
  },
})

function declaredBy({ kernel }: BringingWorld, skill: Candidate): Brought {
  const { name, dir, tier, ofWorkspace, extensionKey: extension } = skill
  const { hooks, problem } = hooksIn(skill)
  if (problem !== undefined) kernel.log.warn(`hooks of the skill ${shown(name)} are not active: ${problem}`)
  // A record has no files: its commands are found in the PATH.
  if (tier === 'extension') return hooks.map(written => ({ written, of: name, extension }))
  return hooks.map(({ command, args, ...rest }) => ({
    of: name,
    base: dir,
    isOfFiles: ofWorkspace,
    written: {
      ...rest,
      ...(command !== undefined && { command: typeof command === 'string' ? inside(dir, command) : command }),
      ...(args !== undefined && { args: Array.isArray(args) ? args.map(arg => inside(dir, String(arg))) : args }),
    },
  }))
}
