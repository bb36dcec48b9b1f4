import { nearest } from '../../kernel/kit/text.js'
import { usageFault } from '../fault.js'
import { isWatchable } from './command-data.js'
import type { Entry } from './find-command.js'
import { usageLine } from './help.js'

/** What was given on the command line, as text; lists as they were repeated. */
export interface Given {
  readonly args: Readonly<Record<string, string>>
  readonly options: Readonly<Record<string, string | boolean | readonly string[] | undefined>>
  readonly quiet: boolean
}

interface OptionData {
  readonly name: string
  readonly alias?: string | undefined
  readonly type: string
  readonly values?: readonly string[]
}

/** Parses the arguments after a command's path. Throws a usage fault that shows how the command is called. */
export function parseCommand(entry: Entry, rest: readonly string[]): Given {
  const { words, options, behind } = split(entry, rest)
  const names = entry.args.map(({ name }) => name)
  const extra = words[names.length]
  if (extra !== undefined && takesArguments(entry) && words.length - behind <= names.length)
    options[PASSED_ON] = [...((options[PASSED_ON] ?? []) as string[]), ...words.splice(names.length)]
  else if (extra !== undefined) throw misused(`unexpected argument ${JSON.stringify(extra)}`, entry)
  const args: Record<string, string> = {}
  for (const [i, arg] of entry.args.entries()) {
    const given = words[i]
    const isRequired = 'required' in arg ? arg.required : !('optional' in arg && arg.optional)
    if (given !== undefined) args[arg.name] = given
    else if (isRequired && options[arg.name] === undefined) throw misused(`${arg.name} is missing`, entry)
    if (entry.kind === 'route') checkValue(entry.args[i] as OptionData, given, arg.name)
  }
  for (const option of optionsOf(entry)) checkValue(option, options[option.name], `--${option.name}`)
  const { quiet, output: _, json: __, ...own } = options
  return { args, options: hasQuiet(entry) ? { ...own, quiet } : own, quiet: !hasQuiet(entry) && quiet === true }
}

/** Option of commands that are given another command: its arguments, which may also stand behind `--`. */
const PASSED_ON = 'arg'
const takesArguments = (entry: Entry) =>
  optionsOf(entry).some(({ name, type }) => name === PASSED_ON && type === 'list')

/** A word that stands where an option can. */
const optionWord = /^(--?[a-z][^=]*)(?:=([\s\S]*))?$/i

/** The words that are arguments, how many of them stand behind `--`, and the options by name, in any order before it. */
function split(entry: Entry, rest: readonly string[]) {
  const known = new Map<string, OptionData>()
  for (const option of [...globals, ...optionsOf(entry)]) {
    known.set(`--${option.name}`, option)
    if (option.alias !== undefined)
      known.set(option.alias.length === 1 ? `-${option.alias}` : `--${option.alias}`, option)
  }
  const words: string[] = []
  const options: Record<string, string | boolean | string[]> = {}
  let behind = 0
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] as string
    if (word === '--') {
      const others = rest.slice(at + 1)
      words.push(...others)
      behind = others.length
      break
    }
    const [, typed = '', bound] = optionWord.exec(word) ?? []
    const negated = known.get(typed.replace(/^--no-/, '--'))
    const option = known.get(typed) ?? (negated?.type === 'boolean' ? negated : undefined)
    if (typed === '') words.push(word)
    else if (option === undefined) throw misused(`unknown option ${typed}${meantOption(typed, known)}`, entry)
    else if (option.type === 'boolean') {
      if (bound !== undefined) throw misused(`${typed} takes no value`, entry)
      options[option.name] = known.get(typed) === option
    } else {
      const value = bound ?? valueAt(rest, ++at)
      if (value === undefined) throw misused(`${typed} needs a value`, entry)
      if (option.type === 'list') options[option.name] = [...((options[option.name] ?? []) as string[]), value]
      else options[option.name] = value
    }
  }
  return { words, options, behind }
}

/** The value behind an option: anything but another option, so `-3` and `-` as well. */
function valueAt(rest: readonly string[], at: number): string | undefined {
  const word = rest[at]
  return word === undefined || word === '--' || optionWord.test(word) ? undefined : word
}

const misused = (text: string, entry: Entry) => usageFault(text, usageLine(entry))

/** Options of every command. */
const globals: readonly OptionData[] = [
  { name: 'output', alias: 'o', type: 'text' },
  { name: 'json', type: 'boolean' },
  { name: 'quiet', type: 'boolean' },
]
/** Has a command an option of that name for something else. */
const hasQuiet = (entry: Entry) => optionsOf(entry).some(({ name }) => name === 'quiet')

/** Values that are named in one line: of many those that begin alike, or the first ones. */
function fewOf(values: readonly string[], given: string): string {
  const most = 20
  if (values.length <= most) return values.join(', ')
  const alike = values.filter(value => value.startsWith(given.slice(0, 3)))
  const few = (alike.length > 0 ? alike : values).slice(0, most)
  return `${few.join(', ')} and ${values.length - few.length} more`
}

/** Judges a value by what the command says of it, before anything is asked of the daemon. Throws a usage fault. */
function checkValue({ type, values }: Pick<OptionData, 'type' | 'values'>, value: unknown, label: string): void {
  if (typeof value !== 'string') return
  if (values && !values.includes(value))
    throw usageFault(`${label} is one of ${fewOf(values, value)}, not ${JSON.stringify(value)}`)
  // A file, or standard input.
  const isElsewhere = label === '--data' && /^(?:@|-$)/.test(value)
  if (type === 'json' && !isElsewhere) parseJson(value, label)
  const fits = typeForms[type]
  if (fits && !fits(value))
    throw usageFault(`${label} takes ${type === 'integer' ? 'an' : 'a'} ${type}, not ${JSON.stringify(value)}`)
}

const typeForms: Readonly<Record<string, (value: string) => boolean>> = {
  integer: value => /^-?\d{1,15}$/.test(value),
  number: value => value.trim() !== '' && Number.isFinite(Number(value)),
  boolean: value => value === 'true' || value === 'false',
}

/** A value of the command line that is JSON. Throws a usage fault that says where it is wrong. */
export function parseJson(text: string, label: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw usageFault(`${label} is not valid JSON: ${(error as Error).message}`)
  }
}

/** Options of an entry with those that its kind adds. */
function optionsOf(entry: Entry): readonly OptionData[] {
  if (entry.kind !== 'route') return entry.options
  return [
    ...entry.options.map(({ option, alias, type, values }) => ({
      name: option,
      alias,
      type,
      ...(values && { values }),
    })),
    ...(entry.body === 'none' ? [] : [{ name: 'data', type: 'json' }]),
    ...(entry.follow ? [{ name: 'follow', type: 'boolean' }] : []),
    ...(isWatchable(entry) ? [{ name: 'watch', type: 'boolean' }] : []),
  ]
}

/** The option that a mistyped one is nearest to, as the end of the message about it. */
function meantOption(typed: string, known: ReadonlyMap<string, OptionData>): string {
  const [meant] = nearest(typed.replace(/^--/, ''), [...new Set([...known.values()].map(({ name }) => name)), 'help'])
  return meant === undefined ? '' : `; did you mean --${meant}?`
}
