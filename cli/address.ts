import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Fault } from '../kernel/contract/errors.js'
import { readRegularFileSync } from '../kernel/kit/read-file.js'
import type { Holder } from '../kernel/lock/holder.js'
import { isInside } from '../plugins/desk/workspaces/files.js'
import { CliFault, exitCodes } from './fault.js'

export type Env = Readonly<Record<string, string | undefined>>

/** The daemon refuses a larger configuration. */
const MAX_CONFIG_BYTES = 16 * 1024 * 1024

/** The address of a home's daemon. */
export interface Address {
  readonly home: string
  readonly socket: string
  /** Error in config.json, which may name another socket; a daemon may still answer on this one. */
  readonly problem?: Fault
}

/** The home: `SVC_HOME`, else `~/.svc`. Absolute. */
export function homeOfEnv(env: Env): string {
  // Nearly every call has HOME, and completion does not wait for a module of Node that it does not need.
  const userHome = () => env.HOME || process.getBuiltinModule('node:os').homedir()
  return resolve(env.SVC_HOME || join(userHome(), '.svc'))
}

/** A missing home is created by the daemon. @throws CliFault `home_not_a_folder` */
export function checkHome(home: string): void {
  let isFolder: boolean | undefined
  try {
    isFolder = statSync(home, { throwIfNoEntry: false })?.isDirectory()
  } catch (error) {
    // A missing permission on the folder is reported by the code that needs the folder.
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
  // The parser that supports comments is loaded only when there may be a socket setting.
  if (!text.includes('"socket"')) return undefined
  const { parse } = await import('jsonc-parser')
  const socket = parse(text, [], { allowTrailingComma: true })?.daemon?.socket
  return typeof socket === 'string' && socket !== '' ? socket : undefined
}

/** The process that holds the lock of a home; undefined when no daemon runs. */
export async function daemonHolder(home: string): Promise<Holder | undefined> {
  if (!existsSync(home)) return undefined
  const { lockHolder } = await import('../kernel/lock/holder.js')
  return lockHolder(home)
}

/** PID of the daemon that holds a home; undefined when none runs, or when it runs in another container and cannot be signaled. */
export async function runningDaemon(home: string): Promise<number | undefined> {
  const holder = await daemonHolder(home)
  return holder?.visible ? holder.pid : undefined
}

/** The error for a socket without an answer; it says when a daemon of this home is still alive. */
export async function unreachableFault({ home, socket, problem }: Address, cause: unknown): Promise<CliFault> {
  if (isDenied(cause)) {
    const next = 'run svc as the user that started the daemon'
    const text = `the socket ${socket} is closed to this user`
    return foreignFault(home, cause) ?? new CliFault('socket_forbidden', text, { exit: exitCodes.refused, next, cause })
  }
  if (problem) return new CliFault(problem.code, problem.message, { next: problem.next, cause })
  const holder = await daemonHolder(home).catch(() => undefined)
  if (holder?.visible === false) return elsewhereFault(home, holder, cause)
  if (holder) {
    const text = `the daemon of ${home} (pid ${holder.pid}) does not answer on ${socket}; it may be starting or stopping`
    return new CliFault('daemon_unreachable', text, { exit: 3, next: 'svc daemon stop', cause })
  }
  if (isReadOnly(home)) {
    const text = `no daemon is running at ${home}, and its file system is read-only`
    return new CliFault('no_daemon', text, { exit: 3, next: 'mount it for writing, or choose another SVC_HOME', cause })
  }
  const text = `no daemon is running at ${home}; start one: svc daemon start`
  return new CliFault('no_daemon', text, { exit: 3, next: 'svc daemon start', cause })
}

const isDenied = (error: unknown): boolean => ['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')

/** The error for the home of another user, or one below a closed folder; undefined for one's own. */
function foreignFault(home: string, cause: unknown): CliFault | undefined {
  let owner: number | undefined
  try {
    owner = statSync(home).uid
  } catch (error) {
    if (isDenied(error))
      return unwritable(`the home ${home} cannot be reached`, 'change the permissions above it', cause)
  }
  if (owner === undefined || owner === process.geteuid?.()) return undefined
  const next = `run svc as that user, \`sudo -u '#${owner}' svc\`, or choose another home with SVC_HOME`
  const text = `the home ${home} belongs to another user (uid ${owner})`
  return new CliFault('home_owner_mismatch', text, { exit: exitCodes.refused, next, cause })
}

const unwritable = (text: string, next: string, cause: unknown) =>
  new CliFault('home_unwritable', text, { next: `${next}, or choose another SVC_HOME`, cause })

/** The error for a file of the home that the system does not let this process use; undefined for any other error. */
export function homeFault(home: string, cause: unknown): CliFault | undefined {
  const { code, path = home, message, dest } = Object(cause) as NodeJS.ErrnoException & { readonly dest?: string }
  const file = dest ?? path
  if (code === 'EROFS')
    return unwritable(`${path} cannot be written: its file system is read-only`, 'mount it for writing', cause)
  if (!isInside(path, home)) return undefined
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    const more = { exit: exitCodes.unavailable, next: 'free some space, and repeat the command', cause }
    return new CliFault('disk_full', `the disk of ${home} is full: ${message}`, more)
  }
  if (code === 'EBUSY')
    return unwritable(`${file} cannot be replaced: ${message}`, 'mount its folder instead of the file', cause)
  if (!isDenied(cause)) return undefined
  return foreignFault(home, cause) ?? unwritable(`${file} cannot be used: ${message}`, 'change its permissions', cause)
}

