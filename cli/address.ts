import { existsSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { Fault } from '../kernel/contract/errors.js'
import { readRegularFileSync } from '../kernel/kit/read-file.js'
import type { Holder } from '../kernel/lock/holder.js'
import { CliFault } from './fault.js'

export type Env = Readonly<Record<string, string | undefined>>

/** The daemon takes no larger one. */
const MAX_CONFIG_BYTES = 16 * 1024 * 1024

/** Where the daemon of a home is reached. */
export interface Address {
  readonly home: string
  readonly socket: string
  /** Why config.json, which may name another socket, could not be read; a daemon may answer on this one all the same. */
  readonly problem?: Fault
}

/** The home: `SVC_HOME`, else `~/.svc`. Absolute. */
export function homeOfEnv(env: Env): string {
  return resolve(env.SVC_HOME || join(env.HOME || homedir(), '.svc'))
}

/** One that is not there yet is made by the daemon. @throws CliFault `home_not_a_folder` */
export function checkHome(home: string): void {
  let isFolder: boolean | undefined
  try {
    isFolder = statSync(home, { throwIfNoEntry: false })?.isDirectory()
  } catch (error) {
    // A folder that may not be entered is told of by who needs it.
    isFolder = (error as NodeJS.ErrnoException).code === 'ENOTDIR' ? false : undefined
  }
  if (isFolder !== false) return
  const next = 'set SVC_HOME to a folder, or unset it to use ~/.svc'
  throw new CliFault('home_not_a_folder', `the home ${home} is not a folder`, { next })
}

/** The daemon's socket: `SVC_SOCKET`, else `daemon.socket` of config.json, else `daemon.sock` in the home. */
export async function findAddress(env: Env): Promise<Address> {
  const home = homeOfEnv(env)
  if (env.SVC_SOCKET) return { home, socket: resolve(env.SVC_SOCKET) }
  const usual = join(home, 'daemon.sock')
  try {
    const configured = await configuredSocket(join(home, 'config.json'))
    return { home, socket: configured === undefined ? usual : resolve(home, configured) }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { home, socket: usual, problem: error }
  }
}

async function configuredSocket(file: string): Promise<string | undefined> {
  const text = readRegularFileSync(file, { maxBytes: MAX_CONFIG_BYTES })?.toString() ?? ''
  // The parser that knows comments is loaded only when there can be something to find.
  if (!text.includes('"socket"')) return undefined
  const { parse } = await import('jsonc-parser')
  const socket = parse(text, [], { allowTrailingComma: true })?.daemon?.socket
  return typeof socket === 'string' && socket !== '' ? socket : undefined
}

/** Who holds the lock of a home, as the system tells; undefined when no daemon runs. */
export async function daemonHolder(home: string): Promise<Holder | undefined> {
  if (!existsSync(home)) return undefined
  const { lockHolder } = await import('../kernel/lock/holder.js')
  return lockHolder(home)
}

/** Pid of the daemon that holds a home; undefined when none runs, or one in another container, which cannot be signalled. */
export async function runningDaemon(home: string): Promise<number | undefined> {
  const holder = await daemonHolder(home)
  return holder?.visible ? holder.pid : undefined
}

/** The fault for a socket that nobody answers on; it says so when a daemon of this home is alive all the same. */
export async function unreachableFault({ home, socket, problem }: Address, cause: unknown): Promise<CliFault> {
  if (problem) return new CliFault(problem.code, problem.message, { next: problem.next, cause })
  const code = (cause as NodeJS.ErrnoException).code
  if (code === 'EACCES' || code === 'EPERM') {
    const next = 'run svc as the user that started the daemon'
    return new CliFault('socket_forbidden', `the socket ${socket} belongs to another user`, { exit: 6, next, cause })
  }
  const holder = await daemonHolder(home).catch(() => undefined)
  if (holder?.visible === false) return elsewhereFault(home, holder, cause)
  if (holder) {
    const text = `the daemon of ${home} (pid ${holder.pid}) does not answer on ${socket}; it may be starting or stopping`
    return new CliFault('daemon_unreachable', text, { exit: 3, next: 'svc daemon stop', cause })
  }
  const text = `no daemon is running at ${home}; start one: svc daemon start`
  return new CliFault('no_daemon', text, { exit: 3, next: 'svc daemon start', cause })
}

/** The fault for a daemon whose process cannot be signalled from here. */
export async function elsewhereFault(home: string, holder: Holder, cause?: unknown): Promise<CliFault> {
  const { holderText } = await import('../kernel/lock/holder.js')
  const text = `the daemon of ${home} runs with ${holderText(holder)}`
  return new CliFault('daemon_elsewhere', text, {
    exit: 3,
    next: 'use the command line in the container in which it was started',
    cause,
  })
}

/** The fault for a daemon that takes connections and answers nothing for so many milliseconds. */
export async function hangingFault({ home, socket }: Address, ms: number): Promise<CliFault> {
  const pid = await runningDaemon(home).catch(() => undefined)
  const who = pid === undefined ? 'the daemon' : `the daemon (pid ${pid})`
  const text = `${who} takes connections on ${socket} and has not answered for ${Math.round(ms / 1000)} s; it hangs`
  return new CliFault('daemon_unresponsive', text, { exit: 3, next: 'svc daemon stop' })
}

/** The fault for an exchange that broke off: the daemon has ended, or it lives and only this connection was lost. */
export async function brokenFault({ home, socket }: Address, cause: unknown): Promise<CliFault> {
  if (await takesConnections(socket)) {
    return new CliFault('connection', `the connection to the daemon failed: ${(cause as Error).message}`, { cause })
  }
  const text = `the daemon of ${home} ended before it answered; what was asked of it may have been done or not`
  return new CliFault('daemon_ended', text, { exit: 3, next: 'svc daemon start', cause })
}

async function takesConnections(socket: string): Promise<boolean> {
  const { connect } = await import('node:net')
  return new Promise(resolve => {
    const connection = connect(socket)
    const answer = (taken: boolean) => {
      connection.destroy()
      resolve(taken)
    }
    connection.once('connect', () => answer(true)).once('error', () => answer(false))
  })
}
