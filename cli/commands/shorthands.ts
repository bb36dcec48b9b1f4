import type { CliShorthand } from '../../kernel/kit/annotations/index.js'
import { usageFault } from '../fault.js'
import type { Parameter, RouteCommand } from './command-data.js'
import type { Invocation } from './invocation.js'

const LOCAL = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d))?$/
/** Placeholder for the value of `--time-zone`. */
const ZONE = '$zone'
const DAY_MS = 24 * 60 * 60_000

/** Short options that set a member of the body: `--every`. */
export function shorthandsFor({ shorthands = [] }: Pick<RouteCommand, 'shorthands'>, parameter: Parameter): string[] {
  const { in: at, name } = parameter
  return at === 'body' ? shorthands.filter(({ member }) => member === name).map(({ option }) => `--${option}`) : []
}

/** The members of the body set by short options. Throws a usage error when two set the same one. */
export function expandShorthands(
  { shorthands = [] }: RouteCommand,
  options: Invocation['options'],
): Record<string, unknown> {
  const usedShorthands = shorthands.filter(({ option }) => options[option] !== undefined)
  const zone = options['time-zone'] as string | undefined
  const body: Record<string, unknown> = {}
  for (const { option, member, value, type } of usedShorthands) {
    if (member in body) throw usageFault(`give one of ${shorthands.map(other => `--${other.option}`).join(', ')}`)
    const text = String(options[option])
    const shown = type === 'time' ? absoluteTime(text, zone, option) : text
    const parts = Object.entries(value).map(([name, part]) => [
      name,
      part === '$' ? shown : part === ZONE ? zone : part,
    ])
    body[member] = Object.fromEntries(parts.filter(([, part]) => part !== undefined))
  }
  if (zone !== undefined && !usedShorthands.some(takesZone)) {
    const options = shorthands.filter(takesZone).map(({ option }) => `--${option}`)
    throw usageFault(`--time-zone requires ${options.join(' or ')}`)
  }
  return body
}

/** Whether the time or expression of the option depends on a time zone. */
export const takesZone = ({ type, value }: CliShorthand) => type === 'time' || Object.values(value).includes(ZONE)

/** Adds the zone to a local date and time; other texts are passed on to the daemon unchanged. */
function absoluteTime(text: string, zone: string | undefined, option: string): string {
  const parts = LOCAL.exec(text)
    ?.slice(1)
    .map(part => Number(part ?? 0))
  if (!parts) {
    if (zone !== undefined) throw usageFault(`--${option} with --time-zone takes a time like 2030-01-31T09:00`)
    return text
  }
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = parts
  const wall = Date.UTC(year, month - 1, day, hour, minute, second)
  // Nonexistent dates, such as 31 February, are refused by the daemon.
  const written = `${text.replace(' ', 'T')}${text.length === 16 ? ':00' : ''}Z`
  if (new Date(wall).toISOString().replace('.000', '') !== written) return written
  const [before, after] = [offsetOf(zone, wall - DAY_MS), offsetOf(zone, wall + DAY_MS)]
  // An ambiguous local time means its first occurrence; zones change their clocks at most once in two days.
  const found = [wall - before, wall - after].find(at => offsetOf(zone, at) === wall - at)
  return new Date(found ?? gapEnd(zone, wall - after, wall - before)).toISOString()
}

/** The instant in (from, to] at which clocks are set forward. A skipped local time means the end of the gap, as in cron. */
function gapEnd(zone: string | undefined, from: number, to: number): number {
  const old = offsetOf(zone, from)
  let [low, high] = [from, to]
  while (high - low > 1000) {
    const middle = low + Math.floor((high - low) / 2000) * 1000
    if (offsetOf(zone, middle) === old) low = middle
    else high = middle
  }
  return high
}

/** Offset of a zone from UTC at an instant, in milliseconds. */
function offsetOf(timeZone: string | undefined, at: number): number {
  try {
    const fields = new Intl.DateTimeFormat('en-US', {
      ...(timeZone === undefined ? {} : { timeZone }),
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    }).formatToParts(at)
    const part = (type: string) => Number(fields.find(field => field.type === type)?.value)
    return Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second')) - at
  } catch {
    throw usageFault(`--time-zone takes a name like Europe/Paris, not ${JSON.stringify(timeZone)}`)
  }
}
