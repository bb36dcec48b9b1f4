import { isWatchable, type Parameter } from './command-data.js'
import type { Entry } from './find-command.js'

/** An option as the parser sees it. */
export interface OptionData {
  /** Without `--`. */
  readonly name: string
  /** One letter (`-o`), or a second name (`--thing_name`). */
  readonly alias?: string | undefined
  readonly type: string
  readonly values?: readonly string[]
  readonly summary?: string | undefined
}

/** The option that says: of no workspace. It was called `--everywhere` in some commands. */
export const GLOBAL = 'global'

/** The member of a request that says whether something is of a workspace or of none. */
export const takesScope = ({ name, values = [] }: Pick<Parameter, 'name' | 'values'>): boolean =>
  name === 'scope' && ['global', 'workspace'].every(scope => values.includes(scope))

/** Options of every command. */
const globals: readonly OptionData[] = [
  { name: 'output', alias: 'o', type: 'text', summary: 'output format' },
  { name: 'json', type: 'boolean', summary: 'short for --output json' },
  { name: 'quiet', type: 'boolean', summary: 'print only ids' },
]

/** Options of every command that may change something through the daemon. */
const planning: readonly OptionData[] = [
  { name: 'dry-run', type: 'boolean', summary: 'show what would be changed' },
  { name: 'plan', type: 'text', summary: 'change it only if a dry run would still print this plan' },
]

/** The global options of a command, also those that its own options hide. */
const globalsOf = (entry: Entry): readonly OptionData[] => [...globals, ...planningOf(entry)]

/** The options by which a command that may change something is planned. */
export const planningOf = (entry: Entry): readonly OptionData[] => (mayChange(entry) ? planning : [])

/** Whether a command may send a request that changes something. A command of the program itself works on files. */
const mayChange = (entry: Entry): boolean =>
  entry.kind === 'route' ? entry.method !== 'GET' && entry.path !== 'undo' : entry.kind === 'module' && !entry.local

/** The names of an option as they are typed, dashes included. */
export const typedNames = ({ name, alias }: OptionData): readonly string[] => [
  `--${name}`,
  ...(alias === undefined ? [] : [alias.length === 1 ? `-${alias}` : `--${alias}`]),
]

/** Whether an option is a global one of this command; a command may have an option of the same name. */
export const isGlobal = (entry: Entry, { name }: Pick<OptionData, 'name'>): boolean =>
  globalsOf(entry).some(option => option.name === name) && !ownOptionsOf(entry).some(option => option.name === name)

/** All options of a command, the global ones included. */
export function optionsOf(entry: Entry): readonly OptionData[] {
  const own = ownOptionsOf(entry)
  return [...globalsOf(entry).filter(({ name }) => !own.some(option => option.name === name)), ...own]
}

/** Options of a command with those that its kind adds. */
export function ownOptionsOf(entry: Entry): readonly OptionData[] {
  if (entry.kind !== 'route')
    return entry.options.map(option => (option.name === GLOBAL ? { ...option, alias: 'everywhere' } : option))
  return [
    ...entry.options.map(({ option, alias, type, values, summary }) => ({
      name: option,
      alias,
      type,
      summary,
      ...(values && { values }),
    })),
    ...(entry.body === 'none' ? [] : [{ name: 'data', type: 'json', summary: 'the request body' }]),
    ...(entry.follow ? [{ name: 'follow', type: 'boolean', summary: 'follow new events' }] : []),
    ...(isWatchable(entry) ? [{ name: 'watch', type: 'boolean', summary: 'repeat and show changes' }] : []),
  ]
}

/** Option of commands that pass arguments on to another command; those arguments may also stand behind `--`. */
export const PASSED_ON = 'arg'
export const takesArguments = (entry: Entry): boolean =>
  ownOptionsOf(entry).some(({ name, type }) => name === PASSED_ON && type === 'list')
