import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { ifPossible } from '../../../kernel/kit/system-calls.js'
import { markOfLimit } from './mark.js'

/** Data of the operating system about a process. */
export interface ProcessInfo {
  readonly pid: number
  readonly parent: number
  readonly group: number
  /** Distinguishes two processes with the same pid: `<boot id>:<ticks since boot>` on Linux, a date elsewhere. */
  readonly startTime: string
  /** Name of the program, shortened by the system. */
  readonly name: string
  /** Whether it is a zombie: it has ended, but its parent has not waited for it. */
  readonly ended: boolean
  /** The mark that a daemon set on it or on an ancestor; 0 without one (always outside of Linux). */
  readonly mark: number
  /** Set when it has no memory, and so no environment: it has ended, or is a thread of the kernel. Linux only. */
  readonly bare?: boolean
}

/**
 * A process with the ids from its environment, which name the daemon that started it. Empty when the environment is not readable.
 */
export interface ProcessDetails extends ProcessInfo {
  readonly homeId: string
  readonly processId: string
}

/** Processes by their pid. */
export type Processes = ReadonlyMap<number, ProcessDetails>

/** One process, or undefined when there is none with this pid. */
export function inspectProcess(pid: number, platform: NodeJS.Platform): ProcessInfo | undefined {
  if (!Number.isInteger(pid) || pid < 1) return undefined
  return platform === 'linux' ? fromProc(pid) : fromPs(['-p', String(pid)])[0]
}

/** All visible processes, by pid. */
export function inspectProcesses(platform: NodeJS.Platform): Map<number, ProcessInfo> {
  const all = platform === 'linux' ? everyPid().flatMap(pid => fromProc(pid) ?? []) : fromPs(['-A'])
  return new Map(all.map(found => [found.pid, found]))
}

/** Processes read in one turn of the event loop, in about a millisecond. */
const chunk = 40
/** Number of further passes for processes that were started during the first. */
const returns = 3
/** Reads of the newest process at the end, if others were started meanwhile: two or three milliseconds. */
const glances = 100

/**
 * Reads all processes, the newest first, and passes each to `visit` at once: a process that constantly forks and ends can only be
 * found while it is young. By its turn in a list it may be gone every time, so when processes were started meanwhile, the end of
 * the walk reads only the newest one repeatedly.
 */
export async function walkProcesses(
  platform: NodeJS.Platform,
  visit: (proc: ProcessDetails) => void,
): Promise<Processes> {
  const found = new Map<number, ProcessDetails>()
  const add = (info: ProcessInfo | undefined) => {
    if (!info) return
    const proc = { ...info, ...(info.bare ? { homeId: '', processId: '' } : idsOf(info.pid, platform)) }
    found.set(info.pid, proc)
    visit(proc)
  }
  if (platform !== 'linux') {
    for (const info of inspectProcesses(platform).values()) add(info)
    return found
  }
  const looked = new Set<number>()
  const lookAt = (pid: number) => {
    looked.add(pid)
    add(inspectProcess(pid, platform))
  }
  const newest = newestPid()
  for (let round = 0; round <= returns; round++) {
    const pids = everyPid().filter(pid => !looked.has(pid))
    for (const [at, pid] of pids.reverse().entries()) {
      if (at > 0 && at % chunk === 0) await turn()
      lookAt(pid)
    }
  }
  if (newestPid() === newest) return found
  for (let glance = 0; glance < glances; glance++) {
    const pid = newestPid()
    if (!looked.has(pid)) lookAt(pid)
  }
  return found
}

/** The ids in the environment that the process was started with. Linux only. */
export function idsOf(pid: number, platform: NodeJS.Platform): Pick<ProcessDetails, 'homeId' | 'processId'> {
  // Between zero bytes. A process that has ended has none. Node reads text without a JavaScript buffer.
  const text = platform === 'linux' ? textOf(`/proc/${pid}/environ`) : undefined
  const entry = (name: string) => `\0${text}\0`.split(`\0${name}=`)[1]?.split('\0')[0] ?? ''
  return { homeId: entry('SVC_HOME_ID'), processId: entry('SVC_PROCESS_ID') }
}

/** Inodes of a process's open sockets. Linux only; empty when they are not readable. */
export function socketsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`
  const names = ifPossible(() => readdirSync(folder)) ?? []
  const links = names.map(name => ifPossible(() => readlinkSync(`${folder}/${name}`)) ?? '')
  return links.flatMap(link => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? [])
}

/** Undefined for a file that cannot be read. */
const textOf = (file: string) => ifPossible(() => readFileSync(file, 'utf8'))

/** All pids on Linux. */
function everyPid(): number[] {
  return readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? Number(name) : []))
}

/** The pid that was assigned last, the fifth field of /proc/loadavg; 0 when that cannot be read. */
const newestPid = () => Number(textOf('/proc/loadavg')?.split(' ')[4] ?? 0)

/** The fields after the name in /proc/<pid>/stat. The name is in parentheses and may contain spaces and parentheses itself. */
export function statFields(text: string): string[] {
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function fromProc(pid: number): ProcessInfo | undefined {
  const text = textOf(`/proc/${pid}/stat`)
  if (text === undefined) return undefined
  const fields = statFields(text)
  const [state = '', parent, group] = fields
  return {
    pid,
    parent: Number(parent),
    group: Number(group),
    startTime: `${bootId()}:${fields[19]}`,
    name: text.slice(text.indexOf('(') + 1, text.lastIndexOf(')')),
    // The main thread may end before the others: a zombie with threads is alive.
    ended: 'ZXx'.includes(state) && Number(fields[17]) <= 1,
    mark: markOfLimit(fields[22]),
    ...(fields[20] === '0' && { bare: true }),
  }
}

let boot: string | undefined

function bootId(): string {
  boot ??= textOf('/proc/sys/kernel/random/boot_id')?.trim() ?? 'unknown'
  return boot
}

function fromPs(which: readonly string[]): ProcessInfo[] {
  const ps = () =>
    execFileSync('/bin/ps', [...which, '-o', 'pid=,ppid=,pgid=,state=,lstart=,comm='], {
      encoding: 'utf8',
      env: { LC_ALL: 'C', TZ: 'UTC' },
      maxBuffer: 64 * 1024 * 1024,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  return (ifPossible(ps) ?? '').split('\n').flatMap(line => {
    const [pid, parent, group, state = '', ...rest] = line.trim().split(/\s+/)
    if (rest.length < 5) return []
    return [
      {
        pid: Number(pid),
        parent: Number(parent),
        group: Number(group),
        startTime: rest.slice(0, 5).join(' '),
        name: rest.slice(5).join(' '),
        ended: state[0] === 'Z',
        mark: 0,
      },
    ]
  })
}
