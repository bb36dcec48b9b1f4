import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Fault, messageOf } from '../../kernel/contract/errors.js'
import type { Kernel } from '../../kernel/index.js'
import { clip } from '../../kernel/kit/text.js'
import { readDotEnv } from '../../plugins/desk/settings/dot-env.js'
import { WITHHELD } from '../../plugins/platform/processes/withheld-variables.js'
import type { Env } from '../address.js'
import { type Blame, containFailures } from './containment.js'
import { type Service, serviceExits } from './daemon-arguments.js'
import { type DaemonLog, openDaemonLog } from './daemon-log.js'
import { isStopAsked } from './home-notes.js'
import { LogFile, logPath } from './log-file.js'
import type { ManagedStart } from './manager/manager.js'
import { forgetEnds, recentCulprits, whyNoMore, whySafeMode } from './restart-limit.js'
import { describeSuspect, forgetSuspect, readSuspect } from './suspect.js'
import type { Blocked, Watchdog } from './watchdog.js'

export { knownMigrations } from '../backup/known-migrations.js'
export { checkConfig, configChecker } from '../setup/check-config.js'

/** A clean shutdown has deadlines of ten seconds in all; after this time the process exits anyway. */
const closeMs = 14_000
/** The predecessor is ended by a signal; only the disk can delay it. */
const successionMs = 15_000
/** Without drop-ins, the thread of the watchdog starts after the first requests, with which it would compete for processors. */
const watchAfterMs = 500
const MIB = 1024 * 1024
const DAY_MS = 24 * 60 * 60_000

export interface DaemonOptions {
  /** Folder of the build: `bin/` in it is added to the path of agents, `../examples` has the examples of the package. */
  readonly root: string
  readonly home: string
  readonly env: Env
  /** Also log to standard output. */
  readonly foreground: boolean
  /** Node arguments with which the watchdog of a detached daemon starts the next one. */
  readonly successor?: readonly string[]
  /** The daemon succeeds one that is being ended, and waits for its lock. */
  readonly succeeds?: boolean
  /** No extension is to run. */
  readonly safeMode?: boolean
  /** See `newCatalog` of the kernel. */
  readonly newCatalog?: boolean
  /** The service manager that started it and starts its successor, by the exit codes of `serviceExits`. */
  readonly service?: Service | undefined
  /** The notification interface of the manager, if it has one. */
  readonly managed?: ManagedStart | undefined
  /** Called once, when it serves. */
  readonly onReady?: () => void
}

/** Start errors that may not recur at the next start. */
const PASSING = ['disk_full', 'http_port_in_use', 'http_listen_failed']

/** A successor must not start after a person has stopped its predecessor. */
class StopAsked extends Error {}

