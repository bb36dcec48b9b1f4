import { isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { CommandContext } from '../kernel/contract/command.js'
import { Fault } from '../kernel/contract/errors.js'
import { findAddress, homeOfEnv } from './address.js'
import { Client } from './client.js'
import { type CommandData, loadCommandData, type ModuleCommand } from './commands/command-data.js'
import { type Entry, type Found, findCommand } from './commands/find-command.js'
import { commandHelp, groupHelp } from './commands/help.js'
import type { Given } from './commands/parse-command.js'
import { CliFault, exitCodes, usageFault } from './fault.js'
import type { Io } from './io.js'
import { type LocalContext, localCommands } from './local.js'
import { Output, outputModeOf, widthOf } from './show/output.js'
import { Progress } from './show/progress.js'
import { cleanText } from './show/text.js'
import { currentWorkspace, workspaceReference } from './workspace-context.js'

/** Runs one command line and returns its exit code. Never throws. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  let out = new Output(io, 'human')
  let called: Entry | undefined
  try {
    const words = withGlobalsLast(argv)
    const mode = outputModeOf(words)
    out = new Output(io, mode)
    const home = homeOfEnv(io.env)
    const data = io.data ?? loadCommandData(io.root, home)
    const entries: readonly Entry[] = [...localCommands, ...data.routes, ...data.commands]
    const help = asksForHelp(words)
    const found = findCommand(help ? words.filter(word => !helpWords.has(word)) : words, entries)
    if (found.is === 'unknown') throw unknownFault(found)
    if (found.is === 'group') return showGroup(found.name, found.rest, help, entries, data, io)
    if (help) return show(commandHelp(found.entry, widthOf(io.env, io.stdout)), io.stdout)
    called = found.entry
    // The parser is the largest part of a call, and help does without.
    const { parseCommand } = await import('./commands/parse-command.js')
    const given = parseCommand(found.entry, found.rest)
    out = new Output(io, mode, given.quiet)
    const progress = new Progress(io.stderr, io.stderr.isTTY === true && !out.json && !given.quiet)
    const client = new Client({
      address: () => findAddress(io.env),
      signal: io.signal,
      progress,
      notice: text => {
        if (!out.json) io.stderr.write(`${cleanText(text)}\n`)
      },
      onVersion: version => {
        if (version !== data.version) out.note(otherVersion(version, data.version))
      },
      ...(io.probe && { probe: io.probe }),
    })
    const code = await execute(found.entry, given, { io, out, data, home, client, progress })
    return io.signal.aborted ? exitCodes.interrupted : code
  } catch (error) {
    if (io.signal.aborted) return exitCodes.interrupted
    const fault = error instanceof CliFault ? error : givenFault(error)
    out.fault(called ? withHelp(fault, called) : fault)
    return fault.exit
  }
}

interface World {
  readonly io: Io
  readonly out: Output
  readonly data: CommandData
  readonly home: string
  readonly client: Client
  readonly progress: Progress
}

async function execute(entry: Entry, given: Given, world: World): Promise<number> {
  if (entry.kind === 'route') {
    const { runRoute } = await import('./run-route.js')
    const ask = () => runRoute(entry, given, world)
    if (entry.path === 'extension disable') await disableSurely(ask, given, world)
    else await ask()
    return exitCodes.done
  }
  const context = contextOf(entry, await withWorkspace(entry, given, world), world)
  if (entry.kind === 'local') return (await (await entry.load())(context)) ?? exitCodes.done
  try {
    return (await (await loadModule(entry, world.io.root))(context)) ?? exitCodes.done
  } catch (error) {
    if (error instanceof CliFault || error instanceof Fault || world.io.signal.aborted) throw error
    // Whose fault it is: a plugin's, or a daemon's that answered something else than that expected.
    throw new CliFault('command_failed', `svc ${entry.path} failed on something unexpected`, { cause: error })
  }
}

/** What holds the daemon must not be what keeps it from being switched off. A link to one workspace is no note's business. */
async function disableSurely(ask: () => Promise<void>, given: Given, { io, home, out }: World): Promise<void> {
  const [name = ''] = Object.values(given.args).flat()
  try {
    await ask()
  } catch (unreached) {
    const { disableLater, isUnreached } = await import('./daemon/disable-later.js')
    if (!isUnreached(unreached) || given.options.workspace !== undefined) throw unreached
    await disableLater({ home, name, out, signal: io.signal, unreached, ask })
  }
}

/** A command that takes a workspace is told the caller's when none was given. */
async function withWorkspace(
  entry: Exclude<Entry, { kind: 'route' }>,
  given: Given,
  { io, client }: World,
): Promise<Given> {
  const option = entry.options.find(({ type }) => type === 'workspace')
  if (!option || given.options.everywhere === true) return given
  const value = given.options[option.name]
  const workspace = typeof value === 'string' ? workspaceReference(value, io.cwd) : await currentWorkspace(io, client)
  return workspace === undefined ? given : { ...given, options: { ...given.options, [option.name]: workspace } }
}

function contextOf(
  entry: Exclude<Entry, { kind: 'route' }>,
  given: Given,
  { io, out, data, home, client, progress }: World,
): LocalContext {
  const context: LocalContext = {
    path: entry.path,
    args: given.args,
    options: Object.fromEntries(
      entry.options.map(option => [option.name, optionValue(option, given.options[option.name])]),
    ),
    client,
    out,
    cwd: io.cwd,
    signal: io.signal,
    onInterrupt: io.onInterrupt ?? (() => () => {}),
    ...(io.terminal && !out.json && !out.quiet && { terminal: io.terminal }),
    stdin: () => io.stdin(),
    readFile: path => readText(path, io),
    fault: (code, text, next) => {
      const exit =
        code === 'usage' ? exitCodes.usage : code.endsWith('not_found') ? exitCodes.notFound : exitCodes.failed
      throw new CliFault(code, text, { exit, next })
    },
    io,
    data,
    home,
    progress,
  }
  return context
}

function optionValue({ name, type }: { name: string; type: string }, value: Given['options'][string]) {
  if (type !== 'integer' || value === undefined) return value as string | boolean | undefined
  if (!/^-?\d{1,15}$/.test(String(value))) throw usageFault(`--${name} takes an integer, not ${JSON.stringify(value)}`)
  return Number(value)
}

/** A text file named on the command line, `-` being standard input. */
export async function readText(path: string, io: Pick<Io, 'cwd' | 'stdin'>): Promise<string> {
  if (path === '-') return io.stdin()
  const { readNamedFile } = await import('./named-file.js')
  try {
    return await readNamedFile(resolve(io.cwd, path))
  } catch (error) {
    throw givenFault(error, exitCodes.usage)
  }
}

type Run = (context: CommandContext) => Promise<number | undefined>

async function loadModule(entry: ModuleCommand, root: string): Promise<Run> {
  const file = isAbsolute(entry.module) ? entry.module : join(root, entry.module)
  const module = (await import(pathToFileURL(file).href)) as Record<string, unknown>
  if (entry.export !== undefined) return module[entry.export] as Run
  const plugin = module.default as {
    surface?: { commands?: readonly { path: string; load: () => Promise<{ run: unknown }> }[] }
  }
  const command = plugin.surface?.commands?.find(({ path }) => path === entry.path)
  if (command === undefined) throw new CliFault('command_gone', `${file} has no command ${entry.path} any more`)
  return (await command.load()).run as Run
}

const helpWords: ReadonlySet<string> = new Set(['--help', '-h'])

function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return argv[0] === 'help' || (end < 0 ? argv : argv.slice(0, end)).some(word => helpWords.has(word))
}

