import { hash } from 'node:crypto'
import { Cron } from 'croner'
import * as v from 'valibot'
import { canonicalJson } from '../../../kernel/kit/canonical.js'
import { shown } from '../../../kernel/kit/text.js'
import type { Schedule } from '../../../schemas/automation.js'
import { durationMs } from '../../../schemas/duration.js'
import { Timestamp } from '../../../schemas/kernel/common.js'
import { isTimezone } from './zone.js'

/** Epoch milliseconds: an earlier time means that the clock is not set yet (a machine without a clock battery). */
const CLOCK_IS_SET = Date.UTC(2020, 0, 1)

/** An occurrence claimed later than this counts as late. */
const LATE_MS = 1000

/** Run ids are derived from whole seconds, so two occurrences must not fall into the same second. */
const SHORTEST_INTERVAL_MS = 1000
const RFC3339 = /^\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/
const TIME_SHAPE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/
/** Nicknames of expressions, as in cron. `@reboot` is missing: no job runs at the start of the machine. */
export const nicknames: ReadonlyMap<string, string> = new Map([
  ['@hourly', '0 * * * *'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@weekly', '0 0 * * 0'],
  ['@monthly', '0 0 1 * *'],
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
])
const CRON_FIELD = /^[\d*,/-]+$/
const CRON_NAMES = /\b(?:JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC|SUN|MON|TUE|WED|THU|FRI|SAT)\b/gi
/** A leap year: an expression without an occurrence after this date never has one. */
const SOME_TIME = new Date(Date.UTC(2024, 0, 1))

const FIELDS = { cron: 'expr', every: 'interval', at: 'time' } as const

/** Validates a schedule; undefined when it is valid. */
export function scheduleProblem(schedule: Schedule): string | undefined {
  const own = FIELDS[schedule.mode]
  for (const field of Object.values(FIELDS)) {
    if (field !== own && schedule[field])
      return `schedule.${field}: not allowed with mode ${schedule.mode}, which uses ${own}`
  }
  if (schedule.timezone !== undefined) {
    if (schedule.mode !== 'cron') return `schedule.timezone: not allowed with mode ${schedule.mode}`
    if (!isTimezone(schedule.timezone)) return 'schedule.timezone: must be an IANA name such as Europe/Paris'
  }
  const value = schedule[own]?.trim()
  if (!value) return `schedule.${own}: required for mode ${schedule.mode}`
  const grace = schedule.misfire_grace_seconds
  if (grace !== undefined && (grace < 0 || !Number.isSafeInteger(grace))) {
    return 'schedule.misfire_grace_seconds: must be an integer of 0 or more'
  }
  switch (schedule.mode) {
    case 'cron':
      return cronProblem(value)
    case 'every': {
      const interval = durationMs(value)
      if (interval === undefined) return 'schedule.interval: must be a duration such as 30s, 1h30m or 7d'
      return interval < SHORTEST_INTERVAL_MS ? 'schedule.interval: must be at least 1s' : undefined
    }
    case 'at':
      if (schedule.catch_up_policy !== undefined) return 'schedule.catch_up_policy: not allowed with mode at'
      if (grace !== undefined) return 'schedule.misfire_grace_seconds: not allowed with mode at'
      if (!TIME_SHAPE.test(value)) return 'schedule.time: must be an RFC 3339 time such as 2030-01-31T09:00:00Z'
      return RFC3339.test(value) && v.is(Timestamp, value)
        ? undefined
        : `schedule.time: there is no ${shown(value, 40)}; give a date and an hour that exist`
  }
}

function cronProblem(expr: string): string | undefined {
  if (expr.startsWith('@')) {
    if (nicknames.has(expr)) return undefined
    const why = expr === '@reboot' ? 'no job runs at the start of the machine' : 'it is not known'
    return `schedule.expr: ${shown(expr, 40)}: ${why}; use one of ${[...nicknames.keys()].join(', ')} or five fields`
  }
  if (expr.length > 256) return `schedule.expr: has ${expr.length} characters; at most 256 are allowed`
  const fields = expr.split(/\s+/)
  if (fields.length !== 5) return 'schedule.expr: must have five fields, as in 0 9 * * 1-5'
  if (!fields.every(field => CRON_FIELD.test(field.replace(CRON_NAMES, '0')))) {
    return 'schedule.expr: only numbers, month and weekday names, and * , - / are allowed'
  }
  try {
    const cron = cronOf(expr, 'UTC')
    // Each read of a job asks this.
    const matches = matching.get(cron) ?? cron.nextRun(SOME_TIME) !== null
    matching.set(cron, matches)
    return matches ? undefined : `schedule.expr: ${shown(expr, 60)} never matches: no year has such a day`
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    return `schedule.expr: ${text.replace(/^CronPattern: /, '')}`
  }
}

/** Cache of parsed expressions, oldest first: parsing costs ten times as much as computing the next occurrence. */
const parsed = new Map<string, Cron>()
const PARSED = 2000

/** Whether an expression has an occurrence at all. */
const matching = new WeakMap<Cron, boolean>()

function cronOf(expr: string, timezone: string): Cron {
  const key = `${timezone} ${expr}`
  const known = parsed.get(key)
  if (known) return known
  // As cron does: where a day field begins with *, both days must match, otherwise either.
  const text = nicknames.get(expr.trim()) ?? expr
  const [, , day = '', , weekday = ''] = text.trim().split(/\s+/)
  const domAndDow = day.startsWith('*') || weekday.startsWith('*')
  const cron = new Cron(timesOf(text), { mode: '5-part', timezone, domAndDow, fixedTimeRule: 'no-wildcard' })
  const [oldest] = parsed.keys()
  if (parsed.size >= PARSED && oldest !== undefined) parsed.delete(oldest)
  parsed.set(key, cron)
  return cron
}

/**
 * The expression with minutes and hours as lists, unless one begins with `*`: it then names times of day, each of which occurs once
 * even on a day with a clock change. croner would treat a step as an interval.
 */
function timesOf(expr: string): string {
  const [minute = '', hour = '', ...days] = expr.trim().split(/\s+/)
  if (minute.startsWith('*') || hour.startsWith('*')) return expr.trim()
  return [listOf(minute, 59), listOf(hour, 23), ...days].join(' ')
}

/** Steps of ranges as numbers. Other text stays as it is, and croner refuses it. */
function listOf(field: string, most: number): string {
  const parts = field.split(',').map(part => {
    const [, range = '', from = '0', to = String(most), by = ''] =
      /^(\*|(\d{1,2})-(\d{1,2}))\/(\d{1,2})$/.exec(part) ?? []
    const [first, last, step] = [Number(from), Number(to), Number(by)]
    if (range === '' || step < 1 || last > most || first > last) return part
    return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, n) => first + n * step).join(',')
  })
  return parts.join(',')
}

