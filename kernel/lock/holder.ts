import { readdirSync, readFileSync, readlinkSync, type Stats, statSync } from 'node:fs'
import { ifPossible } from '../kit/system-calls.js'
import { isFileLocked } from './file-lock.js'
import { type LockRecord, lockPath, readLock } from './record.js'

/** The process that holds the lock of a home. */
export interface Holder {
  /** In this pid namespace when `visible`, else as the holder recorded it; undefined without a record. */
  readonly pid: number | undefined
  /** Whether the process can be seen and signalled from here; false in another pid namespace. */
  readonly visible: boolean
  readonly host?: string
}

/**
 * Finds the holder of a home's lock in the system; undefined when it is free. `daemon.lock` only suggests where to look first: the
 * process it names is the holder if it has the lock among its descriptors.
 */
export function lockHolder(home: string): Holder | undefined {
  const found = visibleHolder(home)
  // Without a record the lock is free since the last orderly end, or its holder is about to write one.
  if (found || recordOf(home) === undefined || !isHeld(home)) return found
  return holderOfHeld(home)
}

/** The holder of a lock that is known to be held. Does not try to take the lock. */
export function holderOfHeld(home: string): Holder | undefined {
  // All processes, because a lock taken by flock(1) is listed under the pid of a program that has ended.
  const found = visibleHolder(home) ?? visibleHolder(home, everyPid())
  const { pid, host } = recordOf(home) ?? {}
  if (found || pid === undefined) return found
  return { pid, visible: process.platform !== 'linux', ...(host !== undefined && { host }) }
}

/** The holder as text for people. */
export function holderText({ pid, visible, host }: Holder): string {
  if (visible) return `pid ${pid}`
  const where = host === undefined ? '' : ` on ${host}`
  return `pid ${pid}${where}, in another container or pid namespace`
}

/** Undefined for a record that cannot be read. */
const recordOf = (home: string): LockRecord | undefined => ifPossible(() => readLock(home))

/** Whether the folder is locked, or the file where folders cannot be locked. */
const isHeld = (home: string): boolean => isFileLocked(home) ?? isFileLocked(lockPath(home)) ?? false

function visibleHolder(home: string, others: readonly number[] = []): Holder | undefined {
  if (process.platform !== 'linux') return undefined
  const record = recordOf(home)
  const files = [home, lockPath(home)].flatMap(path => statSync(path, { throwIfNoEntry: false }) ?? [])
  const [folder] = files
  if (!folder) return undefined
  const candidates = new Set([...(record ? [record.pid] : []), ...lockingPids(files.map(({ ino }) => ino)), ...others])
  const holds = (pid: number) => holdsLock(pid, files) || holdsSocket(pid, folder)
  const found = [...candidates].find(holds)
  if (found === undefined) return undefined
  // The program flock(1) has the lock too until it ends, so a parent with the lock is the holder.
  const parent = Number(
    linesOf(`/proc/${found}/status`)
      .find(line => line.startsWith('PPid:'))
      ?.replace('PPid:', ''),
  )
  return { pid: holds(parent) ? parent : found, visible: true }
}

/** Processes with a lock on a file with one of these inode numbers, on any file system. */
function lockingPids(inodes: readonly number[]): number[] {
  return linesOf('/proc/locks').flatMap(line => {
    const [, kind, , , pid, file = ''] = line.split(/\s+/)
    return kind === 'FLOCK' && inodes.includes(Number(file.split(':')[2])) ? Number(pid) : []
  })
}

function holdsLock(pid: number, files: readonly Stats[]): boolean {
  return descriptorsOf(pid).some(name => {
    const open = ifPossible(() => statSync(`/proc/${pid}/fd/${name}`))
    const isOne = files.some(({ dev, ino }) => open?.dev === dev && open.ino === ino)
    return isOne && linesOf(`/proc/${pid}/fdinfo/${name}`).some(line => /^lock:.*\bFLOCK\b.*\bWRITE\b/.test(line))
  })
}

/** Whether a process holds the socket of the home, which is the only lock of earlier versions. */
function holdsSocket(pid: number, { dev, ino }: Stats): boolean {
  const name = `@svc.${dev}.${ino}.`
  const lines = linesOf(`/proc/${pid}/net/unix`).filter(line => line.includes(name))
  const sockets = lines.map(line => `socket:[${line.split(/\s+/)[6]}]`)
  if (sockets.length === 0) return false
  return descriptorsOf(pid).some(fd => sockets.includes(ifPossible(() => readlinkSync(`/proc/${pid}/fd/${fd}`)) ?? ''))
}

const everyPid = (): number[] =>
  (ifPossible(() => readdirSync('/proc')) ?? []).flatMap(name => (/^\d+$/.test(name) ? Number(name) : []))

const descriptorsOf = (pid: number): string[] => ifPossible(() => readdirSync(`/proc/${pid}/fd`)) ?? []

const linesOf = (file: string): string[] => (ifPossible(() => readFileSync(file, 'utf8')) ?? '').split('\n')
