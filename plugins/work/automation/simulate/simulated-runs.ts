import { iso } from '../../../../kernel/plugin.js'
import {
  type Limited,
  type Limits,
  limitOf,
  type RunBook,
  retryDelay,
  type Skip,
  skipOf,
  slotSkip,
} from '../runs/room.js'
import { columnOf, type RunOf } from '../runs/run-row.js'
import type { SimulatedClock } from './simulated-clock.js'

/** A job or trigger in a simulation. */
export interface Player {
  readonly of: RunOf
  readonly name: string
  readonly spec: Limited
  /** Assumed duration of each run in milliseconds. */
  readonly runMs: number
  /** Whether its runs are assumed to fail. */
  readonly fails: boolean
}

/** One fire or skip; times in epoch milliseconds. */
export interface Occasion {
  /** When the decision is made. */
  readonly at: number
  readonly of: RunOf
  readonly name: string
  readonly attempt: number
  readonly skip?: Skip | undefined
  /** Jobs only: the scheduled occurrence. */
  readonly scheduledAt?: number | undefined
  readonly run?: string
  /** Triggers only. */
  readonly event?: { readonly name: string; readonly seq: number } | undefined
  readonly metadata?: Readonly<Record<string, string>>
}

/** Members that retries inherit from the first attempt. */
type Attempted = Pick<Occasion, 'attempt' | 'scheduledAt' | 'event'>

/** An occurrence that waits for a slot. */
interface Queued {
  readonly player: Player
  readonly scheduledAt: number
  readonly until: number
  /** Decides at the time of the slot whether it may start, and returns its metadata. */
  readonly admitted: () => Pick<Occasion, 'skip' | 'metadata'>
  readonly occasion: Omit<Occasion, 'at' | 'of' | 'name'>
}

interface Going {
  readonly player: Player
  readonly startedAt: number
}

const keyOf = (of: RunOf) => columnOf(of).join(' ')

/** In-memory runs of a simulation. */
export class SimulatedRuns implements RunBook {
  readonly #going = new Set<Going>()
  readonly #open = new Map<string, number>()
  /** Start times that count toward a fire limit, ascending. */
  readonly #started = new Map<string, number[]>()
  readonly #known: ReadonlySet<string>
  /** Waiting runs in the order of their due times. */
  #queue: Queued[] = []

  /**
   * @param report called with every fire and skip, in order
   * @param ended called when a run of a job has ended; claims the due occurrences of the job
   */
  constructor(
    private readonly clock: SimulatedClock,
    private readonly limits: Limits,
    private readonly report: (occasion: Occasion) => void,
    private readonly ended: (job: string) => void = () => {},
    known: Iterable<string> = [],
  ) {
    this.#known = new Set(known)
  }

  has(run: string): boolean {
    return this.#known.has(run)
  }

  openOf(job: string): number {
    return this.#open.get(keyOf({ jobId: job })) ?? 0
  }

  openCount(): number {
    return this.#going.size
  }

  isAnyWaiting(): boolean {
    return this.#queue.length > 0
  }

  counted(of: RunOf, window: number, now: number): { readonly count: number; readonly oldest: number } {
    const times = this.#started.get(keyOf(of)) ?? []
    const first = times.findIndex(at => at > now - window)
    if (first < 0) return { count: 0, oldest: 0 }
    times.splice(0, first)
    return { count: times.length, oldest: times[0] as number }
  }

  /** Adds a run that was claimed before the simulation. */
  recall(of: RunOf, startedAt: number): void {
    this.#count(of, startedAt)
  }

  /** Reason for which a run cannot start now. */
  skip({ of, spec }: Player): Skip | undefined {
    const limit = limitOf(spec, of, this.clock.now(), this.limits, this)
    return skipOf('jobId' in of && this.openOf(of.jobId) > 0, limit, this.limits, this)
  }

  /** Starts a run that ends after its duration; retries follow as the definition says. */
  begin(player: Player, { attempt, scheduledAt, event }: Attempted, leftMs = player.runMs): void {
    const going = { player, startedAt: this.clock.now() }
    const key = keyOf(player.of)
    this.#going.add(going)
    this.#open.set(key, (this.#open.get(key) ?? 0) + 1)
    this.clock.timeout(leftMs, () => {
      this.#end(going)
      const delay = player.fails ? retryDelay(player.spec, attempt) : undefined
      const again = { attempt: attempt + 1, scheduledAt, event }
      if (delay !== undefined)
        this.clock.timeout(delay, () => this.claim(player, { ...again, skip: this.skip(player) }))
    })
  }

