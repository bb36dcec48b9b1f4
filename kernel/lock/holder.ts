import { readdirSync, readFileSync, readlinkSync, type Stats, statSync } from 'node:fs'
import { isFileLocked } from './file-lock.js'
import { type LockRecord, lockPath, readLock } from './record.js'

/** Who holds the lock of a home. */
export interface Holder {
  /** Here, where it is `visible`; else as the holder wrote it down, where it did. */
  readonly pid: number | undefined
  /** The process can be seen, and signalled, from here: not so in another pid namespace. */
  readonly visible: boolean
  readonly host?: string
}

/**
 * Asks the system who holds the lock of a home; undefined when nobody does. What `daemon.lock` says only tells where to look
 * first: a process that it names is the holder when it has the lock among its descriptors.
 */
export function lockHolder(home: string): Holder | undefined {
  const found = visibleHolder(home)
  // Without a record nobody has held it since the last orderly end, or its holder writes one in a moment.
  if (found || recordOf(home) === undefined || !isHeld(home)) return found
  return holderOfHeld(home)
}

/** The same for a lock that is known to be held, without touching it. */
export function holderOfHeld(home: string): Holder | undefined {
  // All processes, because a lock taken by flock(1) is listed under the pid of a program that has ended.
  const found = visibleHolder(home) ?? visibleHolder(home, everyPid())
  const record = recordOf(home)
  if (found || record === undefined) return found
  const visible = process.platform !== 'linux'
  return { pid: record.pid, visible, ...(record.host !== undefined && { host: record.host }) }
}

/** Tells people who the holder is. */
export function holderText({ pid, visible, host }: Holder): string {
  if (visible) return `pid ${pid}`
  const where = host === undefined ? '' : ` on ${host}`
  return `pid ${pid}${where}, in another container or pid namespace`
}

/** One that cannot be read names nobody. */
function recordOf(home: string): LockRecord | undefined {
  try {
    return readLock(home)
  } catch {
    return undefined
  }
}

/** Either of the two is locked, by what the file system can. */
const isHeld = (home: string): boolean => isFileLocked(home) ?? isFileLocked(lockPath(home)) ?? false

function visibleHolder(home: string, others: readonly number[] = []): Holder | undefined {
  if (process.platform !== 'linux') return undefined
  const record = recordOf(home)
  const files = [home, lockPath(home)].flatMap(path => statSync(path, { throwIfNoEntry: false }) ?? [])
  const [folder] = files
  if (!folder) return undefined
  const candidates = new Set([...(record ? [record.pid] : []), ...lockingPids(files.map(({ ino }) => ino)), ...others])
  for (const pid of candidates) if (holdsLock(pid, files) || holdsSocket(pid, folder)) return { pid, visible: true }
  return undefined
}

/** Processes with a lock on a file that has one of these inodes, of whatever file system. */
function lockingPids(inodes: readonly number[]): number[] {
  return linesOf('/proc/locks').flatMap(line => {
    const [, kind, , , pid, file = ''] = line.split(/\s+/)
    return kind === 'FLOCK' && inodes.includes(Number(file.split(':')[2])) ? Number(pid) : []
  })
}

function holdsLock(pid: number, files: readonly Stats[]): boolean {
  return descriptorsOf(pid).some(name => {
    const open = attempt(() => statSync(`/proc/${pid}/fd/${name}`))
    const isOne = files.some(({ dev, ino }) => open?.dev === dev && open.ino === ino)
    return isOne && linesOf(`/proc/${pid}/fdinfo/${name}`).some(line => /^lock:.*\bFLOCK\b.*\bWRITE\b/.test(line))
  })
}

/** Holds the socket that stands for the home: all that an earlier version holds. */
function holdsSocket(pid: number, { dev, ino }: Stats): boolean {
  const name = `@svc.${dev}.${ino}.`
  const lines = linesOf(`/proc/${pid}/net/unix`).filter(line => line.includes(name))
  const sockets = lines.map(line => `socket:[${line.split(/\s+/)[6]}]`)
  if (sockets.length === 0) return false
  return descriptorsOf(pid).some(fd => sockets.includes(attempt(() => readlinkSync(`/proc/${pid}/fd/${fd}`)) ?? ''))
}

const everyPid = (): number[] =>
  (attempt(() => readdirSync('/proc')) ?? []).flatMap(name => (/^\d+$/.test(name) ? Number(name) : []))

const descriptorsOf = (pid: number): string[] => attempt(() => readdirSync(`/proc/${pid}/fd`)) ?? []

const linesOf = (file: string): string[] => (attempt(() => readFileSync(file, 'utf8')) ?? '').split('\n')

/** A process may end while it is looked at, or belong to somebody else. */
function attempt<T>(fn: () => T): T | undefined {
  try {
    return fn()
  } catch {
    return undefined
  }
}
