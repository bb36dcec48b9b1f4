import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { markOfLimit } from './mark.js'

/** What the operating system tells of a process. */
export interface ProcessInfo {
  readonly pid: number
  readonly parent: number
  readonly group: number
  /** Tells two processes with the same pid apart: `<boot id>:<ticks since boot>` on Linux, a date elsewhere. */
  readonly startTime: string
  /** Name of the program, shortened by the system. */
  readonly name: string
  /** True: it has ended, and only its parent has not taken notice (a zombie). */
  readonly ended: boolean
  /** What a daemon marked it with, or something it descends from; 0 when none did (always, where it is not Linux). */
  readonly mark: number
}

/** A process, and what its environment says of the daemon that started it. Empty where that is not ours to read. */
export interface ProcessSeen extends ProcessInfo {
  readonly homeId: string
  readonly processId: string
}

/** Processes by their pid. */
export type Processes = ReadonlyMap<number, ProcessSeen>

/** One process, or undefined when there is none with this pid. */
export function inspectProcess(pid: number, platform: NodeJS.Platform): ProcessInfo | undefined {
  if (!Number.isInteger(pid) || pid < 1) return undefined
  return platform === 'linux' ? fromProc(pid) : fromPs(['-p', String(pid)])[0]
}

/** All processes that can be seen, by pid. */
export function inspectProcesses(platform: NodeJS.Platform): Map<number, ProcessInfo> {
  const all = platform === 'linux' ? everyPid().flatMap(pid => fromProc(pid) ?? []) : fromPs(['-A'])
  return new Map(all.map(found => [found.pid, found]))
}

/** Processes that are looked at before others get their turn of the event loop: about a millisecond. */
const chunk = 40
/** How often a look goes back for processes that were born during it. */
const returns = 3
/** Glances at the newest process that end a look during which others were born: two or three milliseconds. */
const glances = 100

/**
 * Looks at all processes, the newest first, and hands each over at the moment it has been read: a process that forks and
 * ends again and again is found only while it is young. By the time its turn in a list comes it may be gone each time, so
 * where processes are born meanwhile the look ends with glances at the newest one alone.
 */
export async function walkProcesses(platform: NodeJS.Platform, visit: (seen: ProcessSeen) => void): Promise<Processes> {
  const found = new Map<number, ProcessSeen>()
  const add = (info: ProcessInfo | undefined) => {
    if (!info) return
    const seen = { ...info, ...idsOf(info.pid, platform) }
    found.set(info.pid, seen)
    visit(seen)
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

/** By the environment that the process was started with. Linux only. */
export function idsOf(pid: number, platform: NodeJS.Platform): Pick<ProcessSeen, 'homeId' | 'processId'> {
  const text = platform === 'linux' ? environmentOf(pid)?.toString('utf8') : undefined
  const entry = (name: string) => text?.split(`\0${name}=`)[1]?.split('\0')[0] ?? ''
  return { homeId: entry('SVC_HOME_ID'), processId: entry('SVC_PROCESS_ID') }
}

/** Inodes of the sockets that a process has open. Linux only; empty where that is not ours to read. */
export function socketsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`
  try {
    return readdirSync(folder).flatMap(name => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`${folder}/${name}`))?.[1] ?? []
      } catch {
        return []
      }
    })
  } catch {
    return []
  }
}

/** As the process was started, between zeros. A process that has ended has none. */
function environmentOf(pid: number): Buffer | undefined {
  const zero = Buffer.from([0])
  try {
    return Buffer.concat([zero, readFileSync(`/proc/${pid}/environ`), zero])
  } catch {
    return undefined
  }
}

/** The pids that Linux lists. */
function everyPid(): number[] {
  return readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? Number(name) : []))
}

/** The pid that was given out last, the fifth field of /proc/loadavg; 0 where that cannot be read. */
function newestPid(): number {
  try {
    return Number(readFileSync('/proc/loadavg', 'utf8').split(' ')[4])
  } catch {
    return 0
  }
}

/** What follows the name in /proc/<pid>/stat; the name stands in parentheses and may hold spaces and parentheses itself. */
export function statFields(text: string): string[] {
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function fromProc(pid: number): ProcessInfo | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
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
  }
}

let boot: string | undefined

function bootId(): string {
  try {
    boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    boot = 'unknown'
  }
  return boot
}

function fromPs(which: readonly string[]): ProcessInfo[] {
  let text: string
  try {
    text = execFileSync('/bin/ps', [...which, '-o', 'pid=,ppid=,pgid=,state=,lstart=,comm='], {
      encoding: 'utf8',
      env: { LC_ALL: 'C', TZ: 'UTC' },
      maxBuffer: 64 * 1024 * 1024,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  } catch {
    return []
  }
  return text.split('\n').flatMap(line => {
    const [pid, parent, group, state = '', ...rest] = line.trim().split(/\s+/)
    if (rest.length < 5) return []
    const startTime = rest.slice(0, 5).join(' ')
    const name = rest.slice(5).join(' ')
    return [
      {
        pid: Number(pid),
        parent: Number(parent),
        group: Number(group),
        startTime,
        name,
        ended: state[0] === 'Z',
        mark: 0,
      },
    ]
  })
}
