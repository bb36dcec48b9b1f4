import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { type Clock, iso } from './contract/basics.js'
import { Fault } from './contract/errors.js'
import type { Room } from './contract/storage.js'
import { systemIds } from './ids.js'
import { openRegularFileSync, readRegularFileSync } from './kit/read-file.js'
import { isFull } from './store/room.js'

/** The right to be the one daemon of a home. It goes with the process, however that ends. */
export interface HomeLock {
  /** Who holds it: this process. */
  readonly pid: number
  release(): Promise<void>
}

/** Who holds the lock, as written in `daemon.lock`: for people and error texts, never for a decision. */
export interface LockRecord {
  readonly pid: number
  /** Tells it from a process that has its pid later, as who started it says; `unknown` where nobody did. */
  readonly startTime: string
}

const lockFailed = (what: string, next: string, cause: unknown): Fault =>
  new Fault('lock_failed', 500, what, { next, cause })

/** How long a holder that has just won may take to write who it is. */
const namingMs = 5000
const pauseMs = 20
/** First line of the file: the nonce. */
const nonceLength = 32
/** Second line: the record, of a fixed length, so that it is rewritten in place. */
const recordOffset = nonceLength + 1
const recordLength = 160
/** Many times what we write. */
const largestLockFile = 4096
/** Size of `sun_path`. Some versions of Node fill an abstract name up with zeros and some do not; a full one is one name. */
const socketNameLength = 108
/** O_EXLOCK of macOS and the BSDs, which Node does not name. */
const exclusiveLock = 0x20

/**
 * Makes this process the one daemon of `home`, an existing folder. Containers that share a home do not exclude each other.
 * @throws Fault `daemon_already_running` when another one is and does not end within `waitMs` (0), `lock_failed`,
 * `lock_file_damaged`, `lock_unsupported`
 */
export async function acquireLock(
  home: string,
  clock: Clock,
  options: { waitMs?: number; room?: Room; startTime?: string | undefined } = {},
): Promise<HomeLock> {
  const claim = claimOf(process.platform)
  const begun = clock.monotonic()
  for (;;) {
    const free = await claim(home).catch(error => {
      // Of a new home: its lock is made of what is kept for a full disk.
      if (!isFull(error.cause) || !options.room?.spend(recordOffset + recordLength)) throw error
      return undefined
    })
    const record = readLock(home)
    if (free !== undefined) return held(home, clock, free, options.startTime)
    // A holder that died, or that has only just won, is not who the file names.
    const named = record !== undefined && isRunning(record)
    if (clock.monotonic() - begun >= (options.waitMs ?? 0) + (named ? 0 : namingMs))
      // 0 when the holder has not said who it is.
      throw new Fault('daemon_already_running', 409, `daemon: already running with pid ${record?.pid ?? 0}`, {
        next: 'stop it with `svc daemon stop`, or choose another home with SVC_HOME',
      })
    await clock.sleep(pauseMs)
  }
}

type Free = () => Promise<void>

function held(home: string, clock: Clock, free: Free, startTime = 'unknown'): HomeLock {
  writeRecord(home, `pid ${process.pid} started ${iso(clock.now())} start-time ${startTime}`)
  let released: Promise<void> | undefined
  const release = () => {
    // Blank before free: whoever wins next must not take us for somebody who was killed.
    if (released === undefined) {
      if (readLock(home)?.pid === process.pid) writeRecord(home, '')
      released = free()
    }
    return released
  }
  return { pid: process.pid, release }
}

/** Another process may have that pid by now; whoever is refused is then told that pid. */
function isRunning({ pid }: LockRecord): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/** Tries once; undefined when the lock is held. */
type Claim = (home: string) => Promise<Free | undefined>

function claimOf(platform: NodeJS.Platform): Claim {
  if (platform === 'linux') return claimSocket
  if (platform === 'darwin' || platform === 'freebsd' || platform === 'openbsd') return claimFile
  throw new Fault('lock_unsupported', 500, `no way to lock a home on ${platform}`, { next: 'use Linux or macOS' })
}

