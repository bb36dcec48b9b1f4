import { command } from '../../../kernel/kit/commands/command-line.js'
import {
  ConfigErrors,
  type ConfigProblem,
  editJson,
  type JsonChange,
  problemText,
} from '../../platform/configuration/api.js'

/**
 * The text of a configuration file with members changed that are wrong. Each has to be wrong before, and right afterwards: of several
 * mistakes each can be corrected by itself.
 * @param where names the text in messages
 * @param problemsOf the mistakes of a text
 * @throws Fault `config_file_invalid` where the text does not parse, or a change is not about a mistake; `setting_invalid` where it makes one
 */
export function repaired(
  text: string,
  where: string,
  edits: readonly JsonChange[],
  problemsOf: (text: string) => readonly ConfigProblem[],
): string {
  // First of all it has to parse: otherwise a place in it is a guess.
  const after = editJson(text, where, edits)
  const before = problemsOf(text)
  const isEdited = ({ path }: ConfigProblem) => edits.some(({ keys }) => isRelated(path, keys.join('.')))
  const [first] = before
  if (first && !edits.every(({ keys }) => before.some(({ path }) => isRelated(path, keys.join('.')))))
    throw ConfigErrors.config_file_invalid(
      before.map(problemText).join('\n'),
      first.path === '' ? {} : { next: command('config unset', first.path) },
    )
  const bad = problemsOf(after).find(problem => isEdited(problem) || !before.some(({ path }) => path === problem.path))
  if (bad) throw ConfigErrors.setting_invalid(bad.text)
  return after
}

/** One is the other, or a part of it. */
const isRelated = (a: string, b: string): boolean => a === b || a.startsWith(`${b}.`) || b.startsWith(`${a}.`)
