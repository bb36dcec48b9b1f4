import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Kernel, LogLine } from '../kernel/index.js'
import type { Env } from './address.js'
import { LogFile, logPath } from './log-file.js'
import { redact } from './redact.js'
import { describeSuspect, forgetSuspect, readSuspect } from './suspect.js'
import { type Blocked, startWatchdog } from './watchdog.js'

/** A clean shutdown has its own deadlines of ten seconds in all; past this the process goes anyway. */
const closeMs = 14_000
/** The one before is ended by a signal; only the disk can hold it up. */
const successionMs = 15_000
const MIB = 1024 * 1024
const DAY_MS = 24 * 60 * 60_000
/** Exit code of an exception that nothing contained (EX_SOFTWARE). */
const exitBroken = 70

export interface DaemonOptions {
  /** Folder of the build: `bin/` below it goes on the path of agents, `../examples` has what comes with the package. */
  readonly root: string
  readonly home: string
  readonly env: Env
  /** The log goes to standard output as well. */
  readonly foreground: boolean
  /** Arguments of Node with which the watchdog of a detached daemon starts the next one. */
  readonly successor?: readonly string[]
  /** It follows one that is being ended and waits for its lock. */
  readonly succeeds?: boolean
}

type Log = (
  line: Pick<LogLine, 'level' | 'msg'> & { readonly time?: number; readonly [field: string]: unknown },
) => void

/** Attributes a failure, at a place, to a plugin. */
type Blame = (owner: string, where: string, error: unknown) => void

/** The daemon: a kernel with the plugins of the package, its signals, its log. Returns the exit code when it has ended. */
export async function runDaemon(options: DaemonOptions): Promise<number> {
  const { root, home, env, foreground, successor } = options
  // The command line's own handler would cut the shutdown short.
  process.removeAllListeners('SIGINT')
  const stopped = stopSignal(foreground)
  let kernel: Kernel | undefined
  let log: Log | undefined
  const blame: Blame = (owner, where, error) => kernel?.host.report({ owner, hook: where, error })
  const blocked: Blocked = ({ owner, where }, seconds) => {
    log?.({ level: 'warn', msg: `${owner} held the daemon for ${seconds} s in ${where}`, owner })
    blame(owner, 'event loop', new Error(`it held the daemon in ${where}`))
  }
  const file = new LogFile(logPath(home))
  try {
    const code = Promise.all([
      import('../kernel/index.js'),
      import('../plugins/index.js'),
      import('./drop-in-commands.js'),
    ])
    code.catch(() => {})
    log = await openLogger(file, foreground)
    contain(log, blame)
    const watch = () => startWatchdog(root, { home, log: logPath(home), ...(successor && { successor }) }, blocked)
    // Code of others may hold the thread as soon as it is loaded; without any, a start need not wait for its watchdog.
    const early = hasDropIns(home)
    if (early) watch()
    const suspect = readSuspect(home)
    const [{ createKernel, KernelSettings }, { inTree, critical, quiesceOrder }, { dropInCommands }] = await code
    kernel = await createKernel({
      home,
      plugins: [...inTree, dropInCommands],
      critical,
      quiesceOrder,
      listen: ['socket', 'tcp'],
      env: { ...env, SVC_BIN_DIR: join(root, 'bin'), SVC_SHARE_DIR: join(root, '..', 'examples') },
      log,
      ...(options.succeeds && { waitForLockMs: successionMs }),
      ...(suspect &&
        !(critical as readonly string[]).includes(suspect.owner) && {
          leftOut: [{ name: suspect.owner, why: describeSuspect(suspect) }],
        }),
    })
    if (suspect) {
      forgetSuspect(home)
      blame(suspect.owner, 'watchdog', new Error(describeSuspect(suspect)))
    }
    if (!early) watch()
    // Not before: the lock is held from here on.
    file.rotate({
      maxBytes: kernel.setting(KernelSettings.logMegabytes) * MIB,
      backups: kernel.setting(KernelSettings.logBackups),
      maxAgeMs: kernel.setting(KernelSettings.logDays) * DAY_MS,
    })
  } catch (error) {
    return refuse(error, foreground, log)
  }
  const listeners = kernel.host.listeners().map(at => (at.door === 'tcp' ? `http://${at.host}:${at.port}` : at.path))
  log({ level: 'info', msg: 'daemon is ready', pid: process.pid, version: kernel.host.version, listeners })
  const why = await Promise.race([stopped, kernel.failed])
  if (typeof why === 'string') log({ level: 'info', msg: `${why}: the daemon stops` })
  else log({ level: 'error', msg: `the store failed, the daemon stops: ${why.message}` })
  const clean = await close(kernel, log)
  return typeof why === 'string' && clean ? 0 : 1
}

