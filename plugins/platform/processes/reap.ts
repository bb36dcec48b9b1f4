import { systemClock, turn } from '../../../kernel/plugin.js'
import type { ProcessDetails, Processes, ProcessInfo } from './inspect.js'
import type { ProcessSystem } from './system.js'
import type { ProcessRow } from './tables.js'

/** Maximum entries of one set; the oldest are forgotten. */
const MAX_REMEMBERED = 1000

/** Input of {@link planReap}. */
export interface ReapFacts {
  readonly processes: ReadonlyMap<number, ProcessInfo>
  readonly rows: readonly ProcessRow[]
  /** This process. */
  readonly self: number
  /** Whether mark, environment or cgroup of a process say that it is to be ended. */
  isMarked(pid: number): boolean
  /** Whether this process has started processes itself. */
  readonly ownChildren: boolean
  /** `pid:startTime` of processes that an earlier round selected. */
  readonly known?: ReadonlySet<string>
}

/** Processes with a known permanent property, each by pid and start time. */
export class Identities {
  readonly #known = new Set<string>()

  has(proc: { readonly pid: number; readonly startTime: string }): boolean {
    return this.#known.has(identityOf(proc))
  }

  add(proc: { readonly pid: number; readonly startTime: string }): void {
    this.#known.add(identityOf(proc))
    const [oldest] = this.#known
    if (this.#known.size > MAX_REMEMBERED && oldest !== undefined) this.#known.delete(oldest)
  }
}

export interface ReapPlan {
  /** Targets of signals, negative for a group, each with the processes that it ends. */
  readonly targets: readonly { readonly target: number; readonly ends: readonly ProcessInfo[] }[]
  /** Rows whose process is gone. */
  readonly stale: readonly ProcessRow[]
}

/** A unique name of a process. */
export function identityOf({ pid, startTime }: { readonly pid: number; readonly startTime: string }): string {
  return `${pid}:${startTime}`
}

/**
 * Selects the processes to end. A process is selected when a row has its pid and start time, when it is marked, or when its parent
 * is selected, even if it is a daemon of another home. Its whole group is ended, unless an unselected process leads the group or a
 * spared one is in it: then only the process. This process and its ancestors are always spared.
 */
export function planReap(facts: ReapFacts): ReapPlan {
  const { processes, rows } = facts
  const named = new Set([...rows.map(identityOf), ...(facts.known ?? [])])
  const isSought = ({ pid, ended, startTime }: ProcessInfo) =>
    !ended && pid > 1 && (facts.isMarked(pid) || (named.size > 0 && named.has(identityOf({ pid, startTime }))))
  // When hundreds end at once, most have left no process, which this single pass finds out.
  if (rows.length === 0 && !some(processes.values(), isSought)) return { targets: [], stale: [] }
  const { spared } = sparedBy(facts)
  const living = [...processes.values()].filter(({ pid, ended }) => !ended && pid > 1)
  const isLeft = (info: ProcessInfo) => !spared.has(info.pid) && isSought(info)
  const left = new Map(living.filter(isLeft).map(info => [info.pid, info]))
  const isBelow = ({ pid, parent }: ProcessInfo) => left.has(parent) && !left.has(pid) && !spared.has(pid)
  for (let found = [...left.values()]; found.length > 0; ) {
    found = living.filter(isBelow)
    for (const info of found) left.set(info.pid, info)
  }
  const targets = new Map<number, readonly ProcessInfo[]>()
  for (const info of left.values()) {
    const leader = processes.get(info.group)
    const members = living.filter(({ group }) => group === info.group)
    // For the kill system call, group 0 is the caller's own group and 1 is every process; containers can have such
    // groups.
    const whole =
      info.group > 1 && (!leader || leader.ended || left.has(leader.pid)) && !members.some(m => spared.has(m.pid))
    if (whole) targets.set(-info.group, members)
    else targets.set(info.pid, [info])
  }
  const running = new Set(rows.length > 0 ? living.map(identityOf) : [])
  return {
    targets: [...targets].map(([target, ends]) => ({ target, ends })),
    stale: rows.filter(row => !running.has(identityOf(row))),
  }
}

function some<T>(all: Iterable<T>, wanted: (one: T) => boolean): boolean {
  for (const one of all) if (wanted(one)) return true
  return false
}

/** Spares this process, its ancestors, and if it has children of its own all processes `below` it. */
function sparedBy({ processes, self, ownChildren, isMarked }: ReapFacts) {
  const ancestors = new Set<number>()
  for (let at: number | undefined = self; at && !ancestors.has(at); at = processes.get(at)?.parent) ancestors.add(at)
  // Children of a marked process are marked too, so the mark does not identify the daemon that left them.
  const below = new Set(ownChildren || isMarked(self) ? [self] : [])
  for (let grown = below.size > 0; grown; ) {
    const found = [...processes.values()].filter(({ pid, parent }) => below.has(parent) && !below.has(pid))
    for (const { pid } of found) below.add(pid)
    grown = found.length > 0
  }
  return { spared: new Set([...ancestors, ...below]), below }
}

export interface ReapResult {
  /** Every ended process; owner and label come from its group's row, else they are `unknown` and the program's name. */
  readonly ended: ProcessRow[]
  readonly stale: ProcessRow[]
  /** Processes that survived SIGKILL, or that this user may not signal. */
  readonly resisting: ProcessRow[]
}

/** The processes that {@link endLeft} ends, with the timing. */
export interface Hunt {
  readonly rows: readonly ProcessRow[]
  isMarked(proc: ProcessDetails): boolean
  ownChildren(): boolean
  /** Reads all processes; the result may be shared when not all of them have to be seen at the same time. */
  snapshot(): Promise<Processes>
  /** Kills processes at once, in addition to the signals; receives the processes to spare. */
  readonly killAll?: (spared: ReadonlySet<number>) => void
  /** Milliseconds between SIGTERM and SIGKILL. */
  readonly termMs: number
}

const giveUpMs = 6000
/** Signals per turn of the event loop; processes are inspected again before each one. */
const SIGNALS_A_TURN = 20
/** Plans per turn of the event loop, for callers that share a snapshot. */
const PLANS_A_TURN = 20
/**
 * Consecutive snapshots without a match that prove the absence of further processes, before and after a match. A single one does
 * not, because reading it takes time.
 */
const sureAfter = { none: 2, some: 4 }

/** Ends processes for several callers, sharing the event loop. */
export class Reaper {
  #line = Promise.resolve()
  #planned = 0

