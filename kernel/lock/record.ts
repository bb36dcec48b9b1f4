import {
  closeSync,
  constants,
  fsyncSync,
  ftruncateSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { Fault } from '../contract/errors.js'
import { systemIds } from '../ids.js'
import { openRegularFileSync, readRegularFileSync } from '../kit/read-file.js'
import { isUnsupported } from '../kit/system-calls.js'
import { clip } from '../kit/text.js'

/** Who holds the lock, as written in `daemon.lock`: for people and error texts, never for a decision. */
export interface LockRecord {
  /** In the pid namespace of the holder. */
  readonly pid: number
  /** Tells it from a process that has its pid later, as who started it says; `unknown` where nobody did. */
  readonly startTime: string
  /** Absent in a record of an earlier version, as the two that follow. */
  readonly host?: string
  /** Random, of one time of holding the lock. */
  readonly owner?: string
}

/** First line of the file: the nonce, which is part of the name of the lock's socket. */
const nonceLength = 32
/** Second line: the record, of a fixed length, so that it is rewritten in place. */
const recordOffset = nonceLength + 1
const recordLength = 320
export const lockFileBytes = recordOffset + recordLength
/** Many times what we write. */
const largestLockFile = 4096
const longestHost = 64

export const lockPath = (home: string): string => join(home, 'daemon.lock')

export const lockFailed = (what: string, next: string, cause: unknown): Fault =>
  new Fault('lock_failed', 500, what, { next, cause })

/** Text of the record of this process. @param started RFC 3339 */
export function recordOf(started: string, startTime: string, owner: string): string {
  const host = clip(hostname().replace(/\s/g, '-'), longestHost) || 'unknown'
  return `pid ${process.pid} started ${started} host ${host} owner ${owner} start-time ${startTime}`
}

/** Who holds the lock of `home`, or held it last and was killed; undefined when it was released or never taken. */
export function readLock(home: string): LockRecord | undefined {
  const text = readLockFile(home)?.slice(recordOffset) ?? ''
  const match = /^pid (\d+) started \S+ (?:host (\S+) owner ([0-9a-f]+) )?start-time (\S.*\S)\s*$/.exec(text)
  if (match === null) return undefined
  const [, pid, host, owner, startTime = ''] = match
  return { pid: Number(pid), startTime, ...(host !== undefined && { host }), ...(owner !== undefined && { owner }) }
}

/** Rewrites the record in place. Does nothing when the file is gone or cannot be written: it decides nothing. */
export function writeRecord(home: string, record: string): void {
  try {
    const file = openRegularFileSync(lockPath(home), { flags: constants.O_WRONLY, links: 'refuse' })
    try {
      writeSync(file, recordLine(record), recordOffset)
      ftruncateSync(file, lockFileBytes)
    } finally {
      closeSync(file)
    }
  } catch {}
}

/** @throws Fault `lock_file_damaged`, `lock_failed` */
export function readNonce(home: string): string | undefined {
  const text = readLockFile(home)
  if (text === undefined) return undefined
  const nonce = text.slice(0, nonceLength)
  if (/^[0-9a-f]{32}$/.test(nonce) && text[nonceLength] === '\n') return nonce
  throw new Fault('lock_file_damaged', 500, `${lockPath(home)} is not a lock file`, {
    next: 'remove it when no daemon is running',
  })
}

/** @param alone nobody else can make the file at the same time */
export function readOrCreateNonce(home: string, alone: boolean): string {
  for (;;) {
    const nonce = readNonce(home)
    if (nonce !== undefined) return nonce
    createLockFile(home, alone)
  }
}

/** Tells whether the file was changed since: device, inode and the time of the last change; undefined when it is gone. */
export function stampOf(home: string): string | undefined {
  const found = statSync(lockPath(home), { bigint: true, throwIfNoEntry: false })
  return found && `${found.dev}.${found.ino}.${found.ctimeNs}`
}

/** Whole or not at all; by one process only, which a link sees to where the caller is not alone. */
function createLockFile(home: string, alone: boolean): void {
  const ids = systemIds()
  const temporary = join(home, `.daemon.lock.${ids.hex(8)}`)
  const put = alone ? renameSync : linkSync
  attempt('create daemon.lock', () => {
    const file = openSync(temporary, 'wx', 0o600)
    try {
      writeSync(file, `${ids.hex(nonceLength / 2)}\n${recordLine('')}`)
      syncIfPossible(file)
      put(temporary, lockPath(home))
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
    } finally {
      closeSync(file)
      rmSync(temporary, { force: true })
    }
  })
}

/** The lock is not in the file: one that a power loss takes is made anew. The database is what has to be synced. */
function syncIfPossible(file: number): void {
  try {
    fsyncSync(file)
  } catch (error) {
    if (!isUnsupported(error)) throw error
  }
}

function readLockFile(home: string): string | undefined {
  return attempt('read daemon.lock', () => {
    return readRegularFileSync(lockPath(home), { maxBytes: largestLockFile, links: 'refuse' })?.toString()
  })
}

function recordLine(record: string): string {
  return `${record.padEnd(recordLength - 1).slice(0, recordLength - 1)}\n`
}

/** @throws Fault `lock_failed` */
export function attempt<T>(what: string, fn: () => T): T {
  try {
    return fn()
  } catch (error) {
    if (error instanceof Fault) throw lockFailed(error.message, error.next ?? '', error)
    const { syscall } = error as NodeJS.ErrnoException
    if (syscall === 'link' && isUnsupported(error)) {
      const text = `cannot ${what}: the file system of ${home(error)} has neither locks of folders nor hard links`
      throw lockFailed(text, 'choose a home on a local disk with SVC_HOME', error)
    }
    throw lockFailed(
      `cannot ${what}: ${codeOf(error)}`,
      'check that the home is a folder of yours with free space',
      error,
    )
  }
}

const home = (error: unknown): string => (error as NodeJS.ErrnoException & { dest?: string }).dest ?? 'the home'

export function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code)
}
