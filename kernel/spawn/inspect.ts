import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

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
}

/** One process, or undefined when there is none with this pid. */
export function inspectProcess(pid: number, platform: NodeJS.Platform): ProcessInfo | undefined {
  if (!Number.isInteger(pid) || pid < 1) return undefined
  return platform === 'linux' ? fromProc(pid, bootId()) : fromPs(['-p', String(pid)])[0]
}

/** All processes that can be seen, by pid. Synchronous, so that what it says still holds when a signal is sent after it. */
export function inspectProcesses(platform: NodeJS.Platform): Map<number, ProcessInfo> {
  const found = platform === 'linux' ? everyProc() : fromPs(['-A'])
  return new Map(found.map(info => [info.pid, info]))
}

/**
 * True when the process was started with this `NAME=value` in its environment. Linux only; false elsewhere, and where
 * the environment is not ours to read.
 */
export function environmentHas(pid: number, entry: string, platform: NodeJS.Platform): boolean {
  return platform === 'linux' && environmentOf(pid)?.includes(`\0${entry}\0`) === true
}

/** Living processes by what their environment gives this name. Empty where environments cannot be read (not Linux). */
export function processesByEnvironment(name: string, platform: NodeJS.Platform): Map<string, number[]> {
  const found = new Map<string, number[]>()
  if (platform !== 'linux') return found
  for (const pid of everyPid()) {
    const value = environmentOf(pid)?.toString().split(`\0${name}=`)[1]?.split('\0')[0]
    if (value !== undefined) found.set(value, [...(found.get(value) ?? []), pid])
  }
  return found
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

function everyPid(): number[] {
  return readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? Number(name) : []))
}

function everyProc(): ProcessInfo[] {
  const boot = bootId()
  return everyPid().flatMap(pid => fromProc(pid, boot) ?? [])
}

function fromProc(pid: number, boot: string): ProcessInfo | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
  // The name stands in parentheses and may hold spaces and parentheses itself.
  const nameEnd = text.lastIndexOf(')')
  const fields = text.slice(nameEnd + 2).split(' ')
  const [state = '', parent, group] = fields
  return {
    pid,
    parent: Number(parent),
    group: Number(group),
    startTime: `${boot}:${fields[19]}`,
    name: text.slice(text.indexOf('(') + 1, nameEnd),
    // The main thread may end before the others: a zombie with threads is alive.
    ended: 'ZXx'.includes(state) && Number(fields[17]) <= 1,
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return 'unknown'
  }
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
      { pid: Number(pid), parent: Number(parent), group: Number(group), startTime, name, ended: state[0] === 'Z' },
    ]
  })
}
