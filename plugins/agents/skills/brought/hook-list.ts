import { shown } from '../../../../kernel/kit/text.js'
import { hookSpecOf } from '../../../work/hooks/api.js'
import { type Candidate, declaredIn, type Warning } from '../candidate.js'

const MOST_HOOKS = 64
const PATTERN = 'hook_invalid'

/** An unvalidated hook in a skill. */
interface Written {
  readonly name?: unknown
  readonly command?: unknown
  readonly args?: unknown
  readonly secret_env?: unknown
  readonly executor?: { readonly secret_env?: unknown }
}

/** The declared hooks of a skill. A problem applies to all of them, so there are none then. */
export function hooksIn(skill: Candidate): { readonly hooks: readonly Written[]; readonly problem?: string } {
  const declared = declaredIn(skill, 'hooks')
  if (declared === undefined || declared === null) return { hooks: [] }
  const hooks = listOf(declared)
  const refuse = (problem: string) => ({ hooks: [], problem })
  if (!hooks) return refuse('metadata.svc.hooks is a list with names, or hooks by name')
  if (hooks.length > MOST_HOOKS) return refuse(`there are more than ${MOST_HOOKS}`)
  // A skill from a repository must not use secrets of a person.
  const namesSecrets = ({ secret_env: secrets, executor }: Written) =>
    Object.keys(Object(secrets ?? executor?.secret_env)).length > 0
  if (skill.ofWorkspace && hooks.some(namesSecrets)) return refuse('a skill of a workspace cannot reference secrets')
  return { hooks }
}

/** Why hooks of a skill are not active, for viewers of the skill. */
export function hookWarnings(skill: Candidate): Warning[] {
  const { hooks, problem } = hooksIn(skill)
  const warning = (message: string) => ({ pattern: PATTERN, severity: 'warning' as const, message })
  if (problem !== undefined) return [warning(`its hooks are not active: ${problem}`)]
  return hooks.flatMap(hook => {
    const read = hookSpecOf(hook)
    return 'problem' in read ? warning(`its hook ${shown(String(hook.name))} is not active: ${read.problem}`) : []
  })
}

/** Hooks as a list or a table by name; other values become a hook with only a name, which is reported as invalid. */
function listOf(declared: unknown): Written[] | undefined {
  const isObject = (value: unknown): value is Written => typeof value === 'object' && value !== null
  if (!isObject(declared)) return undefined
  const all = Array.isArray(declared)
    ? declared.map((hook, at) => [String(at), hook] as const)
    : Object.entries(declared).map(([name, hook]) => [name, isObject(hook) ? { ...hook, name } : hook] as const)
  return all.map(([name, hook]) => (isObject(hook) ? hook : { name }))
}
