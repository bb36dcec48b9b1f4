import type { BaseContext, Command, Definition } from 'clipanion'
import { Cli } from 'clipanion/lib/advanced/Cli.js'
import * as Option from 'clipanion/lib/advanced/options/index.js'
import { argumentField, type CallContext, commandClass, type Fields, fieldOf, parserNames } from './command-class.js'
import { type OptionData, optionsOf, typedNames } from './command-options.js'
import type { Entry } from './find-command.js'

// Loaded only when a call has something to parse: the parser is most of clipanion.

/** The command of an entry with its fields set from words in canonical form, without its path. */
export function parseWords(entry: Entry, words: readonly string[], context: CallContext): Command<never> {
  const cli = cliOf([entry])
  const path = entry.path.split(' ')
  return cli.process([...path, ...words], context) as unknown as Command<never>
}

/** The definitions of all commands, in the form that clipanion documentation tools read. */
export function definitionsOf(entries: readonly Entry[]): readonly Definition[] {
  return cliOf(entries).definitions()
}

function cliOf(entries: readonly Entry[]): Cli<BaseContext & CallContext> {
  const classes = entries.map(entry => commandClass(entry, () => fieldsOf(entry)))
  return Cli.from(classes, { binaryName: 'svc', binaryLabel: 'svc' })
}

/** Arguments are optional for the parser: a missing one may be given as an option, and `checkGiven` has a clearer error. */
function fieldsOf(entry: Entry): Fields {
  const names = parserNames(entry)
  const args = entry.args.map(({ name }, at) => [argumentField(at), Option.String({ name, required: false })])
  const options = optionsOf(entry).map(option => [fieldOf(option), optionOf(option, names.get(option.name) as string)])
  return Object.fromEntries([...args, ...options])
}

function optionOf(option: OptionData, parserName: string): unknown {
  const { name, type, summary } = option
  const descriptor = [...new Set([...typedNames(option).toReversed(), `--${parserName}`])].join(',')
  // clipanion omits options without a description from its list.
  const about = { description: summary ?? name.replaceAll('-', ' ') }
  if (type === 'boolean') return Option.Boolean(descriptor, about)
  return type === 'list' ? Option.Array(descriptor, about) : Option.String(descriptor, about)
}