/** Runs the daemon: a kernel with the plugins of the package, its signals and its log. Returns the exit code at its end. */
export async function runDaemon(daemonOptions: DaemonOptions): Promise<number> {
  // Child processes without an explicit environment inherit the one of this process.
  const options = { ...daemonOptions, env: { ...daemonOptions.env } }
  for (const name of WITHHELD) delete process.env[name]
  const { home, foreground } = options
  // The CLI's own handler would cut the shutdown short.
  process.removeAllListeners('SIGINT')
  const service = options.managed?.manager
  let reload: () => unknown = () => {}
  const { stopped, stop, again } = stopSignal(foreground, () => reload())
  const file = new LogFile(logPath(home))
  let log: DaemonLog | undefined
  let kernel: Kernel
  let code: Awaited<Code>
  try {
    const loading = loadCode(options, () => stop(RESTARTS))
    log = await openDaemonLog(file, foreground)
    const opened = log
    options.managed?.logTo(text => opened({ level: 'warn', msg: text }))
    refuseUnstable(options)
    kernel = await startKernel(options, log, loading, stopped)
    code = await loading
    rotateLog(file, kernel, code.settings)
  } catch (error) {
    if (!(error instanceof StopAsked)) {
      // Without a log, a detached start reads standard error.
      const code = refuse(error, foreground || options.service !== undefined || !file.isOpen, log)
      return options.service ? serviceExit(options.service, error, code) : code
    }
    log?.({ level: 'info', msg: 'not started after the daemon before: svc daemon stop was asked for' })
    return 0
  }
  const listeners = kernel.host
    .listeners()
    .map(at => (at.door === 'tcp' ? `http${at.tls ? 's' : ''}://${at.host}:${at.port}` : at.path))
  log({ level: 'info', msg: 'daemon is ready', pid: process.pid, version: kernel.host.version, listeners })
  code.relaunching.serves()
  reload = () => service?.reloading(() => reloadConfig(kernel, log as DaemonLog))
  service?.ready(process.pid)
  if (options.managed) warnUnserved(kernel, options.managed, log)
  options.onReady?.()
  const { safeMode } = kernel.host
  if (safeMode !== undefined) log({ level: 'warn', msg: `safe mode, no extensions run: ${safeMode}` })
  const why = await Promise.race([stopped, kernel.failed])
  if (typeof why === 'string') log({ level: 'info', msg: `${why}: the daemon stops` })
  else log({ level: 'error', msg: `the store failed, the daemon stops: ${why.message}` })
  service?.stopping(typeof why === 'string' ? `stops: ${why}` : 'the store failed')
  if (service && why === 'SIGTERM' && !isStopAsked(home)) {
    const { waitForTurns } = await import('./manager/wait-for-turns.js')
    await waitForTurns(kernel, service, kernel.setting(code.stopWait) * 1000, again, log)
  }
  const clean = await close(kernel, log)
  await code.relaunching.handOver()
  if (typeof why === 'string') forgetEnds(home)
  if (options.service && why === RESTARTS) return serviceExits.restart
  return typeof why === 'string' && clean ? 0 : 1
}

/** Stop reason of a restart. */
const RESTARTS = 'a restart'

/** @throws Fault `daemon_unstable`; the next start, which only a person can request then, resets the limit. */
function refuseUnstable({ service, home }: DaemonOptions): void {
  const why = service ? whyNoMore(home) : undefined
  if (why === undefined) return
  forgetEnds(home)
  throw new Fault('daemon_unstable', 500, `${why}; it is not started again`, {
    next: 'svc daemon start --safe-mode',
  })
}

/** The exit code of a failed start; the service manager decides by it whether to try again. */
function serviceExit(service: Service, error: unknown, code: number): number {
  const isHopeless = error instanceof Fault && !PASSING.includes(error.code)
  const isHeld = code === serviceExits.alreadyRunning
  // launchd restarts after any failure, so these cases must exit with 0.
  if (service === 'launchd' && (isHopeless || isHeld)) return 0
  return isHopeless && !isHeld ? serviceExits.hopeless : code
}

async function reloadConfig(kernel: Kernel, log: DaemonLog): Promise<void> {
  const { status, body } = await kernel.inject({ method: 'POST', url: '/api/settings/reload' })
  if (status >= 400) log({ level: 'warn', msg: `config.json was not loaded again: ${clip(body, 500)}` })
}

/** Warns about an inherited TCP socket without a listener, on which clients would wait for ever. */
function warnUnserved(kernel: Kernel, { manager }: ManagedStart, log: DaemonLog): void {
  const tcp = manager.inherited?.tcp
  if (!tcp || kernel.host.listeners().some(({ door }) => door === 'tcp')) return
  const what = `the service manager listens on ${tcp.host}:${tcp.port} for this daemon, but the daemon does not serve TCP`
  log({ level: 'error', msg: `${what}: remove its ListenStream= or set http.enabled` })
}

