import { readlinkSync } from 'node:fs'

const formats = new Map<string, Intl.DateTimeFormat>()

/** Whether this system knows the IANA time zone. */
export function isTimezone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return !/^[+-]/.test(name)
  } catch {
    return false
  }
}

/** Offset of a zone from UTC at an instant, in milliseconds. */
export function offsetOf(timeZone: string, at: number): number {
  let format = formats.get(timeZone)
  if (!format) {
    const [day, time] = ['numeric', 'numeric'] as const
    format = new Intl.DateTimeFormat('en-US', {
      ...{ timeZone, hourCycle: 'h23', year: day, month: day, day },
      ...{ hour: time, minute: time, second: time },
    })
    formats.set(timeZone, format)
  }
  const parts = format.formatToParts(at)
  const part = (type: string) => Number(parts.find(one => one.type === type)?.value)
  const shown = [part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second')] as const
  return Date.UTC(...shown) - Math.floor(at / 1000) * 1000
}

/**
 * The IANA name of the machine's time zone. The link of the system clock is read first, because Intl loads language data that a
 * daemon without cron jobs never needs.
 */
export function machineTimezone(variable: string | undefined, link = '/etc/localtime'): string {
  // As in the C library, a variable that is set but empty means UTC.
  if (variable === '') return 'UTC'
  const named = variable?.replace(/^:/, '') ?? ''
  const name = named === '' ? /\/zoneinfo\/(?:posix\/|right\/)?([A-Za-z][\w+/-]*)$/.exec(linkTarget(link))?.[1] : named
  if (name !== undefined && (named === '' || plain(name) === 'UTC' || isTimezone(name))) return plain(name)
  const own = new Intl.DateTimeFormat().resolvedOptions().timeZone as string | undefined
  return own !== undefined && isTimezone(own) ? plain(own) : 'UTC'
}

/** Maps the many names of UTC to one. */
const plain = (name: string) => (/^(?:Etc\/)?(?:UTC|UCT|Universal|Zulu|GMT|Unknown)$/.test(name) ? 'UTC' : name)

function linkTarget(link: string): string {
  try {
    return readlinkSync(link)
  } catch {
    return ''
  }
}
