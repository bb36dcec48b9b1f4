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
  /** Soft limit of its resident memory in bytes, as /proc tells it; absent where it is not Linux. */
  readonly memoryLimit?: string | undefined
}

/** One process, or undefined when there is none with this pid. */
export function inspectProcess(pid: number, platform: NodeJS.Platform): ProcessInfo | undefined {
  if (!Number.isInteger(pid) || pid < 1) return undefined
  return platform === 'linux' ? fromProc(pid) : fromPs(['-p', String(pid)])[0]
}

/** All processes that can be seen. */
export function inspectProcesses(platform: NodeJS.Platform): ProcessInfo[] {
  return platform === 'linux' ? everyPid().flatMap(pid => fromProc(pid) ?? []) : fromPs(['-A'])
}

/** The pids that Linux lists. */
export function everyPid(): number[] {
  return readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? Number(name) : []))
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
    memoryLimit: fields[22],
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
      },
    ]
  })
}