/** Linux: an abstract socket, which the kernel gives to one process and takes back when that ends. */
async function claimSocket(home: string): Promise<Free | undefined> {
  const { dev, ino } = attempt('find the home', () => statSync(home, { bigint: true }))
  const nonce = readOrCreateNonce(home)
  const server = createServer(peer => peer.destroy())
  if (!(await listens(server, `\0svc.${dev}.${ino}.${nonce}`.padEnd(socketNameLength, '\0')))) return undefined
  const free = () => new Promise<void>(resolve => server.close(() => resolve()))
  if (readNonce(home) === nonce) return free
  // The file was removed meanwhile: another process may have made a new one, with another name to hold.
  await free()
  return undefined
}

function listens(server: Server, path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    // Stays: a failing accept must not end the process.
    server.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false)
      else reject(lockFailed('cannot listen on the lock socket', 'svc logs', error))
    })
    server.listen({ path, exclusive: true }, () => resolve(true))
    server.unref()
  })
}

/** macOS: a lock on the open file, which goes with it. */
async function claimFile(home: string): Promise<Free | undefined> {
  const nonce = readOrCreateNonce(home)
  const flags = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK | exclusiveLock
  let file: number
  try {
    file = openSync(lockPath(home), flags)
  } catch (error) {
    if (['EAGAIN', 'ENOENT'].includes(codeOf(error))) return undefined
    throw lockFailed('cannot lock daemon.lock', 'check its permissions', error)
  }
  if (readNonce(home) === nonce && fstatSync(file).ino === statSync(lockPath(home)).ino)
    return async () => closeSync(file)
  closeSync(file)
  return undefined
}

function lockPath(home: string): string {
  return join(home, 'daemon.lock')
}

function readOrCreateNonce(home: string): string {
  for (;;) {
    const nonce = readNonce(home)
    if (nonce !== undefined) return nonce
    createLockFile(home)
  }
}

/** Whole or not at all, and by one process only. */
function createLockFile(home: string): void {
  const ids = systemIds()
  const temporary = join(home, `.daemon.lock.${ids.hex(8)}`)
  attempt('create daemon.lock', () => {
    const file = openSync(temporary, 'wx', 0o600)
    try {
      writeSync(file, `${ids.hex(nonceLength / 2)}\n${recordLine('')}`)
      fsyncSync(file)
      linkSync(temporary, lockPath(home))
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
    } finally {
      closeSync(file)
      unlinkSync(temporary)
    }
  })
}

function readNonce(home: string): string | undefined {
  const text = readLockFile(home)
  if (text === undefined) return undefined
  const nonce = text.slice(0, nonceLength)
  if (/^[0-9a-f]{32}$/.test(nonce) && text[nonceLength] === '\n') return nonce
  throw new Fault('lock_file_damaged', 500, `${lockPath(home)} is not a lock file`, {
    next: 'remove it when no daemon is running',
  })
}

/** Who holds the lock of `home`, or held it last and was killed; undefined when it was released or never taken. */
export function readLock(home: string): LockRecord | undefined {
  const match = /^pid (\d+) started \S+ start-time (\S.*\S)\s*$/.exec(readLockFile(home)?.slice(recordOffset) ?? '')
  if (match === null) return undefined
  return { pid: Number(match[1]), startTime: match[2]! }
}

function readLockFile(home: string): string | undefined {
  return attempt('read daemon.lock', () => {
    return readRegularFileSync(lockPath(home), { maxBytes: largestLockFile, links: 'refuse' })?.toString()
  })
}

/** Does nothing when the file is gone: it decides nothing. */
function writeRecord(home: string, record: string): void {
  try {
    const file = openRegularFileSync(lockPath(home), { flags: constants.O_WRONLY, links: 'refuse' })
    try {
      writeSync(file, recordLine(record), recordOffset)
    } finally {
      closeSync(file)
    }
  } catch {}
}

function recordLine(record: string): string {
  return `${record.padEnd(recordLength - 1)}\n`
}

function attempt<T>(what: string, fn: () => T): T {
  try {
    return fn()
  } catch (error) {
    if (error instanceof Fault) throw lockFailed(error.message, error.next ?? '', error)
    throw lockFailed(`cannot ${what}`, 'check that the home is a folder of yours with free space', error)
  }
}

function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code)
}
