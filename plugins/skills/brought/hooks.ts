import { shown } from '../../../kernel/kit/text.js'
import type { HookDeclarations } from '../../hooks/api.js'
import type { Candidate } from '../candidate.js'
import { SkillSettings } from '../settings.js'
import { environmentsOf } from '../telling/briefing.js'
import { type BringingWorld, bringing, declaredIn, inside } from './skills.js'

type Brought = Awaited<ReturnType<HookDeclarations['read']>>
const MOST_HOOKS = 64

/**
 * Hooks that skills bring, as `metadata.svc.hooks` of a SKILL.md has them. Those of a skill that is off, not active or not trusted
 * are none, and those of an installed one only where `skills.allowed_marketplace_hooks` names it.
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
  const { name, dir, tier, ofWorkspace } = skill
  const declared = declaredIn(skill, 'hooks')
  if (declared === undefined) return []
  const refuse = (why: string) => {
    kernel.log.warn(`hooks of the skill ${shown(name)} are not in force: ${why}`)
    return []
  }
  const all = listOf(declared)
  if (!all) return refuse('metadata.svc.hooks is a list with names, or hooks by name')
  if (all.length > MOST_HOOKS) return refuse(`there are more than ${MOST_HOOKS}`)
  // The secrets of a person are not for what came with a repository.
  if (ofWorkspace && all.some(hook => Object.keys(Object(hook.secret_env ?? hook.executor?.secret_env)).length > 0))
    return refuse('a skill of a workspace names no secrets')
  // The files of a record are nowhere: what it names is on the PATH.
  if (tier === 'extension') return all.map(written => ({ written, of: name }))
  return all.map(({ command, args, ...rest }) => ({
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

interface Written {
  readonly command?: unknown
  readonly args?: unknown
  readonly secret_env?: unknown
  readonly executor?: { readonly secret_env?: unknown }
}

/** A list with names, or by name. */
function listOf(declared: unknown): Written[] | undefined {
  const isObject = (value: unknown): value is Written => typeof value === 'object' && value !== null
  if (!isObject(declared)) return undefined
  const all = Array.isArray(declared)
    ? declared
    : Object.entries(declared).map(([name, hook]) => (isObject(hook) ? { ...hook, name } : hook))
  return all.every(isObject) ? all : undefined
}
