import { readdirSync, readFileSync } from 'node:fs'
import type { Clock, Timer } from '../../../../kernel/plugin.js'

/** State of an agent's processes in the operating system. */
export interface Pulse {
  /** A process of the group is stopped (state `T`) and continues only after SIGCONT. */
  readonly frozen: boolean
  /** CPU time used so far by the group and its descendants, in milliseconds. */
  readonly cpuMs: number
}

interface Stat {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly state: string
  readonly ticks: number
}

/** Linux reports CPU time to user space in hundredths of a second. */
const TICK_MS = 10

/** The pulse of a process group; undefined where the system has no /proc, and when none of the group is left. */
export function pulseOf(group: number): Pulse | undefined {
  const all = readStats()
  const own = all.filter(stat => stat.group === group)
  if (own.length === 0) return undefined
  const family = new Set(own.map(({ pid }) => pid))
  // Tools run in process groups of their own, but their CPU time shows that the agent works.
  for (let size = 0; size < family.size; ) {
    size = family.size
    for (const { pid, parent } of all) if (family.has(parent)) family.add(pid)
  }
  return {
    frozen: own.some(isStopped),
    cpuMs: all.reduce((sum, { pid, ticks }) => (family.has(pid) ? sum + ticks * TICK_MS : sum), 0),
  }
}

/** Process groups with a stopped member (state `T`); empty where that cannot be known. */
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
    // The process name is in parentheses and may itself contain spaces and parentheses.
    const [state = '', parent, group, ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ')
    // utime, stime, and those of reaped children.
    const ticks = rest.slice(8, 12).reduce((sum, field) => sum + Number(field), 0)
    return [{ pid, parent: Number(parent), group: Number(group), state, ticks }]
  } catch {
    return []
  }
}

/** Checks within the time after which an unresponsive process is stale. */
const CHECKS = 3
/** Milliseconds for which the result of a check is reused. */
const FRESH_MS = 500

/** A watched process, with its process group. */
export interface Watched {
  readonly group: number
  /** Receives the result of a check: whether the process runs. */
  looked(runs: boolean): void
}

/**
 * Checks the processes of all sessions with one timer, which exists only while there are processes. It asks the operating system
 * alone: the supervision of a turn finds a process that runs but never answers.
 */
export class ProcessWatch {
  readonly #watched = new Set<Watched>()
  #timer: Timer | undefined
  #checkedAt = Number.NEGATIVE_INFINITY

  /** @param staleAfterMs read before each check */
  constructor(
    private readonly clock: Clock,
    private readonly staleAfterMs: () => number,
  ) {}

  add(watched: Watched): void {
    this.#watched.add(watched)
    if (!this.#timer) this.#wait()
  }

  delete(watched: Watched): void {
    this.#watched.delete(watched)
    if (this.#watched.size === 0) this.close()
  }

  /** Checks now, unless the last check is recent enough. */
  look(): void {
    const now = this.clock.monotonic()
    if (this.#watched.size === 0 || now - this.#checkedAt < FRESH_MS) return
    this.#checkedAt = now
    const stopped = stoppedGroups()
    for (const watched of [...this.#watched]) watched.looked(!stopped.has(watched.group))
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #wait(): void {
    const checkAgain = () => {
      this.look()
      this.#wait()
    }
    this.#timer = this.clock.timeout(this.staleAfterMs() / CHECKS, checkAgain, { unref: true })
  }
}