/** `svc --json status` is `svc status --json`; `svc help status` is `svc status --help`; `--version` is a command. */
function withGlobalsLast(argv: readonly string[]): string[] {
  const words = [...argv]
  const globals: string[] = []
  while (words[0]?.startsWith('-') && !helpWords.has(words[0])) {
    if (words[0] === '--version') words.splice(0, 1, 'version')
    else globals.push(...words.splice(0, words[0] === '-o' || words[0] === '--output' ? 2 : 1))
  }
  if (words[0] === 'help') words.splice(0, 1, '--help')
  if (words[0] === '--help') words.push(words.shift() as string)
  return [...words, ...globals]
}

function otherVersion(daemon: string, own: string): string {
  return `the daemon is version ${cleanText(daemon)} and this command line ${own}; svc daemon stop && svc daemon start makes them one`
}

function unknownFault({ text, group, alike }: Found & { is: 'unknown' }): CliFault {
  const meant = alike.length === 0 ? '' : `; did you mean ${alike.map(name => `svc ${name}`).join(', ')}?`
  const help = group === '' ? 'svc help' : `svc ${group} --help`
  return usageFault(`there is no command ${JSON.stringify(text)}${meant}`, alike.length > 0 ? `svc ${alike[0]}` : help)
}

function showGroup(
  name: string,
  rest: readonly string[],
  help: boolean,
  entries: readonly Entry[],
  data: CommandData,
  io: Io,
): number {
  const option = help
    ? undefined
    : rest.find(word => !['--json', '-o', '--output'].includes(word) && word.startsWith('-'))
  if (option !== undefined)
    throw usageFault(`${name === '' ? 'svc' : `svc ${name}`} has no option ${option}`, 'svc help')
  const asked = help || name === ''
  const sink = asked ? io.stdout : io.stderr
  show(groupHelp(name, entries, data, widthOf(io.env, sink)), sink)
  return asked ? exitCodes.done : exitCodes.usage
}

function show(lines: readonly string[], sink: Io['stdout']): number {
  sink.write(`${lines.join('\n')}\n`)
  return exitCodes.done
}

/** Who called a command wrongly and is not told what to do instead is told where it says how it is called. */
function withHelp(fault: CliFault, { path }: Entry): CliFault {
  const wrong = fault.exit === exitCodes.usage || fault.exit === exitCodes.invalid
  if (!wrong || (fault.more.next !== undefined && fault.more.next !== 'svc help')) return fault
  return new CliFault(fault.code, fault.message, { ...fault.more, next: `svc ${path} --help` })
}

/** What the kernel's own code found wrong on this side; everything else is a mistake of ours. */
function givenFault(error: unknown, exit: number = exitCodes.failed): CliFault {
  if (error instanceof Fault) return new CliFault(error.code, error.message, { exit, next: error.next, cause: error })
  // Errors of the lock and of the store say what helps in a member of their own.
  const { code, message, hint } = (error ?? {}) as { code?: unknown; message?: string; hint?: unknown }
  if (typeof code === 'string' && typeof hint === 'string')
    return new CliFault(code, String(message), { exit, next: hint, cause: error })
  const text = error instanceof Error ? error.message : String(error)
  return new CliFault('internal', text, { cause: error })
}
