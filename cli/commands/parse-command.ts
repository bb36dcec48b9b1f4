import { Cli, Command, Option } from 'clipanion'
import { usageFault } from '../fault.js'
import { type Entry, nearest } from './find-command.js'
import { usageLine } from './help.js'

/** What was given on the command line, as text; lists as they were repeated. */
export interface Given {
  readonly args: Readonly<Record<string, string>>
  readonly options: Readonly<Record<string, string | boolean | readonly string[] | undefined>>
  readonly quiet: boolean
}

interface OptionData {
  readonly name: string
  readonly type: string
}

/** Parses the arguments after a command's path. Throws a usage fault that shows how the command is called. */
export function parseCommand(entry: Entry, rest: readonly string[]): Given {
  const options = optionsOf(entry)
  const args: readonly { readonly name: string; readonly required: boolean }[] =
    entry.kind === 'route' ? entry.args : entry.args.map(({ name, optional }) => ({ name, required: !optional }))
  const words = entry.path.split(' ')
  const cli = new Cli({ binaryName: 'svc' })
  cli.register(commandClass(words, args.length, options))
  const given = process(cli, [...words, ...withValuesJoined(rest, options)], entry)
  const missing = args.find(({ required }, i) => required && given[`arg${i}`] === undefined)
  if (missing) throw usageFault(`${missing.name} is missing`, usageLine(entry))
  const pairs = <T>(names: readonly string[], prefix: string) =>
    Object.fromEntries(
      names.flatMap((name, i) => (given[`${prefix}${i}`] === undefined ? [] : [[name, given[`${prefix}${i}`]]])),
    ) as Record<string, T>
  const names = options.map(({ name }) => name)
  return {
    args: pairs(
      args.map(({ name }) => name),
      'arg',
    ),
    options: pairs(names, 'option'),
    quiet: given.quiet === true,
  }
}

/** A class is made of the data of one command, when it is called: making all of them would take longer than most calls. */
function commandClass(path: readonly string[], args: number, options: readonly OptionData[]) {
  const own = new Set(options.map(({ name }) => name))
  return class extends Command {
    static override paths = [[...path]]

    constructor() {
      super()
      const fields: Record<string, unknown> = {}
      // None is required here, for the parser does not say which one is missing.
      for (let i = 0; i < args; i++) fields[`arg${i}`] = Option.String({ required: false })
      options.forEach(({ name, type }, i) => {
        fields[`option${i}`] = optionOf(`--${name}`, type)
      })
      fields.output = Option.String('-o,--output')
      fields.json = Option.Boolean('--json')
      if (!own.has('quiet')) fields.quiet = Option.Boolean('--quiet')
      Object.assign(this, fields)
    }

    async execute() {}
  }
}

function optionOf(name: string, type: string): unknown {
  if (type === 'boolean') return Option.Boolean(name)
  return type === 'list' ? Option.Array(name) : Option.String(name)
}

/** Options of an entry with those that its kind adds. */
function optionsOf(entry: Entry): readonly OptionData[] {
  if (entry.kind !== 'route') return entry.options
  return [
    ...entry.options.map(({ option, type }) => ({ name: option, type })),
    ...(entry.body === 'none' ? [] : [{ name: 'data', type: 'json' }]),
    ...(entry.follow ? [{ name: 'follow', type: 'boolean' }] : []),
  ]
}

/** `--order -3` is `--order=-3`: what begins with a dash and is no option is the value of the one before it. */
function withValuesJoined(rest: readonly string[], options: readonly OptionData[]): string[] {
  const valued = new Set(options.flatMap(({ name, type }) => (type === 'boolean' ? [] : [`--${name}`])))
  const end = rest.indexOf('--')
  const joins = (at: number) => {
    const value = (end < 0 || at < end) && valued.has(rest[at - 1] ?? '') ? rest[at] : undefined
    return value !== undefined && /^-(?!-?[a-z]|-$)/i.test(value)
  }
  return rest.flatMap((word, at) => (joins(at) ? [] : [joins(at + 1) ? `${word}=${rest[at + 1]}` : word]))
}

function process(cli: Cli, input: string[], entry: Entry): Record<string, unknown> {
  try {
    return cli.process(input) as unknown as Record<string, unknown>
  } catch (error) {
    const [first = ''] = (error as Error).message.split('\n')
    const text = first.startsWith('Command not found') ? misfit(input, entry) : first.replace(/\.$/, '')
    throw usageFault(`${text.slice(0, 1).toLowerCase()}${text.slice(1)}${meantOption(text, entry)}`, usageLine(entry))
  }
}

/** A value behind an option that there is not looks like one argument too many; the option is to blame. */
function misfit(input: readonly string[], entry: Entry): string {
  const known = new Set([...optionsOf(entry).map(({ name }) => name), 'output', 'json', 'quiet', 'help'])
  const end = input.indexOf('--')
  const given = (end < 0 ? input : input.slice(0, end)).filter(word => word.startsWith('--'))
  const unknown = given
    .map(word => word.slice(2).split('=', 1)[0] as string)
    .find(name => !known.has(name.replace(/^no-/, '')))
  return unknown === undefined ? 'the arguments do not fit the command' : `Unsupported option name ("--${unknown}")`
}

/** The option that a mistyped one is nearest to, as the end of the message about it. */
function meantOption(text: string, entry: Entry): string {
  const [, given] = /^Unsupported option name \("--([^"=]*)/.exec(text) ?? []
  if (given === undefined) return ''
  const [meant] = nearest(given, [...optionsOf(entry).map(({ name }) => name), 'output', 'json', 'quiet', 'help'])
  return meant === undefined ? '' : `; did you mean --${meant}?`
}
