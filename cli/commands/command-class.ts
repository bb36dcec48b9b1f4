import type { BaseContext, CommandClass } from 'clipanion'
import { Command } from 'clipanion/lib/advanced/Command.js'
import { isGlobal, type OptionData, optionsOf, ownOptionsOf } from './command-options.js'
import type { Entry } from './find-command.js'
import { checkInvocation, type Invocation } from './invocation.js'

/** The context of a command. */
export interface CallContext {
  /** Executes a command; resolves to the exit code. */
  readonly carryOut: (entry: Entry, invocation: Invocation) => Promise<number>
}

/** Definitions of options and arguments by field, for clipanion's parser; without them a command can only be executed. */
export type Fields = Readonly<Record<string, unknown>>

/**
 * The clipanion command of an entry. The parser sets the fields `arg_0` and on, and `opt_<name>`, which cannot collide with members
 * of `Command`.
 */
export function commandClass(entry: Entry, fields: () => Fields = () => ({})): CommandClass<BaseContext & CallContext> {
  return class extends Command<BaseContext & CallContext> {
    static override paths = [entry.path.split(' ')]
    static override usage = Command.Usage({
      category: entry.path.includes(' ') ? (entry.path.split(' ')[0] as string) : 'svc',
      description: entry.summary,
    })

    constructor() {
      super()
      Object.assign(this, fields())
    }

    async execute(): Promise<number> {
      const invocation = invocationOf(entry, this as unknown as Fields)
      checkInvocation(entry, invocation)
      return this.context.carryOut(entry, invocation)
    }
  }
}

export const fieldOf = ({ name }: OptionData): string => `opt_${name}`
export const argumentField = (at: number): string => `arg_${at}`

function invocationOf(entry: Entry, fields: Fields): Invocation {
  const args = entry.args.map(({ name }, at) => [name, fields[argumentField(at)]])
  const options = ownOptionsOf(entry).map(option => [option.name, fields[fieldOf(option)]])
  const isGiven = ([, value]: unknown[]) => value !== undefined
  return {
    args: Object.fromEntries(args.filter(isGiven)),
    options: Object.fromEntries(options.filter(isGiven)),
    quiet: isGlobal(entry, { name: 'quiet' }) && fields.opt_quiet === true,
    isDryRun: isGlobal(entry, { name: 'dry-run' }) && fields['opt_dry-run'] === true,
    ...(isGlobal(entry, { name: 'plan' }) && typeof fields.opt_plan === 'string' && { plan: fields.opt_plan }),
  }
}

/** clipanion binds values only to options of lower-case words. */
const bindable = /^[a-z]+(?:-[a-z]+)*$/

/** Parser names of the options of a command: their own where the parser supports them, else generated from letters. */
export function parserNames(entry: Entry): ReadonlyMap<string, string> {
  const letters = (at: number) => [...String(at)].map(digit => 'abcdefghij'[Number(digit)]).join('')
  return new Map(
    optionsOf(entry).map(({ name }, at) => [name, bindable.test(name) ? name : `option-${letters(at)}`] as const),
  )
}