/** Changes whenever the occurrences of a schedule or its handling of misfires change. */
export function scheduleHash(schedule: Schedule | undefined, timezone: string): string {
  if (!schedule) return ''
  const { mode, expr, interval, time, catch_up_policy: policy, misfire_grace_seconds: grace } = schedule
  const zone = mode === 'cron' ? (schedule.timezone ?? timezone) : ''
  return hash('sha256', canonicalJson({ mode, expr, interval, time, policy, grace, zone })).slice(0, 32)
}

/** The occurrences of one schedule, in epoch milliseconds. */
export class Occurrences {
  readonly #timezone: string

  /** @param timezone of schedules that name none */
  constructor(
    private readonly schedule: Schedule,
    timezone: string,
  ) {
    this.#timezone = schedule.timezone ?? timezone
  }

  /** The first occurrence of a job created or changed at `now`; undefined when there is none. */
  first(now: number): number | undefined {
    if (this.schedule.mode === 'every') return now + this.#interval
    if (this.schedule.mode === 'cron') return this.#cronAfter(now)
    const time = Date.parse(this.schedule.time ?? '')
    return time > now ? time : undefined
  }

  /** The first occurrence after `instant`, on the grid that contains `due`. Intervals never drift. */
  after(due: number, instant: number): number | undefined {
    if (this.schedule.mode === 'at') return undefined
    if (this.schedule.mode === 'cron') return this.#cronAfter(instant)
    return due + (Math.floor((instant - due) / this.#interval) + 1) * this.#interval
  }

  /** The first occurrence after `now` when the clock was set back to before the cursor `due`. */
  again(due: number | undefined, now: number): number | undefined {
    return due === undefined || this.schedule.mode === 'at' ? this.first(now) : this.after(due, now)
  }

  /**
   * Corrects a cursor that was computed while the clock was not set: it moves past the last occurrence claimed with a
   * correct clock, else past now. Otherwise decades of occurrences would be replayed.
   */
  corrected(due: number, last: number | undefined, now: number): number | undefined {
    if (due >= CLOCK_IS_SET || now < CLOCK_IS_SET) return due
    const known = last !== undefined && last >= CLOCK_IS_SET && last <= now
    return known ? this.after(last, last) : this.again(due, now)
  }

  /** The latest occurrence from `due` up to `now`. */
  latest(due: number, now: number): number {
    if (this.schedule.mode === 'at' || now < due) return due
    if (this.schedule.mode === 'every') return due + Math.floor((now - due) / this.#interval) * this.#interval
    // croner only returns whole seconds strictly before its reference.
    const [last] = this.#cron.previousRuns(1, new Date(Math.floor(now / 1000) * 1000 + 1000))
    return Math.max(due, last?.getTime() ?? due)
  }

  get #cron(): Cron {
    return cronOf(this.schedule.expr ?? '', this.#timezone)
  }

  #cronAfter(instant: number): number | undefined {
    return this.#cron.nextRun(new Date(instant))?.getTime()
  }

  get #interval(): number {
    return durationMs(this.schedule.interval?.trim() ?? '') ?? Number.POSITIVE_INFINITY
  }
}

/** The decision for a cursor that is due. */
export interface Decision {
  /** The occurrence to claim. */
  readonly at: number
  /** The next cursor position; undefined when the schedule has ended. */
  readonly next: number | undefined
  /** Occurrences were missed. */
  readonly misfire: boolean
  /** The occurrence is recorded as canceled instead of run. */
  readonly skip?: 'misfire_grace_exceeded'
  /** Part of a backlog that is replayed one run after another. */
  readonly backlog: boolean
}

/**
 * Decides about one due occurrence. `missed`: it was due before this daemon started. Otherwise it counts as a misfire only
 * when the next occurrence is due as well (the machine slept): lateness of the event loop alone skips nothing.
 */
export function decide(schedule: Schedule, timezone: string, due: number, now: number, missed: boolean): Decision {
  const occurrences = new Occurrences(schedule, timezone)
  const following = occurrences.after(due, due)
  const overtaken = following !== undefined && following <= now
  if (!missed && !overtaken) {
    // The last occurrence of a backlog also waits for the previous run.
    const backlog = schedule.catch_up_policy === 'replay' && now - due >= LATE_MS
    return { at: due, next: following, misfire: false, backlog }
  }
  if (schedule.catch_up_policy === 'replay') return { at: due, next: following, misfire: true, backlog: true }
  const latest = occurrences.latest(due, now)
  const next = occurrences.after(due, now)
  if (schedule.catch_up_policy === 'coalesce' || schedule.catch_up_policy === 'run_once_on_catchup') {
    return { at: latest, next, misfire: true, backlog: false }
  }
  const grace = (schedule.misfire_grace_seconds || 1) * 1000
  const skip = now - latest > grace ? ({ skip: 'misfire_grace_exceeded' } as const) : {}
  return { at: latest, next, misfire: true, backlog: false, ...skip }
}

/** Ids of an occurrence, derived from the job and the instant, so that an occurrence can be claimed only once. */
export function occurrenceIds(job: string, at: number): { readonly fire: string; readonly run: string } {
  const second = `${new Date(at).toISOString().slice(0, 19)}Z`
  const hex = hash('sha256', `${job}|${second}`).slice(0, 24)
  return { fire: `fire_${hex}`, run: `run_${hex}` }
}
