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
import { codeOf, isUnsupported } from '../kit/system-calls.js'
import { clip } from '../kit/text.js'

/** The holder as written in `daemon.lock`: for people and error texts, never for a decision. */
export interface LockRecord {
  /** In the pid namespace of the holder. */
  readonly pid: number
  /**
   * Start time of the process, which distinguishes it from a later process with the same pid; `unknown` when it was not recorded.
   */
  readonly startTime: string
  /** Absent in records of earlier versions, like `owner`. */
  readonly host?: string
  /** Random identifier of one acquisition of the lock. */
  readonly owner?: string
}

/** First line of the file: the nonce, which is part of the name of the lock's socket. */
const nonceLength = 32
/** Second line: the record, of a fixed length, so that it is rewritten in place. */
const recordOffset = nonceLength + 1
const recordLength = 320
export const lockFileBytes = recordOffset + recordLength
/** Larger files are refused; a valid one has about 350 bytes. */
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

/**
 * The record of the holder of `home`, or of its last holder if that was killed; undefined when the lock was released or never
 * taken.
 */
export function readLock(home: string): LockRecord | undefined {
  const text = readLockFile(home)?.slice(recordOffset) ?? ''
  const match = /^pid (\d+) started \S+ (?:host (\S+) owner ([0-9a-f]+) )?start-time (\S.*\S)\s*$/.exec(text)
  if (match === null) return undefined
  const [, pid, host, owner, startTime = ''] = match
  return { pid: Number(pid), startTime, ...(host !== undefined && { host }), ...(owner !== undefined && { owner }) }
}

/** Rewrites the record in place. A missing or read-only file is no error, since no decision depends on it. */
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

/** @param alone true when no other process can create the file at the same time */
export function readOrCreateNonce(home: string, alone: boolean): string {
  for (;;) {
    const nonce = readNonce(home)
    if (nonce !== undefined) return nonce
    createLockFile(home, alone)
  }
}

/** Device, inode and change time of the file, which differ after any change; undefined when the file is missing. */
export function stampOf(home: string): string | undefined {
  const found = statSync(lockPath(home), { bigint: true, throwIfNoEntry: false })
  return found && `${found.dev}.${found.ino}.${found.ctimeNs}`
}

/** Creates the file atomically. A hard link, unlike a rename, fails when another process was faster. */
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

/** The lock does not depend on the file: if a power loss takes it, it is created anew. Only the database must be synced. */
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
