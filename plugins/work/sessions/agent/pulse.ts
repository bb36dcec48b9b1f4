import { readdirSync, readFileSync } from 'node:fs'

/** What the operating system tells of an agent's processes. */
export interface Pulse {
  /** One of its group was stopped (state `T`) and goes on only when somebody lets it. */
  readonly frozen: boolean
  /** Milliseconds of CPU time that the group, and what was started from it, has used so far. */
  readonly cpuMs: number
}

interface Stat {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly state: string
  readonly ticks: number
}

/** Linux counts in hundredths of a second for everybody outside of the kernel. */
const TICK_MS = 10

/** The pulse of a process group; undefined where the system has no /proc, and when none of the group is left. */
export function pulseOf(group: number): Pulse | undefined {
  const all = readStats()
  const own = all.filter(stat => stat.group === group)
  if (own.length === 0) return undefined
  const family = new Set(own.map(({ pid }) => pid))
  // Tools run in groups of their own: what works for the agent works.
  for (let size = 0; size < family.size; ) {
    size = family.size
    for (const { pid, parent } of all) if (family.has(parent)) family.add(pid)
  }
  return {
    frozen: own.some(isStopped),
    cpuMs: all.reduce((sum, { pid, ticks }) => (family.has(pid) ? sum + ticks * TICK_MS : sum), 0),
  }
}

/** The process groups of which a member was stopped (state `T`); none where that cannot be known. */
export function stoppedGroups(): ReadonlySet<number> {
  return new Set(readStats().flatMap(stat => (isStopped(stat) ? [stat.group] : [])))
}

const isStopped = ({ state }: Stat) => state === 'T' || state === 't'

function readStats(): Stat[] {
  try {
    return readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? readStat(Number(name)) : []))
  } catch {
    return []
  }
}

function readStat(pid: number): Stat[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name stands in parentheses and may hold spaces and parentheses itself.
    const [state = '', parent, group, ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ')
    // utime, stime, and those of children that were waited for.
    const ticks = rest.slice(8, 12).reduce((sum, field) => sum + Number(field), 0)
    return [{ pid, parent: Number(parent), group: Number(group), state, ticks }]
  } catch {
    return []
  }
}
