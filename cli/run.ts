import { isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Fault } from '../kernel/contract/errors.js'
import type { CommandContext } from '../kernel/kit/commands/context.js'
import { checkHome, homeFault, homeOfEnv } from './address.js'
import type { DaemonClient } from './client.js'
import { type CommandData, loadCommandData, type ModuleCommand } from './commands/command-data.js'
import type { Entry, Found } from './commands/find-command.js'
import { glossaryEntry } from './commands/glossary.js'
import { commandHelp, groupHelp } from './commands/help.js'
import type { Invocation } from './commands/invocation.js'
import { CliFault, exitCodes, exitOfStatus, usageFault } from './fault.js'
import { entriesOf, findCalled, readCall } from './help-call.js'
import type { Io, Keyboard } from './io.js'
import { clientOf } from './later-client.js'
import type { LocalContext } from './local.js'
import { asciiSink, isAsciiLocale } from './show/ascii.js'
import { Output, outputModeOf, widthOf } from './show/output.js'
import { Progress } from './show/progress.js'
import { cleanText } from './show/text.js'
import { noteFindings } from './tasks/findings.js'
import { surely } from './tasks/surely.js'
import { isLive, startsDaemon, taskWorld } from './tasks/task-world.js'
import { currentWorkspace, openWorkspace, workspaceReference } from './workspace-context.js'

/** Argument with which programs made with clipanion print their command definitions. */
const DEFINITIONS = '--clipanion=definitions'

/** Runs one command line and returns its exit code. Never throws. */
export async function run(argv: readonly string[], world: Io): Promise<number> {
  let io = inLocale(world)
  let out = new Output(io, 'human')
  let called: Entry | undefined
  let progress: Progress | undefined
  const interrupted = () => {
    if (progress?.left !== undefined) io.stderr.write(`interrupted; ${progress.left}\n`)
    return exitCodes.interrupted
  }
  try {
    const call = readCall(argv)
    const { words, help } = call
    // Malformed Unicode cannot be part of a URL.
    const broken = words.find(word => /\p{Surrogate}/u.test(word))
    if (broken !== undefined) throw usageFault(`${JSON.stringify(broken)} is not well-formed Unicode`)
    const mode = outputModeOf(words)
    // Programs get the characters unchanged.
    if (mode !== 'human') io = world
    out = new Output(io, mode)
    const home = homeOfEnv(io.env)
    checkHome(home)
    const data = io.data ?? loadCommandData(io.root, home)
    const entries = entriesOf(data)
    if (argv.length === 1 && argv[0] === DEFINITIONS) {
      const { definitionsOf } = await import('./commands/parse-words.js')
      return show([JSON.stringify(definitionsOf(entries), undefined, 2)], io.stdout)
    }
    const { found, term } = findCalled(argv, call, entries)
    const meaning = term === undefined ? [] : glossaryEntry(io.root, term, widthOf(io.env, io.stdout))
    if (found.is === 'unknown' && meaning.length > 0) return show(meaning, io.stdout)
    if (found.is === 'unknown') throw unknownFault(found)
    if (meaning.length > 0) show([...meaning, ''], io.stdout)
    if (found.is === 'group') {
      if (found.name !== '' || help || strayOption(found.rest)) {
        return showGroup(found.name, found.rest, help, entries, data, io)
      }
      const client = clientOf(io, {})
      await (await import('./setup/overview.js')).showOverview(home, client, out, data.version)
      return exitCodes.done
    }
    if (help) return show(commandHelp(found.entry, widthOf(io.env, io.stdout)), io.stdout)
    called = found.entry
    // Help needs no parser.
    const { parseCommand } = await import('./commands/parse-command.js')
    const carryOut = async (entry: Entry, invocation: Invocation) => {
      const screen = mode === 'human' && !invocation.quiet && isLive(entry.path) ? await io.openScreen?.() : undefined
      out = new Output(screen ? inLocale({ ...world, stdout: screen }) : io, mode, invocation.quiet)
      const waits = new Progress(io.stderr, io.stderr.isTTY === true && !out.json && !invocation.quiet && !screen)
      const daemon = clientOf(io, {
        progress: waits,
        notice: text => {
          if (out.json) return
          if (screen) screen.say(cleanText(text))
          else io.stderr.write(`${cleanText(text)}\n`)
        },
        onVersion: version => {
          if (version !== data.version) out.note(otherVersion(version, data.version))
        },
        ...(io.probe && { probe: io.probe }),
      })
      progress = waits
      const client = invocation.isDryRun || invocation.plan !== undefined ? await planned(daemon, invocation) : daemon
      const mayName = entry.kind !== 'local' && Object.keys({ ...invocation.args, ...invocation.options }).length > 0
      const named = mayName
        ? await (await import('./commands/references.js')).withReferences(entry, invocation, data, client)
        : invocation
      return execute(entry, named, { io: screen ? { ...io, screen } : io, out, data, home, client, progress: waits })
    }
    const command = await parseCommand(found.entry, found.rest, { carryOut })
    const code = await command.validateAndExecute()
    return io.signal.aborted ? interrupted() : code
  } catch (error) {
    if (io.signal.aborted) return interrupted()
    const plan = planOf(error)
    if (plan !== undefined) {
      const { showPlan } = await import('./planning.js')
      showPlan(plan, argv, out)
      return exitCodes.done
    }
    const fault = error instanceof CliFault ? error : (homeFault(homeOfEnv(world.env), error) ?? givenFault(error))
    out.fault(called ? withHelp(fault, called) : fault)
    return fault.exit
  }
}

