import { spawnSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { messageOf } from '../contract/errors.js'
import { ifPossible, lastError, systemCall } from '../kit/system-calls.js'

/** The result of an attempt: the lock, or that another process holds it, or why this system cannot lock the file. */
export type FileLock =
  | { readonly status: 'locked'; readonly free: () => void }
  | { readonly status: 'held' }
  | { readonly status: 'unsupported'; readonly why: string }

/** The system's answer for an open descriptor. */
type Attempt = 'locked' | 'held' | { readonly why: string }

const SHARED = 1
const EXCLUSIVE = 2
const NO_WAIT = 4
/** O_SHLOCK and O_EXLOCK of macOS and the BSDs, which Node does not name. */
const OPEN_FLAGS: Readonly<Record<number, number>> = { [SHARED]: 0x10, [EXCLUSIVE]: 0x20 }
/** Exit code of `flock -n` when another process holds the lock. */
const CONFLICT = 1

/**
 * Tries to lock a file or a folder (flock(2)), without waiting. The lock belongs to the descriptor: it ends with the process, even
 * after a kill, and no child inherits it, because Node closes its descriptors in children.
 */
export const lockFile = (path: string, flags: number): FileLock => tryLock(path, EXCLUSIVE, flags)

/** Whether another process holds a lock on the file; undefined when the system cannot lock it. */
export function isFileLocked(path: string): boolean | undefined {
  const found = tryLock(path, SHARED, constants.O_RDONLY)
  if (found.status === 'locked') found.free()
  return found.status === 'unsupported' ? undefined : found.status === 'held'
}

function tryLock(path: string, kind: typeof SHARED | typeof EXCLUSIVE, flags: number): FileLock {
  const opens = process.platform !== 'linux'
  let handle: number
  try {
    const how = flags | constants.O_NONBLOCK
    handle = openSync(path, opens ? how | (OPEN_FLAGS[kind] ?? 0) : how)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return opens && code === 'EAGAIN' ? { status: 'held' } : { status: 'unsupported', why: messageOf(error) }
  }
  const tried = opens ? 'locked' : flock(handle, kind)
  if (tried === 'locked') return { status: 'locked', free: () => closeSync(handle) }
  closeSync(handle)
  return tried === 'held' ? { status: 'held' } : { status: 'unsupported', ...tried }
}

/** Uses the system call, or else the program flock(1), which locks the descriptor that it inherits. */
function flock(handle: number, kind: number): Attempt {
  const call = ifPossible(() => systemCall('int flock(int descriptor, int operation)'))
  if (!call) return flockProgram(handle, kind)
  if (call(handle, kind | NO_WAIT) === 0) return 'locked'
  const code = lastError()
  return code === 'EAGAIN' || code === 'EWOULDBLOCK' ? 'held' : { why: `flock: ${code}` }
}

function flockProgram(handle: number, kind: number): Attempt {
  const option = kind === EXCLUSIVE ? '-x' : '-s'
  const { status, error, stderr } = spawnSync('flock', ['-n', option, '3'], {
    stdio: ['ignore', 'ignore', 'pipe', handle],
    encoding: 'utf8',
  })
  if (status === 0) return 'locked'
  if (status === CONFLICT) return 'held'
  return { why: error ? `there is neither koffi nor the program flock: ${error.message}` : stderr.trim() }
}
