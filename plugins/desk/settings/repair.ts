import { command } from '../../../kernel/kit/commands/command-line.js'
import {
  ConfigErrors,
  type ConfigProblem,
  editJson,
  type JsonChange,
  problemText,
} from '../../platform/configuration/api.js'

/**
 * Corrects invalid members in the text of a configuration file. Each edited member must be invalid before and valid afterwards;
 * other mistakes may remain, so each can be corrected on its own.
 * @param where names the text in messages
 * @param problemsOf returns the mistakes of a text
 * @throws Fault `config_file_invalid` if the text does not parse or an edit concerns a valid member; `setting_invalid` if an edit
 * leaves or makes a mistake
 */
export function repaired(
  text: string,
  where: string,
  edits: readonly JsonChange[],
  problemsOf: (text: string) => readonly ConfigProblem[],
): string {
  // Parses first: in a malformed text, the location of a member would be a guess.
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

/** Whether the paths are equal or one contains the other. */
const isRelated = (a: string, b: string): boolean => a === b || a.startsWith(`${b}.`) || b.startsWith(`${a}.`)