function hasDropIns(home: string): boolean {
  try {
    return readdirSync(join(home, 'extensions')).some(name => !name.startsWith('.'))
  } catch {
    return false
  }
}

function stopSignal(foreground: boolean): Promise<string> {
  return new Promise(resolve => {
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => resolve(name))
    process.on('SIGHUP', () => foreground && resolve('SIGHUP'))
  })
}

async function openLogger(file: LogFile, foreground: boolean): Promise<Log> {
  const { default: pino } = await import('pino')
  if (foreground) process.stdout.on('error', () => {})
  const write = (text: string): void => {
    file.write(text)
    if (foreground) process.stdout.write(text)
  }
  const options = {
    base: null,
    level: 'debug',
    timestamp: false,
    formatters: { level: (level: string) => ({ level }) },
  }
  const logger = pino(options, { write })
  return ({ level, msg, time = Date.now(), ...fields }) => {
    logger[level]({ time: new Date(time).toISOString(), ...(redact(fields) as object) }, String(redact(msg)))
  }
}

/** What plugins throw past everything is logged under the name of who did it; code of the daemon itself ends it. */
function contain(log: Log, blame: Blame): void {
  process.on('unhandledRejection', reason => {
    const { text, stack, owner } = describe(reason)
    log({ level: 'error', msg: `unhandled rejection: ${text}`, owner, stack })
    blame(owner, 'unhandled rejection', reason)
  })
  const exit = process.exit.bind(process)
  process.on('uncaughtException', error => {
    const { text, stack, owner, dropIn } = describe(error)
    log({ level: 'error', msg: `uncaught exception: ${text}`, owner, stack })
    if (!dropIn) exit(exitBroken)
    blame(owner, 'uncaught exception', error)
  })
  process.exit = () => {
    throw new Error('process.exit is not for plugins; the daemon is stopped with svc daemon stop')
  }
}

function describe(thrown: unknown): { text: string; stack: string; owner: string; dropIn: boolean } {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  const stack = error.stack ?? ''
  const extension = /cache\/extensions\/[0-9a-f]+\/([^/]+)\//.exec(stack)?.[1]
  const plugin = /plugins\/([a-z]+)\//.exec(stack)?.[1]
  return { text: error.message, stack, owner: extension ?? plugin ?? 'unknown', dropIn: extension !== undefined }
}

/** A daemon that cannot start says why: in the log, and to the person in front of it. */
function refuse(error: unknown, foreground: boolean, log: Log | undefined): number {
  const { message, code, next, hint, stack } = error as Error & { code?: string; next?: string; hint?: string }
  const help = next ?? hint
  log?.({
    level: 'error',
    msg: `the daemon cannot start: ${message}`,
    code,
    next: help,
    ...(code === undefined && { stack }),
  })
  if (foreground || log === undefined) process.stderr.write(`error: ${message}\n${help ? `  next: ${help}\n` : ''}`)
  return code === 'daemon_already_running' ? 5 : 1
}

async function close(kernel: Kernel, log: Log): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => {
    timer = setTimeout(resolve, closeMs, undefined)
  })
  const errors = await Promise.race([kernel.close(), late])
  clearTimeout(timer)
  if (errors === undefined) log({ level: 'error', msg: `the shutdown did not end within ${closeMs / 1000} s` })
  for (const error of errors ?? []) log({ level: 'warn', msg: `shutdown: ${error.message}` })
  if (errors !== undefined) log({ level: 'info', msg: 'daemon stopped' })
  return errors !== undefined
}
