import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, fstatSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '../../kernel/contract/errors.js'
import { checkOwner } from '../../kernel/home.js'
import { daemonHolder, elsewhereFault, runningDaemon } from '../address.js'
import { CliFault, exitCodes } from '../fault.js'
import type { LocalContext } from '../local.js'
import { pick } from '../show/cells.js'
import { NODE_FLAGS, SAFE_MODE } from './daemon-arguments.js'
import { forgetStop } from './home-notes.js'
import { lastReason, logPath, logTail, openLog } from './log-file.js'

/** Poll interval of a detached start, its time limit, and the timeout of one request. */
const pollMs = 25
const readyMs = 15_000
const askMs = 1000

interface Identity {
  readonly daemon: {
    readonly pid: number
    readonly http_host: string
    readonly http_port: number
    readonly http_off?: string
    readonly http_tls?: boolean
    readonly version: string
  }
}

/** The result of a start: a new daemon, or one that ran already. */
export interface Started {
  readonly status: 'started' | 'already_running'
  readonly identity: Identity
}

/** `daemon start`: detached, or in this process. A daemon that runs already is no failure. */
export async function startDaemon(context: LocalContext): Promise<number | undefined> {
  const safeMode = context.options['safe-mode'] === true
  const newCatalog = context.options['new-catalog'] === true
  if (context.options.foreground === true) {
    const { io, home } = context
    refuseForeign(home)
    forgetStop(home)
    // The daemon ends by itself: a closed terminal or pipe must not end the process during its shutdown.
    context.onInterrupt(() => {}, { anyEnd: true })
    const { loadDaemon } = await import('./load-daemon.js')
    const runDaemon = await loadDaemon(io.root, home)
    return runDaemon({ root: io.root, home, env: io.env, foreground: true, safeMode, newCatalog })
  }
  return report(context, await bringUp(context, { safeMode, newCatalog }))
}

/** Starts a detached daemon unless one runs, and waits until it is ready. */
export async function bringUp(
  context: Pick<LocalContext, 'io' | 'home' | 'client' | 'signal' | 'progress'>,
  { safeMode = false, newCatalog = false } = {},
): Promise<Started> {
  const { io, home } = context
  refuseForeign(home)
  const holder = await daemonHolder(home)
  if (holder) {
    const other = holder.pid
    const holds = async () => (await daemonHolder(home))?.pid === other
    const identity = await waitReady(context, async () => !holder.visible || !(await holds()))
    if (identity && safeMode) {
      const text = `a daemon already runs at ${home} (pid ${other}), with its extensions unless svc status says otherwise`
      throw new CliFault('daemon_already_running', text, {
        exit: 5,
        next: 'svc daemon stop && svc daemon start --safe-mode',
      })
    }
    if (identity) return { status: 'already_running', identity }
    if (!holder.visible) throw await elsewhereFault(home, holder)
    if (await holds()) {
      const text = `a daemon already runs at ${home} (pid ${other}) but does not answer`
      throw new CliFault('daemon_unreachable', text, { exit: 5, next: 'svc daemon stop' })
    }
  }
  if (!safeMode && !newCatalog) {
    const identity = await startService(context)
    if (identity) return { status: 'started', identity }
  }
  const log = logPath(home)
  const file = openLogFile(log)
  const begin = file === undefined ? 0 : fstatSync(file).size
  // Cleared before the start: earlier stop requests no longer apply.
  forgetStop(home)
  // Receives the output of a daemon without a log.
  const said = file ?? openUnnamed()
  const child = spawn(
    process.execPath,
    [
      ...NODE_FLAGS,
      ...process.execArgv,
      join(io.root, daemonFile()),
      ...(safeMode ? [SAFE_MODE] : []),
      ...(newCatalog ? ['--new-catalog'] : []),
    ],
    {
      // A missing home is created by the daemon.
      cwd: existsSync(home) ? home : io.root,
      detached: true,
      env: io.env.SVC_HOME ? { ...io.env, SVC_HOME: home } : io.env,
      stdio: ['ignore', said ?? 'ignore', said ?? 'ignore'],
    },
  )
  const ended = endOf(child)
  // A concurrent start may have won: then this child ends, and the other daemon is awaited.
  const identity = await waitReady(context, async () => ended.happened && (await runningDaemon(home)) === undefined)
  child.unref()
  if (identity) return { status: identity.daemon.pid === child.pid ? 'started' : 'already_running', identity }
  const reason = ended.happened && file !== undefined ? lastReason(log, begin) : undefined
  if (reason)
    throw new CliFault('daemon_start_failed', reason.msg, { details: { reason: reason.code, log }, next: reason.next })
  const tail = file === undefined ? linesOf(said) : logTail(log, begin, 8)
  const what = ended.happened
    ? `the daemon did not start: ${ended.text}`
    : `the daemon (pid ${child.pid}) is not ready after ${readyMs / 1000} s; it continues to start`
  throw new CliFault('daemon_start_failed', [what, ...tail.map(line => `  ${line}`)].join('\n'), {
    details: { log },
    next: !ended.happened ? 'svc status' : file === undefined ? undefined : `less ${log}`,
  })
}

