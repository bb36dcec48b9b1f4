import type { Agent } from '../../../schemas/agents.js'
import type { PatchKeysBody } from '../../../schemas/settings.js'

/** Members of an agent's definition, by the key that holds their default. */
export const AGENT_FIELDS: Readonly<
  Record<string, 'permissions' | 'provider' | 'model' | 'reasoning_effort' | 'skills'>
> = {
  'permissions.mode': 'permissions',
  'defaults.provider': 'provider',
  'defaults.model': 'model',
  'defaults.reasoning_effort': 'reasoning_effort',
  'skills.disabled_skills': 'skills',
}

/** Omits a detected provider: the definition must not be pinned to it. */
export function written({ provider, ...agent }: Agent): Partial<Agent> {
  const source = agent.effective_runtime?.sources.provider ?? 'agent'
  // A list missing from the definition is read as an empty one. Empty lists are omitted again.
  const told = Object.entries(agent).filter(([, value]) => !Array.isArray(value) || value.length > 0)
  return { ...Object.fromEntries(told), ...(source === 'agent' && provider !== '' && { provider }) }
}

type Change = PatchKeysBody['changes'][number]

/** The changes that restore the members of a definition: a change without a value removes the member. */
export function writtenBefore(changes: readonly Change[], agent: Agent): Change[] {
  const fields = written(agent)
  return changes.map(({ key }) => {
    const field = AGENT_FIELDS[key]
    const member = field && fields[field]
    const value = field === 'skills' ? fields.skills?.disabled : member
    return value === undefined ? { key } : { key, value }
  })
}
