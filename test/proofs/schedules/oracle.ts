// What the documents say of occurrences, minute by minute and without any cleverness; shares no code with the product.
import type { Cron, PlannedJob } from './random-jobs.js'

const MINUTE = 60_000
const QUARTER = 15 * MINUTE

/**
 * All occurrences in (start, end], by job, ascending. Where clocks are set forward over the time of a job with one hour, it is due at
 * the first minute that they show then; where they are set back, at the first of the two. One of every hour is due whenever the clocks show
 * its minute.
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
      const [minute, hour] = [date.getUTCMinutes(), date.getUTCHours()]
      for (const { times, cron } of due) {
        const isNow = cron.minute === minute && (cron.hour ?? hour) === hour && shows(cron, date)
        const isDue =
          cron.hour === undefined
            ? isNow
            : now > latest &&
              (isNow ||
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

function shows({ minute, hour, day, weekday, months }: Cron, date: Date): boolean {
  return (
    date.getUTCMinutes() === minute &&
    (months === undefined || months.includes(date.getUTCMonth() + 1)) &&
    (hour === undefined || date.getUTCHours() === hour) &&
    (day === undefined || date.getUTCDate() === day) &&
    (weekday === undefined || date.getUTCDay() === weekday)
  )
}