  /** Reports a claim and starts the run unless it is skipped. */
  claim(player: Player, occasion: Omit<Occasion, 'at' | 'of' | 'name'>): void {
    const at = this.clock.now()
    this.report({ at, of: player.of, name: player.name, ...occasion })
    if (occasion.skip) return
    this.#count(player.of, at)
    this.begin(player, occasion)
  }

  /** Adds an occurrence that waits for a slot. */
  wait(queued: Queued): void {
    this.#queue = [...this.#queue, queued].sort((a, b) => a.scheduledAt - b.scheduledAt)
    this.#opened(queued.player, 1)
    this.clock.timeout(queued.until - this.clock.now(), () => this.#schedule())
  }

  /** Continues the waiting occurrences after a start of the daemon. */
  resume(): void {
    this.#schedule()
    for (const { player, until } of this.#queue) {
      this.#opened(player, 1)
      this.clock.timeout(until - this.clock.now(), () => this.#schedule())
    }
  }

  /** Cancels occurrences that waited too long, and gives free slots to the ones due first. */
  #schedule(): void {
    const now = this.clock.now()
    const overdue = this.#queue.filter(({ until }) => until <= now)
    let left = overdue.map(queued => this.#leave(queued, { skip: slotSkip(this.limits, this.limits.queueWait) }))
    // As in the daemon, an occurrence without a slot waits for the next round, before which the next occurrence of its job is
    // claimed.
    do {
      const free = Math.max(0, this.limits.maxConcurrent - this.openCount())
      left.push(...this.#queue.slice(0, free).map(queued => this.#leave(queued, queued.admitted())))
      const skipped = left.flatMap(job => job ?? [])
      left = []
      for (const job of skipped) this.ended(job)
      if (skipped.length === 0) return
    } while (this.#queue.length > 0)
  }

  /** Returns the job of an occurrence that is skipped. */
  #leave(queued: Queued, { skip, metadata }: Pick<Occasion, 'skip' | 'metadata'>): string | undefined {
    const { player, occasion } = queued
    this.#queue = this.#queue.filter(other => other !== queued)
    this.#opened(player, -1)
    const reason = skip ? { reason: skip.reason } : {}
    this.claim(player, { ...occasion, skip, metadata: { ...occasion.metadata, ...metadata, ...reason } })
    return skip && 'jobId' in player.of ? player.of.jobId : undefined
  }

  #opened({ of }: Player, by: number): void {
    const key = keyOf(of)
    this.#open.set(key, Math.max(0, (this.#open.get(key) ?? 0) + by))
  }

  /** The daemon stops: open runs are canceled and no longer count toward the fire limit. */
  shutDown(): void {
    for (const { player, startedAt } of this.#going) {
      const times = this.#started.get(keyOf(player.of))
      const index = times?.lastIndexOf(startedAt) ?? -1
      if (index >= 0) times?.splice(index, 1)
    }
    this.#going.clear()
    this.#open.clear()
    this.clock.clear()
  }

  #end(going: Going): void {
    const { of } = going.player
    this.#going.delete(going)
    this.#opened(going.player, -1)
    if ('jobId' in of) this.ended(of.jobId)
    this.#schedule()
  }

  #count(of: RunOf, at: number): void {
    const key = keyOf(of)
    const times = this.#started.get(key)
    if (times) times.push(at)
    else this.#started.set(key, [at])
  }
}

/** The wire form of a fire or skip. */
export const occasionToWire = ({ at, of, name, attempt, skip, scheduledAt, run, event, metadata }: Occasion) => ({
  at: iso(at),
  ...('jobId' in of ? { job_id: of.jobId } : { trigger_id: of.triggerId }),
  name,
  outcome: skip ? ('skips' as const) : ('fires' as const),
  attempt,
  ...(skip ? { reason: skip.reason, text: skip.text } : {}),
  ...(scheduledAt === undefined ? {} : { scheduled_at: iso(scheduledAt) }),
  ...(run === undefined ? {} : { run_id: run }),
  ...(event ? { event: event.name, event_seq: event.seq } : {}),
  ...(metadata?.missed_since === undefined ? {} : { missed_since: metadata.missed_since }),
  ...(metadata?.resumes_at === undefined ? {} : { resumes_at: metadata.resumes_at }),
})
