import { backoff } from '../../../kernel/kit/backoff.js'
import { messageOf, type Timer, turn } from '../../../kernel/plugin.js'
import type { LocalTime } from '../../work/sessions/api.js'
import type { K } from './needs.js'
import { KEPT_DAYS } from './tables.js'
import { DECIDED_BY_PAYLOAD, SLOT_MS, Tally } from './tally.js'

/** Milliseconds for which events are collected: a busy daemon writes once in this time. */
const WAIT_MS = 2000
/** Log positions counted per transaction, and events read at once. */
const STEP = 10_000
const PAGE = 1000

/** Counted events after a position, with the position of the last one. */
export interface Behind {
  readonly from: number
  readonly tally: Tally
  readonly upTo: number
}

/**
 * Adds the events of the log to the hours and days exactly once: the position of the newest counted event is written in
 * the transaction of its counts. The log sums most events itself; only those whose payload matters are read.
 */
export class Counter {
  #timer: Timer | undefined
  #isCounting = false
  #failures = 0
  /** The oldest kept day at the last cleanup. */
  #swept = ''

  constructor(
    private readonly kernel: K,
    private readonly time: LocalTime,
  ) {
    kernel.scope.defer('events to count', () => this.#timer?.cancel())
  }

  /** Position of the newest counted event. */
  get position(): number {
    return Number(this.kernel.db.row("SELECT counted FROM observe_progress WHERE id = 'log'")?.[0] ?? 0)
  }

  /** A new tally, which looks up each workspace once. */
  tally(): Tally {
    const known = new Map<string, boolean>()
    const { workspaces } = this.kernel.needs
    return new Tally(this.time, id => {
      const found = known.get(id) ?? workspaces.get(id) !== undefined
      known.set(id, found)
      return found
    })
  }

  /** Called for each event before its transaction is committed: schedules the counting, which reads committed events only. */
  wake(): void {
    if (this.#timer || this.#isCounting) return
    this.#wait(WAIT_MS)
  }

  /**
   * Reads the tables together with up to one step of uncounted events.
   * @param read called once, at a moment when nothing in the tally is in the tables
   */
  async withTail<T>(read: (tally: Tally) => T): Promise<T> {
    for (;;) {
      const { from, tally } = await this.#after(this.position)
      if (this.position === from) return read(tally)
    }
  }

  async #after(after: number): Promise<Behind> {
    const { events } = this.kernel.needs
    const tally = this.tally()
    const found = events.sums(after, SLOT_MS, STEP)
    if (!found) {
      const page = await events.list({ after, limit: PAGE })
      for (const event of page) tally.add(event)
      return { from: after, tally, upTo: page.at(-1)?.seq ?? events.last() }
    }
    const { upTo, sums } = found
    for (const sum of sums) tally.addSum(sum)
    for (const name of DECIDED_BY_PAYLOAD)
      if (sums.some(sum => sum.name === name))
        for await (const event of this.#named(name, after, upTo)) tally.addOutcome(event)
    return { from: after, tally, upTo }
  }

  async *#named(name: string, after: number, upTo: number) {
    for (let from = after, isMore = true; isMore; ) {
      const page = await this.kernel.needs.events.list({ name, after: from, limit: PAGE })
      const wanted = page.filter(({ seq }) => seq <= upTo)
      yield* wanted
      from = page.at(-1)?.seq ?? upTo
      isMore = wanted.length === PAGE
    }
  }

  #wait(ms: number): void {
    this.#timer = this.kernel.clock.timeout(
      ms,
      () => {
        this.#timer = undefined
        void this.#run()
      },
      { unref: true },
    )
  }

  /** Counts until nothing is left; failures are retried later. */
  async #run(): Promise<void> {
    const { log, ids, scope, needs } = this.kernel
    this.#isCounting = true
    try {
      while (!scope.signal.aborted && this.position < needs.events.last()) {
        await this.#count()
        await turn()
      }
      this.#failures = 0
    } catch (error) {
      if (scope.signal.aborted) return
      log.error('events are not counted until the next try', { error: messageOf(error) })
      this.#wait(backoff(++this.#failures, () => ids.random(), RETRY))
    } finally {
      this.#isCounting = false
    }
    // An event emitted at the end did not schedule a run.
    if (!this.#timer && !scope.signal.aborted && this.position < needs.events.last()) this.#wait(WAIT_MS)
  }

  async #count(): Promise<void> {
    const { from, tally, upTo } = await this.#after(this.position)
    await this.kernel.db.tx(t => {
      if (this.position !== from) return
      tally.write(t)
      t.run("UPDATE observe_progress SET counted = ? WHERE id = 'log'", [upTo])
      const [oldest = ''] = this.time.daysTo(this.kernel.clock.now(), KEPT_DAYS)
      if (this.#swept === oldest) return
      t.run('DELETE FROM observe_day WHERE day < ?', [oldest])
      t.run('DELETE FROM observe_hour WHERE hour < ?', [this.time.dayStart(oldest)])
      this.#swept = oldest
    })
  }
}

const RETRY = { firstMs: WAIT_MS, longestMs: 60_000 }
