import { constants, statSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { type Clock, iso } from '../contract/basics.js'
import { Fault } from '../contract/errors.js'
import type { Room } from '../contract/storage.js'
import { systemIds } from '../ids.js'
import { ifPossible } from '../kit/system-calls.js'
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

/** The right to be the one daemon of a home. It ends with the process, even after a kill. */
export interface HomeLock {
  /** The pid of this process. */
  readonly pid: number
  /** Why daemons in other containers or on other machines are not excluded; absent where files can be locked. */
  readonly weakness?: string
  /**
   * Checks the ownership before anything is acknowledged; costs one stat. Where locks do not reach, the last daemon that wrote its
   * name into `daemon.lock` is the owner.
   * @throws Fault `lock_lost` when another daemon is the owner
   */
  check(): void
  /** Like {@link check}, as a boolean. */
  isOwner(): boolean
  release(): Promise<void>
}

/** Milliseconds for a new holder to write its record. */
const namingMs = 2000
const pauseMs = 20
/**
 * Size of `sun_path`. Some versions of Node pad an abstract name with zeros and some do not; a full-length name is the same in
 * both.
 */
const socketNameLength = 108
const platforms: readonly NodeJS.Platform[] = ['linux', 'darwin', 'freebsd', 'openbsd']

/**
 * Makes this process the one daemon of `home`, an existing folder. The lock is on the folder itself, which cannot be removed or
 * replaced under a daemon, and which a copy does not share; it excludes daemons in all containers of one system.
 * @throws Fault `daemon_already_running` when another one runs and does not end within `waitMs` (0), `lock_failed`,
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
  const startedAt = clock.monotonic()
  for (;;) {
    const claimed = await claim(home).catch(error => {
      // The lock file of a new home may use the space that is reserved for a full disk.
      if (!isFull(error.cause) || !options.room?.spend(lockFileBytes)) throw error
      return undefined
    })
    if (claimed !== undefined) return held(home, clock, claimed, options.startTime)
    const holder = holderOfHeld(home)
    // A new holder may not have written its record yet, and the record may be that of its predecessor.
    const patience = holder?.visible ? 0 : namingMs
    if (clock.monotonic() - startedAt >= (options.waitMs ?? 0) + patience) throw alreadyRunning(holder)
    await clock.sleep(pauseMs)
  }
}

/** @param holder undefined when the system does not show it */
export function alreadyRunning(holder: Holder | undefined): Fault {
  const who = holder ? `with ${holderText(holder)}` : 'as a process that is not visible from here'
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
    // The file was removed or rewritten, but not by another daemon.
    readOrCreateNonce(home, weakness === undefined)
    writeRecord(home, record)
    stamp = stampOf(home)
  }
  const isOwner = () => ifPossible(() => check() === undefined) ?? false
  let released: Promise<void> | undefined
  const release = () => {
    // Clear the record before the lock: the next holder must not take this process for one that was killed.
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
    `another daemon (pid ${pid} on ${host}) has taken over the home; writing to it would damage its data`,
    {
      next: 'run one daemon per home; on a network file system, check that locks work across machines',
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
 * Takes the lock of the folder; where folders cannot be locked (NFS), that of `daemon.lock`. On Linux it also binds an abstract
 * socket, which excludes earlier versions; elsewhere the lock of the file does.
 * @returns `held`, or why only daemons of this network namespace are excluded, or undefined
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
  // The file was removed meanwhile: another process may have created a new one, with another socket name.
  if (readNonce(home) !== nonce) return 'held'
  if (alone || file.status === 'locked') return undefined
  if (!linux) throw lockFailed(`cannot lock ${home}: ${file.why}`, 'choose a home on a local disk with SVC_HOME', file)
  return file.why
}

/** Undefined when another process has bound the name. The system frees it when this process ends. */
function listens(path: string): Promise<Server | undefined> {
  const server = createServer(peer => peer.destroy())
  return new Promise((resolve, reject) => {
    // The listener stays after the start: a failing accept must not end the process.
    server.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined)
      else reject(lockFailed('cannot listen on the lock socket', 'svc logs', error))
    })
    server.listen({ path, exclusive: true }, () => resolve(server))
    server.unref()
  })
}
