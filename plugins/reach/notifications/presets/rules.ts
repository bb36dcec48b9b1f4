import { durationMs } from '../../../../schemas/duration.js'
import type { PresetRules, QuietHours } from '../../../../schemas/notifications.js'
import { NotificationErrors } from '../api.js'

/** Rules of a preset for one subject. */
export interface Pace {
  readonly afterFailures: number
  readonly onlyOnChange: boolean
  /** Milliseconds. */
  readonly cooldown: number
}

/** The rules for a subject: its own, else those of the preset. */
export function paceOf(rules: PresetRules | undefined, subject: string): Pace {
  const own = rules?.subjects && Object.hasOwn(rules.subjects, subject) ? rules.subjects[subject] : undefined
  const cooldown = own?.cooldown ?? rules?.cooldown
  return {
    afterFailures: own?.after_failures ?? rules?.after_failures ?? 1,
    onlyOnChange: own?.only_on_change ?? rules?.only_on_change ?? false,
    cooldown: cooldown === undefined ? 0 : (durationMs(cooldown) ?? 0),
  }
}

/** Checks rules that the schema cannot express. @throws Fault `preset_rules_invalid` (400) */
export function checkRules(rules: PresetRules | undefined): void {
  const quiet = rules?.quiet_hours
  if (!quiet) return
  if (quiet.from === quiet.to)
    throw NotificationErrors.preset_rules_invalid('quiet_hours: from and to are the same time of day')
  try {
    clockOf(quiet.time_zone)
  } catch {
    throw NotificationErrors.preset_rules_invalid(
      `quiet_hours.time_zone: ${JSON.stringify(quiet.time_zone)} is not a time zone; use one such as Europe/Berlin`,
    )
  }
}

const MINUTE_MS = 60_000
const DAY_MINUTES = 24 * 60
const formats = new Map<string, Intl.DateTimeFormat>()

/** @throws RangeError for an unknown time zone */
function clockOf(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone)
  if (!format) {
    format = new Intl.DateTimeFormat('en-GB', { timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
    formats.set(timeZone, format)
  }
  return format
}

const minutesOf = (text: string) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3, 5))

/** Whether a time is within the quiet hours, which may extend past midnight. */
export function isQuiet(quiet: QuietHours, at: number): boolean {
  const minute = minutesOf(clockOf(quiet.time_zone).format(at))
  const [from, to] = [minutesOf(quiet.from), minutesOf(quiet.to)]
  return from < to ? minute >= from && minute < to : minute >= from || minute < to
}

/** End of the quiet hours after `at`; clock changes of the time zone are considered. */
export function quietEnd(quiet: QuietHours, at: number): number {
  const start = Math.floor(at / MINUTE_MS) * MINUTE_MS
  const left = (minutesOf(quiet.to) - minutesOf(clockOf(quiet.time_zone).format(at)) + DAY_MINUTES) % DAY_MINUTES
  let end = start + Math.max(1, left) * MINUTE_MS
  // After a clock change forward the computed end is too late; after one backward it is too early.
  while (end - 15 * MINUTE_MS > at && !isQuiet(quiet, end - 15 * MINUTE_MS)) end -= 15 * MINUTE_MS
  for (let more = 0; isQuiet(quiet, end) && more < DAY_MINUTES; more++) end += MINUTE_MS
  return end
}
