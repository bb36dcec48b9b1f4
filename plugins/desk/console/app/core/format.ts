import { signal } from '@preact/signals'

/** The time now, to the half minute: texts such as "2 min ago" follow it. */
export const now = signal(Date.now())
setInterval(() => {
  now.value = Date.now()
}, 30_000)

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const STEPS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const

/** A time as the distance from now, in both directions. */
export function ago(time: string | null | undefined): string {
  if (!time) return '–'
  // The tick may be older than what is shown.
  const distance = Date.parse(time) - Math.max(now.value, Date.now())
  for (const [unit, ms] of STEPS) if (Math.abs(distance) >= ms) return relative.format(Math.round(distance / ms), unit)
  return distance > 0 ? 'soon' : 'just now'
}

export const clock = (time: string | null | undefined): string => (time ? absolute.format(new Date(time)) : '–')

export const number = new Intl.NumberFormat()

export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const step = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, count)) / 10))
  return `${(count / 1024 ** step).toFixed(step === 0 ? 0 : 1)} ${units[step]}`
}

/** A value as a person reads it: text as it is, everything else as JSON. */
export const valueText = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '–' : JSON.stringify(value, null, 2)
