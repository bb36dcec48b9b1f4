import { usageFault } from '../fault.js'
import type { Parameter, RouteCommand } from './command-data.js'
import type { Given } from './given.js'

const LOCAL = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d))?$/

/** Short options that make a member of the body: `--every`. */
export function shorthandsFor({ shorthands = [] }: Pick<RouteCommand, 'shorthands'>, parameter: Parameter): string[] {
  const { in: at, name } = parameter
  return at === 'body' ? shorthands.filter(({ member }) => member === name).map(({ option }) => `--${option}`) : []
}

/** The members of the body that short options make. Throws a usage fault when two make the same one. */
export function expandShorthands(
  { shorthands = [] }: RouteCommand,
  options: Given['options'],
): Record<string, unknown> {
  const given = shorthands.filter(({ option }) => options[option] !== undefined)
  const zone = options['time-zone'] as string | undefined
  const body: Record<string, unknown> = {}
  for (const { option, member, value, type } of given) {
    if (member in body) throw usageFault(`give one of ${shorthands.map(other => `--${other.option}`).join(', ')}`)
    const text = String(options[option])
    const shown = type === 'time' ? absoluteTime(text, zone, option) : text
    body[member] = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, part === '$' ? shown : part]))
  }
  if (zone !== undefined && !given.some(({ type }) => type === 'time')) {
    const timed = shorthands.filter(({ type }) => type === 'time').map(({ option }) => `--${option}`)
    throw usageFault(`--time-zone requires ${timed.join(', ')}; cron expressions use automation.timezone`)
  }
  return body
}

/** A date and time without a zone as one with it; anything else as it stands, for the daemon to judge. */
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
  // The offset depends on the instant, which depends on the offset: the second look is right but for a gap in the zone.
  const guess = wall - offsetOf(zone, wall)
  return new Date(wall - offsetOf(zone, guess)).toISOString()
}

/** Milliseconds that the clocks of a zone are ahead of UTC at an instant. */
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
