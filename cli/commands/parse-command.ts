import type { Command } from 'clipanion'
import { nearest } from '../../kernel/kit/text.js'
import { usageFault } from '../fault.js'
import { type CallContext, commandClass, fieldOf, parserNames } from './command-class.js'
import { isGlobal, type OptionData, optionsOf, PASSED_ON, takesArguments, typedNames } from './command-options.js'
import type { Entry } from './find-command.js'
import { usageLine } from './help.js'

/**
 * Parses the words after the path of a command, ready for `validateAndExecute()`.
 * @throws CliFault `usage` for an unknown option, a missing value or an extra argument, with the usage of the command
 */
export async function parseCommand(
  entry: Entry,
  rest: readonly string[],
  context: CallContext,
): Promise<Command<never>> {
  const { options, words } = split(entry, rest)
  // Most calls need no parsing, so clipanion's parser, its largest part, is not loaded.
  if (words.length === 0 && options.every(({ option }) => isGlobal(entry, option))) {
    const command = new (commandClass(entry))()
    const fields = options.map(({ option, value }) => [fieldOf(option), value])
    return Object.assign(command, { context, path: entry.path.split(' ') }, Object.fromEntries(fields)) as never
  }
  const { parseWords } = await import('./parse-words.js')
  return parseWords(entry, canonical(entry, options, words), context)
}

interface GivenOption {
  readonly option: OptionData
  readonly value: string | boolean
}

/**
 * An unambiguous form of the words: each option with its value bound to its name, then `--`, then the arguments. clipanion refuses
 * a value or an argument with a leading `-` in any other place.
 */
function canonical(entry: Entry, options: readonly GivenOption[], words: readonly string[]): readonly string[] {
  const names = parserNames(entry)
  const bound = options.map(({ option, value }) => {
    const name = names.get(option.name) as string
    if (typeof value === 'string') return `--${name}=${value}`
    return value ? `--${name}` : `--no-${name}`
  })
  return words.length === 0 ? bound : [...bound, '--', ...words]
}

/** A word in the form of an option. */
const optionWord = /^(--?[a-z][^=]*)(?:=([\s\S]*))?$/i

/** The arguments, and the options in their given order. */
function split(entry: Entry, rest: readonly string[]) {
  const known = knownNames(entry)
  const words: string[] = []
  const options: GivenOption[] = []
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
    const option = known.get(typed) ?? negatedBy(typed, known)
    if (typed === '') words.push(word)
    else if (option === undefined) throw misused(`unknown option ${typed}${meantOption(typed, known)}`, entry)
    else if (option.type === 'boolean') {
      if (bound !== undefined) throw misused(`${typed} takes no value`, entry)
      options.push({ option, value: known.get(typed) === option })
    } else {
      const value = bound ?? valueAt(rest, ++at)
      if (value === undefined) throw misused(`${typed} needs a value`, entry)
      options.push({ option, value })
    }
  }
  const most = entry.args.length
  if (words.length > most) {
    if (!takesArguments(entry) || words.length - behind > most)
      throw misused(`unexpected argument ${JSON.stringify(words[most])}`, entry)
    const option = optionsOf(entry).find(({ name }) => name === PASSED_ON) as OptionData
    options.push(...words.splice(most).map(value => ({ option, value })))
  }
  return { words, options }
}

/** The options of a command by all of their names, dashes included. */
function knownNames(entry: Entry): ReadonlyMap<string, OptionData> {
  return new Map(optionsOf(entry).flatMap(option => typedNames(option).map(name => [name, option] as const)))
}

/** The option that `--no-<name>` turns off. */
function negatedBy(typed: string, known: ReadonlyMap<string, OptionData>): OptionData | undefined {
  const option = typed.startsWith('--no-') ? known.get(typed.replace('--no-', '--')) : undefined
  return option?.type === 'boolean' && !option.name.startsWith('no-') ? option : undefined
}

/** The value after an option: any word except another option, which includes `-3` and `-`. */
function valueAt(rest: readonly string[], at: number): string | undefined {
  const word = rest[at]
  return word === undefined || word === '--' || optionWord.test(word) ? undefined : word
}

const misused = (text: string, entry: Entry) => usageFault(text, usageLine(entry))

/** A suggestion for a mistyped option, as the end of its error message. */
function meantOption(typed: string, known: ReadonlyMap<string, OptionData>): string {
  const [meant] = nearest(typed.replace(/^--/, ''), [...new Set([...known.values()].map(({ name }) => name)), 'help'])
  return meant === undefined ? '' : `; did you mean --${meant}?`
}
