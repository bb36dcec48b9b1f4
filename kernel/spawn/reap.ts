import { systemClock } from '../clock.js'
import type { ProcessInfo } from './inspect.js'
import type { ProcessRow } from './process-row.js'
import type { ProcessSystem } from './system.js'

/** What {@link planReap} decides by. */
export interface ReapFacts {
  readonly processes: ReadonlyMap<number, ProcessInfo>
  readonly rows: readonly ProcessRow[]
  /** This process. */
  readonly self: number
  /** The environment of this process carries the mark of the home. */
  isMarked(pid: number): boolean
  /** This process has started some itself already. */
  readonly ownChildren: boolean
  /** `pid:startTime` of processes that an earlier round has found to be ended. */
  readonly known?: ReadonlySet<string>
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
 * Decides what an earlier daemon of this home left. A process is its own when a row names its pid and start time or its
 * environment carries the home's mark; then its whole group is ended, unless that is led by somebody else or this
 * process is in it: then that process alone. This process and its ancestors are always spared.
 */
export function planReap(facts: ReapFacts): ReapPlan {
  const { processes, rows } = facts
  const spared = sparedBy(facts)
  const living = [...processes.values()].filter(({ pid, ended }) => !ended && pid > 1)
  const rowOf = new Map(rows.map(row => [identityOf(row), row]))
  const isLeft = (info: ProcessInfo) =>
    !spared.has(info.pid) &&
    (rowOf.has(identityOf(info)) || facts.known?.has(identityOf(info)) === true || facts.isMarked(info.pid))
  const left = new Map(living.filter(isLeft).map(info => [info.pid, info]))
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
  const running = new Set(living.map(identityOf))
  return {
    targets: [...targets].map(([target, ends]) => ({ target, ends })),
    stale: rows.filter(row => !running.has(identityOf(row))),
  }
}

function sparedBy({ processes, self, ownChildren, isMarked }: ReapFacts): Set<number> {
  const spared = new Set<number>()
  for (let at: number | undefined = self; at && !spared.has(at); at = processes.get(at)?.parent) spared.add(at)
  // Children of a marked process are marked as well; that tells nothing of who left them.
  if (!ownChildren && !isMarked(self)) return spared
  const below = new Set([self])
  for (let grown = true; grown; ) {
    const found = [...processes.values()].filter(({ pid, parent }) => below.has(parent) && !below.has(pid))
    for (const { pid } of found) below.add(pid)
    grown = found.length > 0
  }
  return new Set([...spared, ...below])
}

export interface ReapResult {
  /** Every process that was ended; owner and label are its group's row's, else `unknown` and the program's name. */
  readonly ended: ProcessRow[]
  readonly stale: ProcessRow[]
}

const termMs = 1000
const giveUpMs = 6000

/** Carries plans out until none is left: SIGTERM once to each, SIGKILL after a second, at most 6 s. */
export async function endLeft(
  system: ProcessSystem,
  rows: readonly ProcessRow[],
  ownChildren: () => boolean,
): Promise<ReapResult> {
  const { self } = system
  // Processes know no time but the real one.
  const clock = systemClock()
  const seen = new Map<string, ProcessInfo>()
  const plan = () => {
    // One look at each environment a round is enough.
    const marks = new Map<number, boolean>()
    const isMarked = (pid: number) => {
      const mark = marks.get(pid) ?? system.isMarked(pid)
      marks.set(pid, mark)
      return mark
    }
    const processes = system.inspect()
    return planReap({ processes, rows, self, isMarked, ownChildren: ownChildren(), known: new Set(seen.keys()) })
  }
  const begun = clock.monotonic()
  let { targets, stale } = plan()
  for (let pause = 10; targets.length > 0 && clock.monotonic() - begun < giveUpMs; pause = Math.min(pause * 2, 100)) {
    const late = clock.monotonic() - begun >= termMs
    for (const { target, ends } of targets) {
      const fresh = ends.some(info => !seen.has(identityOf(info)))
      if (late) system.signal(target, 'SIGKILL')
      else if (fresh) system.signal(target, 'SIGTERM')
      for (const info of ends) seen.set(identityOf(info), info)
    }
    await clock.sleep(pause)
    targets = plan().targets
  }
  const resisting = new Set(targets.flatMap(({ ends }) => ends.map(identityOf)))
  const ended = [...seen].flatMap(([identity, info]) => (resisting.has(identity) ? [] : rowFor(info, rows)))
  return { ended, stale: [...stale] }
}

function rowFor({ pid, startTime, group, name }: ProcessInfo, rows: readonly ProcessRow[]): ProcessRow {
  const of = rows.find(row => row.group === group)
  return { pid, startTime, group, owner: of?.owner ?? 'unknown', label: of?.label ?? name }
}