/** The code of the daemon, loaded while the log is opened. */
function loadCode({ env, home, successor, service }: DaemonOptions, stop: () => void) {
  const code = Promise.all([
    import('../../kernel/index.js'),
    import('../../plugins/index.js'),
    import('./drop-in-commands.js'),
    import('./relaunch.js'),
    import('../../plugins/platform/processes/inspect.js'),
    import('../../plugins/desk/daemon/api.js'),
    import('../../plugins/desk/daemon/log-settings.js'),
    import('../../plugins/desk/daemon/service-settings.js'),
  ]).then(
    ([
      { createKernel },
      { inTree, critical, formerNames, quiesceOrder, replacements, processesWith },
      { dropInCommands },
      { Relaunching, relaunchPlugin },
      { inspectProcess },
      { HELD_AT_START, HOLD_FILE },
      { LogSettings },
      { ServiceSettings },
    ]) => {
      const processes = processesWith({ cgroup: env.SVC_CGROUP !== 'off' })
      const own = inTree.map(plugin => (plugin.name === processes.name ? processes : plugin))
      const relaunching = new Relaunching({ home, successor, service: service !== undefined, stop })
      const plugins = [...own, dropInCommands, relaunchPlugin(relaunching)]
      return {
        createKernel,
        holdFile: HOLD_FILE,
        heldAtStart: HELD_AT_START,
        settings: LogSettings,
        stopWait: ServiceSettings.stopWait,
        plugins,
        relaunching,
        critical: critical as readonly string[],
        formerNames,
        quiesceOrder,
        replacements,
        startTime: inspectProcess(process.pid, process.platform)?.startTime,
      }
    },
  )
  // The caller that awaits it reports the error.
  code.catch(() => {})
  return code
}

type Code = ReturnType<typeof loadCode>

/** The watched and contained kernel, without the plugin that blocked the previous daemon. */
async function startKernel(
  options: DaemonOptions,
  log: DaemonLog,
  code: Code,
  stopped: Promise<string>,
): Promise<Kernel> {
  const { root, home, env, successor } = options
  let kernel: Kernel | undefined
  const blame: Blame = (owner, where, error) => kernel?.host.report({ owner, hook: where, error })
  containFailures(log, blame)
  const blocked: Blocked = ({ owner, where }, seconds) => {
    log({ level: 'warn', msg: `${owner} blocked the event loop of the daemon for ${seconds} s in ${where}`, owner })
    blame(owner, 'event loop', new Error(`it blocked the event loop in ${where}`))
  }
  let watchdog: Watchdog | undefined
  let isStopping = false
  void stopped.then(() => {
    isStopping = true
    watchdog?.stopping()
  })
  const watch = async () => {
    const { startWatchdog } = await import('./watchdog.js')
    watchdog = startWatchdog(root, { home, log: logPath(home), ...(successor && { successor }) }, blocked, env)
    if (isStopping) watchdog.stopping()
  }
  // Drop-in code may block the thread as soon as it is loaded; without any, the start need not wait for the watchdog.
  const early = hasDropIns(home)
  if (early) await watch()
  const suspect = readSuspect(home)
  const leftOut = new Map(suspect && [[suspect.owner, describeSuspect(suspect)]])
  // Recent culprits are included, because two that block in turns would otherwise never be disabled together.
  for (const name of options.succeeds || options.service ? recentCulprits(home) : []) {
    if (!leftOut.has(name))
      leftOut.set(
        name,
        'it blocked the event loop of the daemon a few minutes ago; it does not run until the next start',
      )
  }
  const { createKernel, plugins, critical, formerNames, quiesceOrder, replacements, startTime, holdFile, heldAtStart } =
    await code
  // Extensions act on their own, and the original of a copied home may still run them.
  const held = existsSync(join(home, holdFile)) ? heldAtStart : undefined
  const safeMode = options.safeMode ? 'it was started with --safe-mode' : (whySafeMode(home) ?? held)
  const begin = async (locked: () => Promise<void>) =>
    createKernel({
      home,
      plugins,
      critical,
      formerNames,
      quiesceOrder,
      replacements,
      startTime,
      listen: ['socket', 'tcp'],
      ...(options.managed?.manager.inherited && { inherited: options.managed.manager.inherited }),
      env: {
        ...(await ownVariables(home, log)),
        ...env,
        SVC_BIN_DIR: join(root, 'bin'),
        SVC_SHARE_DIR: join(root, '..', 'examples'),
      },
      log: log.port,
      ...(options.newCatalog && { newCatalog: true }),
      ...(safeMode !== undefined && { safeMode }),
      ...(options.succeeds && { waitForLockMs: successionMs }),
      locked: () => {
        // A stop request is written before its sender checks the lock, and read here after taking the lock, so one of the two sees
        // the other.
        if (options.succeeds && isStopAsked(home)) throw new StopAsked()
        return locked()
      },
      leftOut: [...leftOut].flatMap(([name, why]) => (critical.includes(name) ? [] : { name, why })),
    })
  const { upgradeOf } = await import('../backup/upgrade.js')
  kernel = await upgradeOf(home, log, begin)
  log.redactBy(kernel.redact)
  if (suspect) {
    forgetSuspect(home)
    blame(suspect.owner, 'watchdog', new Error(describeSuspect(suspect)))
  }
  const watchUnlessStopping = () => {
    if (!isStopping) void watch()
  }
  if (!early) setTimeout(watchUnlessStopping, watchAfterMs).unref()
  return kernel
}

