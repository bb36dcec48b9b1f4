import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import { finding } from '../../../desk/daemon/api.js'
import type { Workspace } from '../../../desk/workspaces/api.js'
import type { SkillView } from '../api.js'
import { hookWarnings } from '../brought/hook-list.js'
import type { Seen } from '../service.js'

/** Shown diagnostics in the status; a home with thousands of broken files must stay readable. */
export const DIAGNOSTICS_SHOWN = 100

const unused = (name: string) => `The skill ${shown(name)} is not used`

/** The doctor's items: refused or unreadable skills of the home and these workspaces. */
export async function findingsOf(
  workspaces: readonly Workspace[],
  see: (view: SkillView) => Promise<Seen>,
): Promise<DiagnosticItem[]> {
  const wrong = new Map<
    string,
    { readonly message: string; readonly title: string; readonly code: string; readonly next?: string }
  >()
  let count = 0
  for (const workspace of [undefined, ...workspaces]) {
    const { skills, broken } = await see({ workspace })
    count = Math.max(count, skills.length)
    for (const { path, message } of broken) wrong.set(path, { title: unused(path), message, code: 'skill_invalid' })
    for (const { failure, name, path } of skills.flatMap(({ winner, shadowed }) => [winner, ...shadowed]))
      if (failure) wrong.set(path, { title: unused(name), message: failure.message, code: 'skill_refused' })
    for (const { winner, enabled, oddities } of skills) {
      const [odd] = enabled && !wrong.has(winner.path) ? oddities : []
      if (odd)
        wrong.set(winner.path, {
          title: 'The name of a skill can be confused with another one',
          message: odd.message,
          code: 'skill_name_odd',
          next: command('skill show', winner.name),
        })
      const [warning] = enabled && !winner.failure ? hookWarnings(winner) : []
      if (!warning) continue
      const title = `The skill ${shown(winner.name)} has inactive hooks`
      wrong.set(winner.path, {
        title,
        message: warning.message,
        code: 'skill_hook_invalid',
        next: command('skill show', winner.name),
      })
    }
  }
  if (wrong.size === 0) {
    const message = `${count} skills`
    return [
      finding({
        id: 'skills',
        code: 'skill_registry_ready',
        category: 'skills',
        severity: 'info',
        title: 'Skills are usable',
        message,
      }),
    ]
  }
  return [...wrong].slice(0, DIAGNOSTICS_SHOWN).map(([path, { message, code, title, next = 'svc skill list' }]) =>
    finding({
      id: `skills.${path}`,
      code,
      category: 'skills',
      severity: 'warning',
      title,
      message: `${path}: ${message}`,
      suggested_command: next,
    }),
  )
}
