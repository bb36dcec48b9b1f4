import { signal } from '@preact/signals'

/** The current time, updated every half minute, so that texts such as "2 min ago" stay correct. */
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

/** A past or future time relative to now. */
export function ago(time: string | null | undefined): string {
  if (!time) return '–'
  // The tick may be older than the displayed time.
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

/** A value for display: text unchanged, everything else as JSON. */
export const valueText = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '–' : JSON.stringify(value, null, 2)
