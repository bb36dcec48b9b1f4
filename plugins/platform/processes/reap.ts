import { systemClock, turn } from '../../../kernel/plugin.js'
import type { Processes, ProcessInfo, ProcessSeen } from './inspect.js'
import type { ProcessSystem } from './system.js'
import type { ProcessRow } from './tables.js'

/** Processes that are remembered in one set; the oldest are forgotten. */
const MAX_REMEMBERED = 1000

/** What {@link planReap} decides by. */
export interface ReapFacts {
  readonly processes: ReadonlyMap<number, ProcessInfo>
  readonly rows: readonly ProcessRow[]
  /** This process. */
  readonly self: number
  /** Something about this process says that it is to be ended: its mark, its environment, its cgroup. */
  isMarked(pid: number): boolean
  /** This process has started some itself already. */
  readonly ownChildren: boolean
  /** `pid:startTime` of processes that an earlier round has found to be ended. */
  readonly known?: ReadonlySet<string>
}

/** Processes of which something is known that cannot change, each by pid and start time. */
export class Identities {
  readonly #known = new Set<string>()

  has(seen: { readonly pid: number; readonly startTime: string }): boolean {
    return this.#known.has(identityOf(seen))
  }

  add(seen: { readonly pid: number; readonly startTime: string }): void {
    this.#known.add(identityOf(seen))
    const [oldest] = this.#known
    if (this.#known.size > MAX_REMEMBERED && oldest !== undefined) this.#known.delete(oldest)
  }
}

export interface ReapPlan {
  /** What to signal, negative for a group, and which processes that ends. */
  readonly targets: readonly { readonly target: number; readonly ends: readonly ProcessInfo[] }[]
  /** Rows whose process is gone. */
  readonly stale: readonly ProcessRow[]
}

/** Names one process for good. */
export function identityOf({ pid, startTime }: { readonly pid: number; readonly startTime: string }): string {
  return `${pid}:${startTime}`
}

/**
 * Decides what to end. A process is to be ended when a row names its pid and start time, when it is marked, or when its
 * parent is to be ended: also a daemon of another home that it started. Then its whole group is ended, unless that is led
 * by a process that is not, or this process is in it: then that process alone. This process and its ancestors are always
 * spared.
 */
export function planReap(facts: ReapFacts): ReapPlan {
  const { processes, rows } = facts
  const named = new Set([...rows.map(identityOf), ...(facts.known ?? [])])
  const isSought = ({ pid, ended, startTime }: ProcessInfo) =>
    !ended && pid > 1 && (facts.isMarked(pid) || (named.size > 0 && named.has(identityOf({ pid, startTime }))))
  // Of hundreds that end at once most have left nothing: that takes one pass.
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
    // Groups 0 and 1 mean one's own group and every process to the system call, and can be seen in containers.
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

/** Spared are this process, its ancestors, and where it has children of its own all that is `below` it. */
function sparedBy({ processes, self, ownChildren, isMarked }: ReapFacts) {
  const ancestors = new Set<number>()
  for (let at: number | undefined = self; at && !ancestors.has(at); at = processes.get(at)?.parent) ancestors.add(at)
  // Children of a marked process are marked as well; that tells nothing of who left them.
  const below = new Set(ownChildren || isMarked(self) ? [self] : [])
  for (let grown = below.size > 0; grown; ) {
    const found = [...processes.values()].filter(({ pid, parent }) => below.has(parent) && !below.has(pid))
    for (const { pid } of found) below.add(pid)
    grown = found.length > 0
  }
  return { spared: new Set([...ancestors, ...below]), below }
}

export interface ReapResult {
  /** Every process that was ended; owner and label are its group's row's, else `unknown` and the program's name. */
  readonly ended: ProcessRow[]
  readonly stale: ProcessRow[]
  /** Those that were still there after SIGKILL, or that this user may not signal. */
  readonly resisting: ProcessRow[]
}

/** Which processes {@link endLeft} ends, and how. */
export interface Hunt {
  readonly rows: readonly ProcessRow[]
  isMarked(seen: ProcessSeen): boolean
  ownChildren(): boolean
  /** Where not all of them have to be seen at once, looks may be shared with others. */
  look(): Promise<Processes>
  /** Ends what it can at once, beside the signals; told which processes are to be spared. */
  readonly killAll?: (spared: ReadonlySet<number>) => void
  /** Milliseconds between SIGTERM and SIGKILL. */
  readonly termMs: number
}

const giveUpMs = 6000
/** Processes are looked at once more before each signal, which hundreds may be worth. */
const SIGNALS_A_TURN = 20
/** Those who share a look go on with what it found one after the other, so many in a turn of the event loop. */
const PLANS_A_TURN = 20
/** Looks in a row without any that say that none is left, before and after one was found: a look is not one moment. */
const sureAfter = { none: 2, some: 4 }

/** Ends processes for all who ask it to, some of each turn of the event loop. */
export class Reaper {
  #line = Promise.resolve()
  #planned = 0

  constructor(private readonly system: ProcessSystem) {}

  /**
   * Ends them until none is left: SIGTERM once to each; after `termMs` all that can be found are stopped before they are
   * killed, for what is stopped neither forks nor notices how others end. Gives up 6 s later.
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
  // Processes know no time but the real one.
  const clock = systemClock()
  const known = new Map<string, ProcessInfo>()
  const factsOf = (processes: Processes): ReapFacts => {
    const isMarked = (pid: number) => {
      const seen = processes.get(pid)
      return seen !== undefined && hunt.isMarked(seen)
    }
    return { processes, rows, self, isMarked, ownChildren: hunt.ownChildren(), known: new Set(known.keys()) }
  }
  const send = ({ target, ends }: ReapPlan['targets'][number], name: NodeJS.Signals) => {
    // Since the look the number may have become another's.
    const isSame = (info: ProcessInfo) => {
      const now = system.inspect(info.pid)
      return now !== undefined && identityOf(now) === identityOf(info) && (target > 0 || now.group === -target)
    }
    if (ends.some(isSame)) system.signal(target, name)
  }
  const begun = clock.monotonic()
  const waited = () => clock.monotonic() - begun
  const looked = async () => {
    const processes = await hunt.look()
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
      const stop = (seen: ProcessSeen) => {
        if (seen.ended || spared.has(seen.pid) || below.has(seen.parent)) return
        if (known.has(identityOf(seen)) || hunt.isMarked(seen)) system.signal(seen.pid, 'SIGSTOP')
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
