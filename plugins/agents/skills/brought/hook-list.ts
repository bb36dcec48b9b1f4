import { shown } from '../../../../kernel/kit/text.js'
import { hookSpecOf } from '../../../work/hooks/api.js'
import { type Candidate, declaredIn, type Warning } from '../candidate.js'

const MOST_HOOKS = 64
const PATTERN = 'hook_invalid'

/** A hook as a skill has it, unread. */
interface Written {
  readonly name?: unknown
  readonly command?: unknown
  readonly args?: unknown
  readonly secret_env?: unknown
  readonly executor?: { readonly secret_env?: unknown }
}

/** The hooks that a skill declares. With a problem it has none: it is about all of them. */
export function hooksIn(skill: Candidate): { readonly hooks: readonly Written[]; readonly problem?: string } {
  const declared = declaredIn(skill, 'hooks')
  if (declared === undefined || declared === null) return { hooks: [] }
  const hooks = listOf(declared)
  const refuse = (problem: string) => ({ hooks: [], problem })
  if (!hooks) return refuse('metadata.svc.hooks is a list with names, or hooks by name')
  if (hooks.length > MOST_HOOKS) return refuse(`there are more than ${MOST_HOOKS}`)
  // The secrets of a person are not for what came with a repository.
  const namesSecrets = ({ secret_env: secrets, executor }: Written) =>
    Object.keys(Object(secrets ?? executor?.secret_env)).length > 0
  if (skill.ofWorkspace && hooks.some(namesSecrets)) return refuse('a skill of a workspace names no secrets')
  return { hooks }
}

/** Why hooks of a skill are not in force, for who looks at the skill. */
export function hookWarnings(skill: Candidate): Warning[] {
  const { hooks, problem } = hooksIn(skill)
  const warning = (message: string) => ({ pattern: PATTERN, severity: 'warning' as const, message })
  if (problem !== undefined) return [warning(`its hooks are not in force: ${problem}`)]
  return hooks.flatMap(hook => {
    const read = hookSpecOf(hook)
    return 'problem' in read ? warning(`its hook ${shown(String(hook.name))} is not in force: ${read.problem}`) : []
  })
}

/** A list with names, or by name; what is no hook at all has a name alone, so that it is told of like one that is not valid. */
function listOf(declared: unknown): Written[] | undefined {
  const isObject = (value: unknown): value is Written => typeof value === 'object' && value !== null
  if (!isObject(declared)) return undefined
  const all = Array.isArray(declared)
    ? declared.map((hook, at) => [String(at), hook] as const)
    : Object.entries(declared).map(([name, hook]) => [name, isObject(hook) ? { ...hook, name } : hook] as const)
  return all.map(([name, hook]) => (isObject(hook) ? hook : { name }))
}
