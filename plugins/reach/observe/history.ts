import { messageOf, type Tx } from '../../../kernel/plugin.js'
import type { LocalTime } from '../../work/sessions/api.js'
import type { Counter } from './counter.js'
import type { K } from './needs.js'
import { type HistoryProgress, historyOf, isUnfinished } from './progress.js'
import { KEPT_DAYS } from './tables.js'
import { RUN_ENDS } from './tally.js'

/** Events counted per step, and the pause after it in milliseconds. */
const STEP = 500
const PAUSE_MS = 50
const DAY_MS = 86_400_000

/**
 * Counts the events from before the first start of the plugin: those still in the log one by one, in steps with pauses;
 * older ones, of which the log has only counts by day (UTC) and name, as outcomes of these days. A step and its
 * progress share a transaction, so that a restarted daemon continues after the last step.
 */
export async function countHistory(kernel: K, counter: Counter, time: LocalTime, signal: AbortSignal): Promise<void> {
  const { db, clock, log } = kernel
  while (!signal.aborted) {
    const progress = historyOf(kernel)
    if (!isUnfinished(progress)) return
    try {
      if (progress.history_days === 0) await countDays(kernel, counter, time)
      else await step(kernel, counter, progress)
    } catch (error) {
      // A damaged journal of old events must not prevent counting newer ones.
      log.warn('older events are not part of the overview', { error: messageOf(error) })
      await db.tx(t => done(t))
      return
    }
    await clock.sleep(PAUSE_MS, signal).catch(() => {})
  }
}

async function step({ db, needs }: K, counter: Counter, { history, history_end: end }: HistoryProgress): Promise<void> {
  const found = await needs.events.list({ after: history, limit: STEP })
  const events = found.filter(({ seq }) => seq <= end)
  const to = found.length < STEP || events.length < found.length ? end : (events.at(-1)?.seq ?? end)
  await db.tx(t => {
    const tally = counter.tally()
    for (const event of events) tally.add(event)
    tally.write(t)
    t.run("UPDATE observe_progress SET history = ? WHERE id = 'log'", [to])
  })
}

/** Counts the days before the oldest event; the part of its own day that has left the log is omitted. */
async function countDays({ db, clock, needs }: K, counter: Counter, time: LocalTime): Promise<void> {
  const { events, workspaces } = needs
  const now = clock.now()
  const [oldest] = await events.list({ limit: 1 })
  const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10)
  const [from = ''] = time.daysTo(now, KEPT_DAYS)
  const to = dayOf((oldest?.at ?? now) - DAY_MS)
  const scopes = ['', ...workspaces.list().map(({ id }) => id)]
  const tally = counter.tally()
  for (const [name, what] of Object.entries(RUN_ENDS)) {
    if (from > to) break
    const all = new Map<string, number>()
    for (const scope of scopes.toReversed())
      for (const { day, n } of events.counts({ name, from, to, ...(scope === '' ? {} : { scope }) })) {
        // The last scope is the total: the remainder belongs to no workspace, or to deleted ones.
        const left = scope === '' ? n - (all.get(day) ?? 0) : n
        all.set(day, (all.get(day) ?? 0) + n)
        if (left > 0) tally.count(day, scope, what, left)
      }
  }
  await db.tx(t => {
    tally.write(t)
    t.run("UPDATE observe_progress SET history_days = 1 WHERE id = 'log'")
  })
}

const done = (t: Tx) => t.run("UPDATE observe_progress SET history = history_end, history_days = 1 WHERE id = 'log'")
