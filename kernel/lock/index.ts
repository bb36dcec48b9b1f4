import { constants, statSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { type Clock, iso } from '../contract/basics.js'
import { Fault } from '../contract/errors.js'
import type { Room } from '../contract/storage.js'
import { systemIds } from '../ids.js'
import { isFull } from '../store/room.js'
import { lockFile } from './file-lock.js'
import { type Holder, holderOfHeld, holderText } from './holder.js'
import {
  attempt,
  lockFailed,
  lockFileBytes,
  lockPath,
  readLock,
  readNonce,
  readOrCreateNonce,
  recordOf,
  stampOf,
  writeRecord,
} from './record.js'

export { type Holder, holderText, lockHolder } from './holder.js'
export { type LockRecord, readLock } from './record.js'

/** The right to be the one daemon of a home. It goes with the process, however that ends. */
export interface HomeLock {
  /** Who holds it: this process. */
  readonly pid: number
  /** Why daemons in other containers or on other machines are not kept out; absent where files can be locked. */
  readonly weakness?: string
  /**
   * Costs one look at a file, and is asked before anything is acknowledged: where locks do not reach, the last daemon to write
   * its name into `daemon.lock` is the owner.
   * @throws Fault `lock_lost` when that is another one
   */
  check(): void
  /** The same, as an answer. */
  isOwner(): boolean
  release(): Promise<void>
}

/** How long a holder that has just won may take to write who it is. */
const namingMs = 2000
const pauseMs = 20
/** Size of `sun_path`. Some versions of Node fill an abstract name up with zeros and some do not; a full one is one name. */
const socketNameLength = 108
const platforms: readonly NodeJS.Platform[] = ['linux', 'darwin', 'freebsd', 'openbsd']

/**
 * Makes this process the one daemon of `home`, an existing folder. The lock is on the folder itself, which nobody can remove or
 * replace beneath a daemon, and which a copy does not share; it holds over all containers of one system.
 * @throws Fault `daemon_already_running` when another one is and does not end within `waitMs` (0), `lock_failed`,
 * `lock_file_damaged`, `lock_unsupported`
 */
export async function acquireLock(
  home: string,
  clock: Clock,
  options: { waitMs?: number; room?: Room; startTime?: string | undefined } = {},
): Promise<HomeLock> {
  if (!platforms.includes(process.platform))
    throw new Fault('lock_unsupported', 500, `no way to lock a home on ${process.platform}`, {
      next: 'use Linux or macOS',
    })
  const begun = clock.monotonic()
  for (;;) {
    const claimed = await claim(home).catch(error => {
      // Of a new home: its lock file is made of what is kept for a full disk.
      if (!isFull(error.cause) || !options.room?.spend(lockFileBytes)) throw error
      return undefined
    })
    if (claimed !== undefined) return held(home, clock, claimed, options.startTime)
    const holder = holderOfHeld(home)
    // One that has only just won has not said yet who it is, and the record may be that of the one before.
    const patience = holder?.visible ? 0 : namingMs
    if (clock.monotonic() - begun >= (options.waitMs ?? 0) + patience) throw alreadyRunning(holder)
    await clock.sleep(pauseMs)
  }
}

/** @param holder undefined where the system tells nothing of it */
export function alreadyRunning(holder: Holder | undefined): Fault {
  const who = holder ? `with ${holderText(holder)}` : 'as a process that cannot be seen from here'
  const here = 'stop it with `svc daemon stop`, or choose another home with SVC_HOME'
  const there = 'stop it where it was started (`svc daemon stop` there), or choose another home with SVC_HOME'
  return new Fault('daemon_already_running', 409, `daemon: already running ${who}`, {
    next: holder?.visible ? here : there,
  })
}

interface Claimed {
  readonly weakness?: string
  free(): Promise<void>
}

function held(home: string, clock: Clock, { weakness, free }: Claimed, startTime = 'unknown'): HomeLock {
  const owner = systemIds().hex(8)
  const record = recordOf(iso(clock.now()), startTime, owner)
  writeRecord(home, record)
  let stamp = stampOf(home)
  const check = () => {
    const now = stampOf(home)
    if (now === stamp && now !== undefined) return
    const other = readLock(home)
    if (other?.owner !== undefined && other.owner !== owner) throw lockLost(other.pid, other.host)
    // Somebody has removed or rewritten the file who is no daemon.
    readOrCreateNonce(home, weakness === undefined)
    writeRecord(home, record)
    stamp = stampOf(home)
  }
  const isOwner = () => {
    try {
      check()
      return true
    } catch {
      return false
    }
  }
  let released: Promise<void> | undefined
  const release = () => {
    // Blank before free: the next holder must not take us for a process that was killed.
    if (released === undefined) {
      if (isOwner()) writeRecord(home, '')
      released = free()
    }
    return released
  }
  return { pid: process.pid, ...(weakness !== undefined && { weakness }), check, isOwner, release }
}

const lockLost = (pid: number, host = 'unknown'): Fault =>
  new Fault(
    'lock_lost',
    500,
    `the home belongs to another daemon by now (pid ${pid} on ${host}), which this one would damage`,
    {
      next: 'run one daemon for a home; on a network file system, check that its locks reach all machines',
    },
  )

/** Tries once; undefined when another process has the lock. */
async function claim(home: string): Promise<Claimed | undefined> {
  const frees: (() => unknown)[] = []
  const free = async () => {
    for (const one of frees.splice(0).reverse()) await one()
  }
  try {
    const weakness = await claimAll(home, frees)
    if (weakness !== 'held') return { free, ...(weakness !== undefined && { weakness }) }
  } catch (error) {
    await free()
    throw error
  }
  await free()
  return undefined
}

/**
 * Takes the lock of the folder; where folders cannot be locked (NFS), that of `daemon.lock`. On Linux an abstract socket as well,
 * by which earlier versions and this one keep each other out; elsewhere they do so by the file.
 * @returns `held`, or why only daemons of this network namespace are kept out, or undefined
 */
async function claimAll(home: string, frees: (() => unknown)[]): Promise<string | undefined> {
  const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY, O_RDWR } = constants
  const take = (path: string, flags: number) => {
    const lock = lockFile(path, flags)
    if (lock.status === 'locked') frees.push(lock.free)
    return lock
  }
  const folder = take(home, O_RDONLY | O_DIRECTORY)
  if (folder.status === 'held') return 'held'
  const alone = folder.status === 'locked'
  const nonce = readOrCreateNonce(home, alone)
  const linux = process.platform === 'linux'
  const file = alone && linux ? folder : take(lockPath(home), O_RDWR | O_NOFOLLOW)
  if (file.status === 'held') return 'held'
  if (linux) {
    const { dev, ino } = attempt('find the home', () => statSync(home, { bigint: true }))
    const socket = await listens(`\0svc.${dev}.${ino}.${nonce}`.padEnd(socketNameLength, '\0'))
    if (!socket) return 'held'
    frees.push(() => new Promise(resolve => socket.close(resolve)))
  }
  // The file was removed meanwhile: another process may have made a new one, with another name to hold.
  if (readNonce(home) !== nonce) return 'held'
  if (alone || file.status === 'locked') return undefined
  if (!linux) throw lockFailed(`cannot lock ${home}: ${file.why}`, 'choose a home on a local disk with SVC_HOME', file)
  return file.why
}

/** Undefined when another process has the name. The system takes it back when this one ends. */
function listens(path: string): Promise<Server | undefined> {
  const server = createServer(peer => peer.destroy())
  return new Promise((resolve, reject) => {
    // Stays: a failing accept must not end the process.
    server.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined)
      else reject(lockFailed('cannot listen on the lock socket', 'svc logs', error))
    })
    server.listen({ path, exclusive: true }, () => resolve(server))
    server.unref()
  })
}
