import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import {
  everyPid,
  inspectProcess as inspect,
  inspectProcesses as inspectAll,
  type ProcessInfo as ProcessFacts,
} from '../../kernel/plugin.js'
import { markOfLimit } from './mark.js'

/** What the operating system tells of a process. */
export interface ProcessInfo extends Omit<ProcessFacts, 'memoryLimit'> {
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
  const found = inspect(pid, platform)
  return found && marked(found)
}

/** All processes that can be seen, by pid. */
export function inspectProcesses(platform: NodeJS.Platform): Map<number, ProcessInfo> {
  return new Map(inspectAll(platform).map(found => [found.pid, marked(found)]))
}

function marked({ memoryLimit, ...facts }: ProcessFacts): ProcessInfo {
  return { ...facts, mark: markOfLimit(memoryLimit) }
}

/** Processes that are looked at before others get their turn of the event loop: about a millisecond. */
const chunk = 40
/** How often a look goes back for processes that were born during it. */
const returns = 3

/**
 * Looks at all processes, the newest first, and hands each over at the moment it has been read: a process that forks and
 * ends again and again is found only while it is young.
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
  for (let round = 0; round <= returns; round++) {
    const pids = everyPid().filter(pid => !looked.has(pid))
    for (const [at, pid] of pids.reverse().entries()) {
      if (at > 0 && at % chunk === 0) await turn()
      looked.add(pid)
      add(inspectProcess(pid, platform))
    }
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
