import { aborted } from '../../../kernel/kit/backoff.js'
import type { Actor, Tx } from '../../../kernel/plugin.js'
import type { LogsQuery, LogsReply, LogsStreamQuery } from '../../../schemas/daemon/logs.js'
import type { Overview, OverviewQuery } from '../../../schemas/observe.js'
import type { StoredEvent } from '../../platform/events/api.js'
import type { HookRun } from '../../work/hooks/api.js'
import { LocalTime } from '../../work/sessions/api.js'
import { Counter } from './counter.js'
import { EarlierDays } from './earlier.js'
import type { Logs } from './logs/logs.js'
import type { K } from './needs.js'
import { historyOf, isUnfinished } from './progress.js'
import { CountingEnabled } from './settings.js'
import { addDay, NO_COUNTS } from './tally.js'

/** Hook outcomes that count as failures, and outcomes of hooks that did not run. */
const FAILED: ReadonlySet<string> = new Set(['failed', 'rejected'])
const NOT_RUN: ReadonlySet<string> = new Set(['skipped', 'dropped'])

/** Counts events by hour and day, and provides the overview. */
export class ObserveService {
  readonly time: LocalTime
  readonly #counter: Counter
  readonly #earlier: EarlierDays
  readonly #counts: boolean
  #logs: Promise<Logs> | undefined
  /** The loaded logs. */
  #openLogs: Logs | undefined

  constructor(private readonly kernel: K) {
    this.time = new LocalTime(kernel.env.TZ)
    this.#counts = kernel.config.get(CountingEnabled)
    this.#counter = new Counter(kernel, this.time)
    this.#earlier = new EarlierDays(this.time)
  }

  /** Counting begins with the first start in a home; {@link history} counts earlier events. */
  async start(): Promise<void> {
    const { db, needs } = this.kernel
    const last = Number(needs.events.last())
    if (historyOf(this.kernel)) return this.#goOn(last)
    await db.tx(t =>
      t.run(
        `INSERT INTO observe_progress (id, counted, history, history_end, history_days) VALUES ('log', ?, 0, ?, ?)`,
        [last, last, last === 0 ? 1 : 0],
      ),
    )
    return this.#goOn(last)
  }

  /** Skips events from a time when counting was disabled. */
  async #goOn(last: number): Promise<void> {
    const { db } = this.kernel
    const wasOff = db.row("SELECT 1 FROM observe_progress WHERE id = 'off'") !== undefined
    if (wasOff !== this.#counts) return
    await db.tx(t => {
      if (wasOff) {
        t.run("UPDATE observe_progress SET counted = ? WHERE id = 'log'", [last])
        t.run("DELETE FROM observe_progress WHERE id = 'off'")
      } else
        t.run(
          "INSERT INTO observe_progress (id, counted, history, history_end, history_days) VALUES ('off', 0, 0, 0, 1)",
        )
    })
  }

  /** Handles an emitted event, whose transaction is still open. */
  happened({ seq }: Pick<StoredEvent, 'seq'>): undefined {
    if (this.#counts) this.#counter.wake()
    this.#openLogs?.happened(seq)
    return undefined
  }

  async logs(query: LogsQuery): Promise<LogsReply> {
    return (await this.#log()).list(query)
  }

  async logStream(query: LogsStreamQuery, lastEventId: string | undefined, signal: AbortSignal) {
    return (await (await this.#log()).stream(query, lastEventId))(signal)
  }

  #log(): Promise<Logs> {
    this.#logs ??= import('./logs/logs.js').then(({ Logs }) => {
      this.#openLogs = new Logs(this.kernel)
      return this.#openLogs
    })
    return this.#logs
  }

  /** Counts a hook run in the transaction that writes it. */
  hookRun(t: Tx, { at, outcome, workspaceId }: HookRun): undefined {
    if (!this.#counts || NOT_RUN.has(outcome)) return undefined
    const of = workspaceId !== '' && this.kernel.needs.workspaces.get(workspaceId) ? workspaceId : ''
    const counts = { ...NO_COUNTS, hook_runs: 1, hook_failures: FAILED.has(outcome) ? 1 : 0 }
    addDay(this.kernel.db.within(t), this.time.day(at), of, counts)
    return undefined
  }

  /** Counts the remaining events from before the first start, then waits for the abort. */
  async history(signal: AbortSignal): Promise<void> {
    // Events left uncounted at the last stop.
    if (this.#counts && this.#counter.position < this.kernel.needs.events.last()) this.#counter.wake()
    if (this.#counts && isUnfinished(historyOf(this.kernel))) {
      const { countHistory } = await import('./history.js')
      await countHistory(this.kernel, this.#counter, this.time, signal)
    }
    await aborted(signal)
  }

  async overview(actor: Actor, query: OverviewQuery): Promise<Overview> {
    const { overviewOf } = await import('./overview.js')
    const { workspaces } = this.kernel.needs
    const workspaceId = query.workspace ? (await workspaces.find(query.workspace)).id : undefined
    const request = { actor, workspaceId, usageDays: Number(query.usage_window) }
    const sources = { kernel: this.kernel, time: this.time, earlier: this.#earlier }
    if (!this.#counts) return overviewOf(sources, this.#counter.tally(), request)
    return this.#counter.withTail(tail => overviewOf(sources, tail, request))
  }
}