/** Whether no daemon can start in a home, because its file system is read-only. */
function isReadOnly(home: string): boolean {
  try {
    accessSync(home, constants.W_OK)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS'
  }
}

/** The error for a daemon whose process cannot be signaled from here. */
export async function elsewhereFault(home: string, holder: Holder, cause?: unknown): Promise<CliFault> {
  const { holderText } = await import('../kernel/lock/holder.js')
  const text = `the daemon of ${home} runs with ${holderText(holder)}`
  return new CliFault('daemon_elsewhere', text, {
    exit: 3,
    next: 'use the command line in the container in which it was started',
    cause,
  })
}

/** The error for a daemon that accepts connections but does not answer for this number of milliseconds. */
export async function hangingFault({ home, socket }: Address, ms: number): Promise<CliFault> {
  const pid = await runningDaemon(home).catch(() => undefined)
  const who = pid === undefined ? 'the daemon' : `the daemon (pid ${pid})`
  const text = `${who} takes connections on ${socket} and has not answered for ${Math.round(ms / 1000)} s; it is unresponsive`
  return new CliFault('daemon_unresponsive', text, { exit: 3, next: 'svc daemon stop' })
}

/** The error for a broken connection: either the daemon has ended, or only this connection was lost. */
export async function brokenFault({ home, socket }: Address, cause: unknown): Promise<CliFault> {
  if (await takesConnections(socket)) {
    const text = `the connection to the daemon failed: ${(cause as Error).message}; the request may or may not have taken effect`
    return new CliFault('connection', text, { next: 'svc status', cause })
  }
  const text = `the daemon of ${home} ended before it answered; the request may or may not have taken effect`
  return new CliFault('daemon_ended', text, { exit: 3, next: 'svc daemon start', cause })
}

const DYING_MS = 100

async function takesConnections(socket: string): Promise<boolean> {
  const { connect } = await import('node:net')
  return new Promise(resolve => {
    const connection = connect(socket)
    const answer = (taken: boolean) => {
      connection.destroy()
      resolve(taken)
    }
    // The socket of a killed daemon still takes connections for a moment, and then closes them.
    connection.once('connect', () => setTimeout(answer, DYING_MS, true)).resume()
    connection.once('error', () => answer(false)).once('close', () => answer(false))
  })
}
