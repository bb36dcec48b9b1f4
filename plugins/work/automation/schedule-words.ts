import type { Schedule } from '../../../schemas/automation.js'
import { nicknames } from './schedule.js'
import { offsetOf } from './zone.js'

/** Cached descriptions of cron expressions, oldest first: a description costs as much as a hundred occurrences. */
const described = new Map<string, string>()
const DESCRIBED = 500

/**
 * A schedule for people: `At 09:00, Monday through Friday (Europe/Paris)`.
 * @param timezone of schedules that name none
 */
export async function scheduleText(schedule: Schedule, timezone: string): Promise<string> {
  if (schedule.mode === 'every') return `Every ${schedule.interval?.trim()}`
  if (schedule.mode === 'at') return `Once, ${localTime(Date.parse(schedule.time ?? ''), timezone)}`
  return `${await cronText(schedule.expr?.trim() ?? '')} (${schedule.timezone ?? timezone})`
}

/** `2030-01-31 09:00 (Europe/Paris)`; seconds only when there are some. */
function localTime(at: number, timezone: string): string {
  if (Number.isNaN(at)) return 'never'
  const local = new Date(at + offsetOf(timezone, at)).toISOString()
  const seconds = local.slice(17, 19) === '00' ? '' : local.slice(16, 19)
  return `${local.slice(0, 10)} ${local.slice(11, 16)}${seconds} (${timezone})`
}

async function cronText(expr: string): Promise<string> {
  const known = described.get(expr)
  if (known !== undefined) return known
  const fields = (nicknames.get(expr) ?? expr).split(/\s+/)
  const [, , day = '', , weekday = ''] = fields
  const isBoth = day.startsWith('*') || weekday.startsWith('*')
  // Loaded with the first described schedule: most daemons describe none.
  const { default: cronstrue } = await import('cronstrue')
  const options = { use24HourTimeFormat: true, logicalAndDayFields: isBoth, throwExceptionOnParseError: false }
  const text = cronstrue.toString(fields.join(' '), options)
  const words = isBoth ? text : text.replace(', and on ', ' or on ')
  const [oldest] = described.keys()
  if (described.size >= DESCRIBED && oldest !== undefined) described.delete(oldest)
  described.set(expr, words)
  return words
}
