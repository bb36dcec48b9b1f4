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

/** The option for operations outside of any workspace; `--everywhere` is accepted as an alias. */
export const GLOBAL = 'global'

/** Whether a member of a request selects the scope: a workspace, or none. */
export const takesScope = ({ name, values = [] }: Pick<Parameter, 'name' | 'values'>): boolean =>
  name === 'scope' && ['global', 'workspace'].every(scope => values.includes(scope))

/** Options of every command. */
const globals: readonly OptionData[] = [
  { name: 'output', alias: 'o', type: 'text', summary: 'output format' },
  { name: 'json', type: 'boolean', summary: 'short for --output json' },
  { name: 'quiet', type: 'boolean', summary: 'print only ids' },
]

/** Options of commands that may change data through the daemon. */
const planning: readonly OptionData[] = [
  { name: 'dry-run', type: 'boolean', summary: 'show what would be changed' },
  { name: 'plan', type: 'text', summary: 'change it only if a dry run would still print this plan' },
]

/** The global options of a command, including those shadowed by its own options. */
const globalsOf = (entry: Entry): readonly OptionData[] => [...globals, ...planningOf(entry)]

/** The planning options of a command that may change data. */
export const planningOf = (entry: Entry): readonly OptionData[] => (mayChange(entry) ? planning : [])

/** Whether a command may send a changing request. Local commands work on files. */
const mayChange = (entry: Entry): boolean =>
  entry.kind === 'route' ? entry.method !== 'GET' && entry.path !== 'undo' : entry.kind === 'module' && !entry.local

/** The names of an option as they are typed, dashes included. */
export const typedNames = ({ name, alias }: OptionData): readonly string[] => [
  `--${name}`,
  ...(alias === undefined ? [] : [alias.length === 1 ? `-${alias}` : `--${alias}`]),
]

/** Whether an option is a global one of this command, not one of its own with the same name. */
export const isGlobal = (entry: Entry, { name }: Pick<OptionData, 'name'>): boolean =>
  globalsOf(entry).some(option => option.name === name) && !ownOptionsOf(entry).some(option => option.name === name)

/** All options of a command, the global ones included. */
export function optionsOf(entry: Entry): readonly OptionData[] {
  const own = ownOptionsOf(entry)
  return [...globalsOf(entry).filter(({ name }) => !own.some(option => option.name === name)), ...own]
}

/** Options of a command, including those of its kind. */
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

/** Option of commands that pass arguments to another command; those arguments may also follow `--`. */
export const PASSED_ON = 'arg'
export const takesArguments = (entry: Entry): boolean =>
  ownOptionsOf(entry).some(({ name, type }) => name === PASSED_ON && type === 'list')