/** The client for a dry run or a plan. */
const planned = async (client: DaemonClient, invocation: Invocation): Promise<DaemonClient> =>
  (await import('./planning.js')).planningClient(client, invocation)

/** The plan that ended a dry run. */
const planOf = (error: unknown): unknown =>
  error instanceof Error && error.name === 'PlanMade' ? (error as unknown as { plan: unknown }).plan : undefined

/** Output for people, in the character set of their locale. */
function inLocale(io: Io): Io {
  return isAsciiLocale(io.env) ? { ...io, stdout: asciiSink(io.stdout), stderr: asciiSink(io.stderr) } : io
}

interface World {
  readonly io: Io
  readonly out: Output
  readonly data: CommandData
  readonly home: string
  readonly client: DaemonClient
  readonly progress: Progress
}

function execute(entry: Entry, invocation: Invocation, world: World): Promise<number> {
  const ask = () => carryOut(entry, invocation, world)
  return surely[entry.path]?.(ask, entry, invocation, world) ?? ask()
}

async function carryOut(entry: Entry, invocation: Invocation, world: World): Promise<number> {
  if (entry.kind === 'route') return (await import('./run-route.js')).runRoute(entry, invocation, world)
  if (startsDaemon(entry.path) && !invocation.isDryRun) await ensureDaemon(world)
  const plain = contextOf(entry, await withWorkspace(entry, invocation, world), world)
  const context: LocalContext = isLive(entry.path)
    ? Object.assign(plain, await taskWorld(world.out, world.io, world.home))
    : plain
  const isLocal = entry.kind === 'local'
  try {
    const run = isLocal ? await entry.load() : await loadModule(entry, world.io.root)
    const code = await Promise.race([run(context), ...(world.io.idle ? [world.io.idle()] : [])])
    if (!code) await noteFindings(entry.path, context, world)
    return code ?? exitCodes.done
  } catch (error) {
    if (error instanceof CliFault || world.io.signal.aborted) throw error
    // Errors of files and programs are passed on; a reply in an unexpected form causes a TypeError.
    if (isLocal && !(error instanceof TypeError)) throw error
    if (error instanceof Fault) throw givenFault(error, exitOfStatus(error.status))
    // A bug of a plugin, or an unexpected reply of the daemon.
    throw new CliFault('command_failed', `svc ${entry.path} failed with an unexpected error`, { cause: error })
  }
}

async function ensureDaemon({ io, home, client, progress, out }: World): Promise<void> {
  const { bringUp } = await import('./daemon/start-daemon.js')
  const { status, identity } = await bringUp({ io, home, client, progress, signal: io.signal })
  if (status === 'started') out.line(out.color('dim', `started the daemon (pid ${identity.daemon.pid})`))
}

/** Gives a command with a workspace option the current workspace by default. */
async function withWorkspace(
  entry: Exclude<Entry, { kind: 'route' }>,
  invocation: Invocation,
  world: World,
): Promise<Invocation> {
  const { io, client } = world
  const option = entry.options.find(({ name, type }) => type === 'workspace' || name === 'workspace')
  const value = option && invocation.options[option.name]
  const named = typeof value === 'string' ? value : undefined
  if (named !== undefined && invocation.options.global === true)
    throw usageFault('give --workspace or --global, not both')
  if (!option || invocation.options.global === true) return invocation
  // Without a default of its own, the command handles a missing workspace itself.
  if (option.type !== 'workspace' && named === undefined) return invocation
  const workspace = option.opens
    ? await openWorkspace(world, named)
    : named === undefined
      ? await currentWorkspace(io, client)
      : workspaceReference(named, io.cwd)
  return workspace === undefined
    ? invocation
    : { ...invocation, options: { ...invocation.options, [option.name]: workspace } }
}