/** Variables of `.env` in the home. The daemon starts without an unreadable file; doctor reports the reason. */
async function ownVariables(home: string, log: DaemonLog): Promise<Readonly<Record<string, string>>> {
  try {
    return await readDotEnv(home)
  } catch (error) {
    log({ level: 'error', msg: `variables of .env are not set: ${messageOf(error)}` })
    return {}
  }
}

/** Enables rotation once a kernel exists: it holds the lock of the home, so no other daemon writes this log. */
function rotateLog(file: LogFile, kernel: Kernel, settings: Awaited<Code>['settings']): void {
  file.rotate({
    maxBytes: kernel.setting(settings.megabytes) * MIB,
    backups: kernel.setting(settings.backups),
    maxAgeMs: kernel.setting(settings.days) * DAY_MS,
  })
}

function hasDropIns(home: string): boolean {
  try {
    return readdirSync(join(home, 'extensions')).some(name => !name.startsWith('.'))
  } catch {
    return false
  }
}

/** The stop of a daemon. */
interface Stop {
  /** Resolves with the reason: a signal, or the argument of `stop`. */
  readonly stopped: Promise<string>
  readonly stop: (why: string) => void
  /** Aborts with the second request to stop. */
  readonly again: AbortSignal
}

function stopSignal(foreground: boolean, reload: () => unknown): Stop {
  const again = new AbortController()
  let stop: (why: string) => void = () => {}
  const stopped = new Promise<string>(resolve => {
    stop = resolve
  })
  let times = 0
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.on(name, () => {
      if (++times > 1) again.abort()
      stop(name)
    })
  }
  process.on('SIGHUP', () => (foreground ? stop('SIGHUP') : reload()))
  return { stopped, stop, again: again.signal }
}

/** Reports a failed start in the log, and to the person at the terminal. */
function refuse(error: unknown, aloud: boolean, log: DaemonLog | undefined): number {
  const { message, code, next, hint, stack } = error as Error & { code?: string; next?: string; hint?: string }
  const help = next ?? hint
  log?.({
    level: 'error',
    msg: `the daemon cannot start: ${message}`,
    code,
    next: help,
    ...(code === undefined && { stack }),
  })
  if (aloud || log === undefined) process.stderr.write(`error: ${message}\n${help ? `  next: ${help}\n` : ''}`)
  return code === 'daemon_already_running' ? 5 : 1
}

async function close(kernel: Kernel, log: DaemonLog): Promise<boolean> {
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
