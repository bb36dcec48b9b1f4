import { systemClock } from '../clock.js'
import { ifPossible, lastError, systemCall } from '../kit/system-calls.js'
import type { Disk } from './disk.js'
import { StoreError } from './error.js'

/** The bytes of a database that SQLite locks: pending, reserved and shared, as defined by its file format. */
const LOCK_BYTES = { start: 0x40000000n, length: 512n }
/** `struct flock` and the commands of fcntl(2) for locks that belong to an open file, on 64-bit Linux. */
const FLOCK_BYTES = 32
const F_OFD_GETLK = 36
const F_OFD_SETLK = 37
const F_WRLCK = 1

/** Milliseconds to wait for another program: a short read ends by then, and a longer use is an error. */
const WAIT_MS = 2000
const AGAIN_MS = 50

/** Result of a lock attempt: taken, not possible here, or held by another program (pid 0 if the system does not say which). */
export type Exclusion = 'excluded' | 'unsupported' | { readonly pid: number }

/**
 * Takes the lock that SQLite itself takes for a database in exclusive mode, so that a stock `sqlite3` reports the database as
 * locked. Without it, a reader would take itself for the only user, and checkpoint and remove the log when it closes. The lock is
 * one of an open file, because locks of a process end when it closes any descriptor of the file.
 */
export function excludeOthers(handle: number): Exclusion {
  if (process.platform !== 'linux' || !['x64', 'arm64', 'riscv64', 'loong64'].includes(process.arch))
    return 'unsupported'
  const fcntl = ifPossible(() => systemCall('int fcntl(int descriptor, int command, _Inout_ uint8_t *lock)'))
  if (!fcntl) return 'unsupported'
  const lock = lockOf()
  if (fcntl(handle, F_OFD_SETLK, lock) === 0) return 'excluded'
  if (!['EAGAIN', 'EACCES'].includes(lastError())) return 'unsupported'
  return { pid: fcntl(handle, F_OFD_GETLK, lock) === 0 ? lock.readInt32LE(24) : 0 }
}

function lockOf(): Buffer {
  const lock = Buffer.alloc(FLOCK_BYTES)
  lock.writeInt16LE(F_WRLCK, 0)
  lock.writeBigInt64LE(LOCK_BYTES.start, 8)
  lock.writeBigInt64LE(LOCK_BYTES.length, 16)
  return lock
}

/** Excludes other programs from a database file for as long as it is open. @throws StoreError `store_in_use` */
export async function exclude(disk: Disk, handle: number, file: string): Promise<void> {
  const clock = systemClock()
  const startedAt = clock.monotonic()
  for (;;) {
    const done = (await disk.exclude?.(handle)) ?? 'unsupported'
    if (typeof done === 'string') return
    if (clock.monotonic() - startedAt >= WAIT_MS) {
      const who = done.pid > 0 ? `the program with pid ${done.pid}` : 'another program'
      throw new StoreError(
        'store_in_use',
        `${file} is open in ${who}`,
        'close it there (for example sqlite3), then start again',
      )
    }
    await clock.sleep(AGAIN_MS)
  }
}