function contextOf(
  entry: Exclude<Entry, { kind: 'route' }>,
  invocation: Invocation,
  { io, out, data, home, client, progress }: World,
): LocalContext {
  const context: LocalContext = {
    path: entry.path,
    args: invocation.args,
    options: Object.fromEntries(
      entry.options
        .filter(({ type }) => type !== 'list')
        .map(option => [option.name, optionValue(option, invocation.options[option.name])]),
    ),
    lists: Object.fromEntries(Object.entries(invocation.options).filter(isList)),
    client,
    out,
    cwd: io.cwd,
    signal: io.signal,
    onInterrupt: io.onInterrupt ?? (() => () => {}),
    // Read lazily, for commands that prompt.
    get unseen() {
      return io.unseen
    },
    get terminal() {
      return out.json || out.quiet ? undefined : io.terminal
    },
    ...(out.json || isScreen(io) ? { watch: watching(io, out) } : {}),
    get wholeScreen() {
      return out.json || out.quiet || !isScreen(io) ? undefined : io.keyboard && drawing(io, io.keyboard)
    },
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

const isScreen = ({ stdout, env }: Io) => stdout.isTTY === true && env.TERM !== 'dumb'

const watching =
  (io: Io, out: Output): NonNullable<CommandContext['watch']> =>
  async (ask, show) => {
    const { watchReplies } = await import('./watch-route.js')
    await watchReplies(ask, show, { io, out })
  }

const drawing =
  (io: Io, keyboard: Keyboard): NonNullable<CommandContext['wholeScreen']> =>
  async use => {
    const { onWholeScreen } = await import('./show/whole-screen.js')
    return onWholeScreen(use, io, keyboard)
  }

const isList = (option: [string, unknown]): option is [string, readonly string[]] => Array.isArray(option[1])

function optionValue({ type }: { type: string }, value: Invocation['options'][string]) {
  return type === 'integer' && value !== undefined ? Number(value) : (value as string | boolean | undefined)
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

function otherVersion(daemon: string, own: string): string {
  return `the daemon is version ${cleanText(daemon)}, but this command line is ${own}; restart the daemon: svc daemon restart`
}

function unknownFault({ text, group, alike }: Found & { is: 'unknown' }): CliFault {
  const meant = alike.length === 0 ? '' : `; did you mean ${alike.map(name => `svc ${name}`).join(', ')}?`
  const help = group === '' ? 'svc help' : `svc ${group} --help`
  return usageFault(`there is no command ${JSON.stringify(text)}${meant}`, alike.length > 0 ? `svc ${alike[0]}` : help)
}

/** An option in a place where none is known. */
function strayOption(rest: readonly string[]): string | undefined {
  return rest.find(word => !['--json', '-o', '--output'].includes(word) && word.startsWith('-'))
}

function showGroup(
  name: string,
  rest: readonly string[],
  help: boolean,
  entries: readonly Entry[],
  data: CommandData,
  io: Io,
): number {
  const option = help ? undefined : strayOption(rest)
  if (option !== undefined)
    throw usageFault(`${name === '' ? 'svc' : `svc ${name}`} has no option ${option}`, 'svc help')
  const isRequested = help || name === ''
  const sink = isRequested ? io.stdout : io.stderr
  show(groupHelp(name, entries, data, widthOf(io.env, sink)), sink)
  return isRequested ? exitCodes.done : exitCodes.usage
}

function show(lines: readonly string[], sink: Io['stdout']): number {
  sink.write(`${lines.join('\n')}\n`)
  return exitCodes.done
}

/** Adds a pointer to the help of the command to a usage error without another hint. */
function withHelp(fault: CliFault, { path }: Entry): CliFault {
  const wrong = fault.exit === exitCodes.usage || fault.exit === exitCodes.invalid
  if (!wrong || (fault.more.next !== undefined && fault.more.next !== 'svc help')) return fault
  return new CliFault(fault.code, fault.message, { ...fault.more, next: `svc ${path} --help` })
}

/** Converts errors of kernel code on this side; all other errors are bugs. */
function givenFault(error: unknown, exit: number = exitCodes.failed): CliFault {
  if (error instanceof Fault) return new CliFault(error.code, error.message, { exit, next: error.next, cause: error })
  // Errors of the store have their hint in a separate member.
  const { code, message, hint } = (error ?? {}) as { code?: unknown; message?: string; hint?: unknown }
  if (typeof code === 'string' && typeof hint === 'string')
    return new CliFault(code, String(message), { exit, next: hint, cause: error })
  const text = error instanceof Error ? error.message : String(error)
  return new CliFault('internal', text, { cause: error })
}
