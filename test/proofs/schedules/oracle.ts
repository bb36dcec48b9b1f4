// What the documents say of occurrences, minute by minute and without any cleverness; shares no code with the product.
import type { Cron, PlannedJob } from './random-jobs.js'

const MINUTE = 60_000
const QUARTER = 15 * MINUTE

/**
 * All occurrences in (start, end], by job, ascending. An expression whose minute or hour begins with `*` is due whenever the clocks show
 * what it names. Any other one names times of the day: one that the clocks leave out is due at the first minute that they show then,
 * one that they show twice at the first of the two.
 */
export function occurrences(
  jobs: readonly PlannedJob[],
  timezone: string,
  start: number,
  end: number,
): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>(jobs.map(({ id }) => [id, []]))
  for (const { id, plan } of jobs) {
    if (plan.mode !== 'every') continue
    for (let at = start + plan.minutes * MINUTE; at <= end; at += plan.minutes * MINUTE) found.get(id)?.push(at)
  }
  const crons = jobs.flatMap(({ id, plan }) => (plan.mode === 'cron' ? [{ id, cron: plan.cron }] : []))
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short', timeStyle: 'short' })
  /** The minute that the clocks show, as if it were one of UTC. */
  const shown = (at: number) => {
    const text = format.format(at)
    return Date.UTC(
      +text.slice(0, 4),
      +text.slice(5, 7) - 1,
      +text.slice(8, 10),
      +text.slice(11, 13),
      +text.slice(14, 16),
    )
  }
  const due = crons.map(({ id, cron }) => ({ times: found.get(id) ?? [], cron }))
  let before = shown(start)
  let latest = before
  const first = Math.floor(start / MINUTE) * MINUTE + MINUTE
  for (let quarter = first; quarter <= end; quarter += QUARTER) {
    const from = shown(quarter)
    // Clocks that show a quarter of an hour more after one have run evenly: no zone changes them to and fro within it.
    const isEven = shown(quarter + QUARTER) - from === QUARTER
    for (let at = quarter; at < quarter + QUARTER && at <= end; at += MINUTE) {
      const now = isEven ? from + at - quarter : shown(at)
      const date = new Date(now)
      for (const { times, cron } of due) {
        const isDue =
          cron.isEachMinute || cron.isEachHour
            ? shows(cron, date)
            : now > latest &&
              (shows(cron, date) ||
                anyOf(before + MINUTE, now - MINUTE, passed => passed > latest && shows(cron, new Date(passed))))
        if (isDue) times.push(at)
      }
      before = now
      latest = Math.max(latest, now)
    }
  }
  return found
}

/** Where clocks are set forward, all minutes that they leave out; mostly none. */
function anyOf(from: number, to: number, wanted: (minute: number) => boolean): boolean {
  for (let minute = from; minute <= to; minute += MINUTE) if (wanted(minute)) return true
  return false
}

function shows(cron: Cron, date: Date): boolean {
  if (!cron.minutes.has(date.getUTCMinutes()) || !cron.hours.has(date.getUTCHours())) return false
  if (!cron.months.has(date.getUTCMonth() + 1)) return false
  const isDay = cron.days.has(date.getUTCDate())
  const isWeekday = cron.weekdays.has(date.getUTCDay())
  return cron.isEachDay || cron.isEachWeekday ? isDay && isWeekday : isDay || isWeekday
}
