import { usageFault } from '../fault.js'
import { ownOptionsOf } from './command-options.js'
import type { Entry } from './find-command.js'
import { usageLine } from './help.js'

/** The arguments and options of a call as text; lists keep the order of their items. */
export interface Invocation {
  readonly args: Readonly<Record<string, string>>
  readonly options: Readonly<Record<string, string | boolean | readonly string[] | undefined>>
  /** The global option `--quiet`; false where the command has an option of that name. */
  readonly quiet: boolean
  /** The global option `--dry-run`: the first changing request is only planned. */
  readonly isDryRun: boolean
  /** The global option `--plan`: digest of the plan that the first changing request has to match. */
  readonly plan?: string
}

/**
 * Checks arguments and options against the declaration of the command, before any request to the daemon.
 * @throws CliFault `usage` for a missing argument, and for a value of another type or not among the allowed ones
 */
export function checkInvocation(entry: Entry, { args, options }: Invocation): void {
  for (const arg of entry.args) {
    const isRequired = 'required' in arg ? arg.required : !('optional' in arg && arg.optional)
    if (args[arg.name] === undefined && isRequired && options[arg.name] === undefined)
      throw usageFault(`${arg.name} is missing`, usageLine(entry))
    if (entry.kind === 'route' && 'type' in arg) checkValue(arg as ValueData, args[arg.name], arg.name)
  }
  for (const option of ownOptionsOf(entry)) checkValue(option, options[option.name], `--${option.name}`)
}

interface ValueData {
  readonly type: string
  readonly values?: readonly string[]
}

function checkValue({ type, values }: ValueData, value: unknown, label: string): void {
  if (typeof value !== 'string') return
  if (values && !values.includes(value))
    throw usageFault(`${label} is one of ${fewOf(values, value)}, not ${JSON.stringify(value)}`)
  // The value is read from a file or from standard input.
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

/** Allowed values in one line: of a long list those with the same beginning as the given one, or the first ones. */
function fewOf(values: readonly string[], typed: string): string {
  const most = 20
  if (values.length <= most) return values.join(', ')
  const alike = values.filter(value => value.startsWith(typed.slice(0, 3)))
  const few = (alike.length > 0 ? alike : values).slice(0, most)
  return `${few.join(', ')} and ${values.length - few.length} more`
}

/** Parses a JSON value of the command line. @throws CliFault `usage` with the position of the error */
export function parseJson(text: string, label: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw usageFault(`${label} is not valid JSON: ${(error as Error).message}`)
  }
}
