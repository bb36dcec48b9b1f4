import { join } from 'node:path'
import type { Method } from '../../kernel/contract/route.js'
import type { CommandArgument, CommandOption } from '../../kernel/contract/surface.js'
import type { CliView, RouteCli } from '../../kernel/kit/annotations/index.js'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'
import { CliFault } from '../fault.js'
import { readCommandLines } from './command-lines.js'

/** Far above the size of all commands. */
const MAX_BYTES = 16 * 1024 * 1024

/** `commands.json`: all command data that the CLI needs without a daemon. */
export interface CommandData {
  /** Version of the package. */
  readonly version: string
  readonly routes: readonly RouteCommand[]
  readonly commands: readonly ModuleCommand[]
}

/** An argument or option, and its place in the request. */
export interface Parameter {
  /** Name in the request. */
  readonly name: string
  /** Name on the command line, without `--`. */
  readonly option: string
  /** Accepted but hidden second name: that of the member, where the option has a shorter one. */
  readonly alias?: string
  /** `shorthand`: sets a member of the body, see `shorthands`. */
  readonly in: 'path' | 'query' | 'body' | 'shorthand'
  /**
   * `file`: a path, made absolute; `workspace`: a path, made absolute, or a reference, resolved to an ID where the member is one;
   * `list`: a repeatable option; `json`: any JSON.
   */
  readonly type: 'text' | 'file' | 'workspace' | 'integer' | 'number' | 'boolean' | 'list' | 'json'
  /** The allowed values. */
  readonly values?: readonly string[]
  readonly required: boolean
  /** Default: the current workspace. */
  readonly fromContext?: true
  /** Environment variable with the default value. */
  readonly variable?: string
  /** For an argument: the default that is sent. For an option: the default of the daemon, shown in help. */
  readonly default?: string
  readonly summary?: string
}

/** A command generated from a route. */
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
  /** Whether a body is sent: `optional` only when a member of it was given. */
  readonly body: 'none' | 'optional' | 'required'
  readonly stream: boolean
  readonly view?: CliView
}

/** A hand-written command of a plugin. */
export interface ModuleCommand {
  readonly kind: 'module'
  readonly path: string
  readonly summary: string
  readonly args: readonly CommandArgument[]
  readonly options: readonly CommandOption[]
  /** Works on files of the caller. */
  readonly local?: true
  /** File, absolute or relative to the folder of `commands.json`. */
  readonly module: string
  /** Export that runs the command; without it the default export is a plugin whose surface has the command. */
  readonly export?: string
}

/** Whether the reply can change between two requests: a list, or a state. */
export const isWatchable = ({ method, stream, follow, view }: RouteCommand): boolean =>
  method === 'GET' && !stream && !follow && view !== undefined && !('text' in view)

/** Commands of the package, and those of drop-ins in the cache of this home. */
export function loadCommandData(root: string, home: string): CommandData {
  const file = join(root, 'commands.json')
  const own = readData(file, readCommandLines)
  if (!own)
    throw new CliFault('package_damaged', `${file} is missing or damaged`, {
      next: 'install the package again; in a clone: npm run build',
    })
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
    // Damaged data of a drop-in must not disable the commands of the package.
    return undefined
  }
}
