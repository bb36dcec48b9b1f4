import { join } from 'node:path'
import type { Method } from '../../kernel/contract/route.js'
import type { CommandArgument, CommandOption } from '../../kernel/contract/surface.js'
import type { CliView, RouteCli } from '../../kernel/kit/annotations/index.js'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'
import { readCommandLines } from './command-lines.js'

/** Many times what all commands need. */
const MAX_BYTES = 16 * 1024 * 1024

/** `commands.json`: everything that the command line knows without a daemon. */
export interface CommandData {
  /** Of the package. */
  readonly version: string
  readonly routes: readonly RouteCommand[]
  readonly commands: readonly ModuleCommand[]
}

/** One value that a caller gives, and where in the request it goes. */
export interface Parameter {
  /** In the request. */
  readonly name: string
  /** On the command line, without `--`. */
  readonly option: string
  /** Name that is taken as well, and not shown: that of the member where the option has a shorter one. */
  readonly alias?: string
  /** `shorthand`: makes a member of the body, see `shorthands`. */
  readonly in: 'path' | 'query' | 'body' | 'shorthand'
  /** `file`: a path, made absolute; `workspace`: so where it is a path, an id where the member is one; `list`: texts, the option is repeated; `json`: any JSON. */
  readonly type: 'text' | 'file' | 'workspace' | 'integer' | 'number' | 'boolean' | 'list' | 'json'
  /** The only texts allowed. */
  readonly values?: readonly string[]
  readonly required: boolean
  /** The caller's workspace is meant when it is not given. */
  readonly fromContext?: true
  /** The variable of the caller's environment that is meant when it is not given. */
  readonly variable?: string
  /** Of an argument: what is sent when it is not given. Of an option: what the daemon then takes, for help to say. */
  readonly default?: string
  readonly summary?: string
}

/** A command made from a route. */
export interface RouteCommand extends Pick<RouteCli, 'find' | 'follow' | 'done' | 'shorthands' | 'scoped'> {
  readonly kind: 'route'
  readonly path: string
  readonly summary: string
  readonly method: Method
  /** `/api/things/{id}` */
  readonly url: string
  /** Positional arguments in order. */
  readonly args: readonly Parameter[]
  readonly options: readonly Parameter[]
  /** Whether a body is sent: `optional` only when something of it was given. */
  readonly body: 'none' | 'optional' | 'required'
  readonly stream: boolean
  readonly view?: CliView
}

/** A command written by hand, in a plugin. */
export interface ModuleCommand {
  readonly kind: 'module'
  readonly path: string
  readonly summary: string
  readonly args: readonly CommandArgument[]
  readonly options: readonly CommandOption[]
  /** It works on files of its caller. */
  readonly local?: true
  /** File, absolute or relative to the folder of `commands.json`. */
  readonly module: string
  /** Export of the module that runs it; without it the default export is a plugin whose surface has the command. */
  readonly export?: string
}

/** Is there something that may be another one when it is asked for again: a list, or a state. */
export const isWatchable = ({ method, stream, follow, view }: RouteCommand): boolean =>
  method === 'GET' && !stream && !follow && view !== undefined && !('text' in view)

/** Commands that come with the package, and those of drop-ins that the daemon of this home wrote down. */
export function loadCommandData(root: string, home: string): CommandData {
  const own = readData(join(root, 'commands.json'), readCommandLines)
  if (own === undefined) throw new Error(`${join(root, 'commands.json')} is missing; build the package again`)
  const more = readData(join(home, 'cache', 'commands.json'), JSON.parse)
  if (more === undefined) return own
  const taken = new Set([...own.routes, ...own.commands].map(entry => entry.path))
  const free = (entry: { path: string }) => !taken.has(entry.path)
  return {
    version: own.version,
    routes: [...own.routes, ...(more.routes ?? []).filter(free)],
    commands: [...own.commands, ...(more.commands ?? []).filter(free)],
  }
}

function readData(file: string, parse: (text: string) => CommandData): CommandData | undefined {
  try {
    const text = readRegularFileSync(file, { maxBytes: MAX_BYTES })?.toString()
    return text === undefined ? undefined : parse(text)
  } catch {
    // A drop-in's data that is damaged must not take the commands of the package away.
    return undefined
  }
}