  constructor(private readonly system: ProcessSystem) {}

  /**
   * Ends processes until none is left: SIGTERM once to each; after `termMs` all matches are stopped before they are killed, because
   * a stopped process neither forks nor reacts to the end of others. Gives up 6 s later.
   */
  endLeft(hunt: Hunt): Promise<ReapResult> {
    return endLeft(this.system, hunt, () => this.#inLine())
  }

  #inLine(): Promise<void> {
    this.#line = this.#line.then(() => {
      this.#planned++
      return this.#planned % PLANS_A_TURN === 0 ? turn() : undefined
    })
    return this.#line
  }
}

async function endLeft(system: ProcessSystem, hunt: Hunt, inLine: () => Promise<void>): Promise<ReapResult> {
  const { self } = system
  const { rows } = hunt
  // Real time: processes do not follow a virtual clock.
  const clock = systemClock()
  const known = new Map<string, ProcessInfo>()
  const factsOf = (processes: Processes): ReapFacts => {
    const isMarked = (pid: number) => {
      const proc = processes.get(pid)
      return proc !== undefined && hunt.isMarked(proc)
    }
    return { processes, rows, self, isMarked, ownChildren: hunt.ownChildren(), known: new Set(known.keys()) }
  }
  const send = ({ target, ends }: ReapPlan['targets'][number], name: NodeJS.Signals) => {
    // Since the snapshot the number may have been reused.
    const isSame = (info: ProcessInfo) => {
      const now = system.inspect(info.pid)
      return now !== undefined && identityOf(now) === identityOf(info) && (target > 0 || now.group === -target)
    }
    if (ends.some(isSame)) system.signal(target, name)
  }
  const startedAt = clock.monotonic()
  const waited = () => clock.monotonic() - startedAt
  const looked = async () => {
    const processes = await hunt.snapshot()
    await inLine()
    return factsOf(processes)
  }
  let facts = await looked()
  let { targets, stale } = planReap(facts)
  let empty = targets.length === 0 ? 1 : 0
  const isSure = () => empty >= (known.size > 0 ? sureAfter.some : sureAfter.none)
  for (let pause = 10; !isSure() && waited() < hunt.termMs + giveUpMs; pause = Math.min(pause * 2, 100)) {
    const late = waited() >= hunt.termMs
    if (late) {
      const { spared, below } = sparedBy(facts)
      const stop = (proc: ProcessDetails) => {
        if (proc.ended || spared.has(proc.pid) || below.has(proc.parent)) return
        if (known.has(identityOf(proc)) || hunt.isMarked(proc)) system.signal(proc.pid, 'SIGSTOP')
      }
      facts = factsOf(await system.walk(stop))
      targets = planReap(facts).targets
      hunt.killAll?.(spared)
    }
    for (const [at, target] of targets.entries()) {
      if (at % SIGNALS_A_TURN === SIGNALS_A_TURN - 1) await turn()
      if (late) send(target, 'SIGKILL')
      else if (target.ends.some(info => !known.has(identityOf(info)))) send(target, 'SIGTERM')
      for (const info of target.ends) known.set(identityOf(info), info)
    }
    if (targets.length > 0) await clock.sleep(pause)
    facts = await looked()
    targets = planReap(facts).targets
    empty = targets.length > 0 ? 0 : empty + 1
  }
  const resisting = new Map(targets.flatMap(({ ends }) => ends.map(info => [identityOf(info), info])))
  const ended = [...known.values()].filter(info => !resisting.has(identityOf(info)))
  const rowsOf = (infos: Iterable<ProcessInfo>) => [...infos].map(info => rowFor(info, rows))
  return { ended: rowsOf(ended), stale: [...stale], resisting: rowsOf(resisting.values()) }
}

function rowFor({ pid, startTime, group, name }: ProcessInfo, rows: readonly ProcessRow[]): ProcessRow {
  const of = rows.find(row => row.group === group)
  return { pid, startTime, group, owner: of?.owner ?? 'unknown', label: of?.label ?? name }
}