/** Starts the installed service of this home; on a failure, a daemon started otherwise reports the problem. */
async function startService(
  context: Pick<LocalContext, 'io' | 'home' | 'client' | 'signal' | 'progress'>,
): Promise<Identity | undefined> {
  const { startByManager } = await import('../service/start-by-manager.js')
  const starts = context.progress.during('waiting for the service manager', () => startByManager(context))
  return (await starts) ? waitReady(context, () => false) : undefined
}

/** The source file under a loader, the bundled file in a build. */
function daemonFile(): string {
  return import.meta.url.endsWith('.ts') ? 'daemon.ts' : 'daemon.cjs'
}

/** Checked before the log is created: the log of a foreign home is foreign too. */
function refuseForeign(home: string): void {
  try {
    checkOwner(home)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new CliFault(error.code, error.message, { exit: exitCodes.refused, next: error.next })
  }
}

/** A private temporary file that disappears with its last descriptor; undefined without space for it. */
function openUnnamed(): number | undefined {
  try {
    const folder = mkdtempSync(join(tmpdir(), 'svc-start-'))
    try {
      return openSync(join(folder, 'output'), 'wx+', 0o600)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  } catch {
    return undefined
  }
}

function linesOf(file: number | undefined): string[] {
  if (file === undefined) return []
  const buffer = Buffer.alloc(8 * 1024)
  const text = buffer.toString('utf8', 0, readSync(file, buffer, 0, buffer.length, 0))
  return text.split('\n').filter(line => line.trim() !== '')
}

/** Undefined for an unwritable log: the start continues, and doctor reports the problem. */
function openLogFile(path: string): number | undefined {
  try {
    return openLog(path)
  } catch {
    return undefined
  }
}

function endOf(child: ChildProcess): { happened: boolean; text: string } {
  const ended = { happened: false, text: '' }
  child.once('error', error => Object.assign(ended, { happened: true, text: error.message }))
  child.once('exit', (code, signal) => {
    Object.assign(ended, { happened: true, text: signal ? `ended by ${signal}` : `it ended with code ${code}` })
  })
  return ended
}

/** Polls the identity until it is answered, `over` holds, or the time is up. */
function waitReady(
  { client, signal, progress }: Pick<LocalContext, 'client' | 'signal' | 'progress'>,
  over: () => boolean | Promise<boolean>,
): Promise<Identity | undefined> {
  const left = 'the daemon goes on to start: svc status, or svc daemon stop'
  return progress.during('waiting for the daemon to be ready', () => untilReady(client, signal, over), left)
}

async function untilReady(
  client: LocalContext['client'],
  signal: AbortSignal,
  over: () => boolean | Promise<boolean>,
): Promise<Identity | undefined> {
  const until = Date.now() + readyMs
  for (;;) {
    try {
      const ask = AbortSignal.any([signal, AbortSignal.timeout(askMs)])
      const identity = await client.request('GET', '/api/status/identity', undefined, { signal: ask })
      if (typeof pick(identity, 'daemon.pid') === 'number') return identity as Identity
    } catch (error) {
      if (signal.aborted) throw error
    }
    if (Date.now() > until || (await over())) return undefined
    await sleep(pollMs, undefined, { signal })
  }
}

function report({ out, home }: LocalContext, { status, identity }: Started): undefined {
  const { pid } = identity.daemon
  const { where, ...served } = shownAddress(identity)
  if (out.json) out.value({ status, pid, ...served, home, log: logPath(home) })
  else out.line(`${status === 'started' ? 'daemon started' : 'already running'} (pid ${pid}), ${where}`)
  return undefined
}

/** The TCP address of a daemon, or the reason for its absence: for people in `where`, for programs in the other member. */
export function shownAddress({ daemon }: Identity): { where: string; http?: string; http_off?: string } {
  const { http_host, http_port, http_off = '', http_tls } = daemon
  if (http_port === 0) return { where: `TCP is off: ${http_off || 'it does not listen'}`, http_off }
  const http = `http${http_tls ? 's' : ''}://${http_host}:${http_port}`
  return { where: http, http }
}
