/** Durations as people write them: `30s`, `5m`, `1h30m`, `1.5h`, `7d`; `0` is none. A day is 24 hours. */
import * as v from 'valibot'

const UNITS = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const
const DAY_MS = 24 * UNITS.h
const DURATION = /^(?:0|(?:\d{1,9}(?:\.\d{1,6})?(?:ms|s|m|h|d))+)$/
const LONGEST_MS = 10 * 365 * DAY_MS

/** Milliseconds of a duration, at most ten years; undefined for anything else. */
export function durationMs(text: string): number | undefined {
  if (text.length > 64 || !DURATION.test(text)) return undefined
  let total = 0
  for (const [, count, unit] of text.matchAll(/([\d.]+)(ms|s|m|h|d)/g))
    total += Number(count) * (unit === 'd' ? DAY_MS : UNITS[unit as 'h'])
  return total <= LONGEST_MS ? Math.round(total) : undefined
}

/** The shortest text of one unit: 5400000 is `90m`, 604800000 is `168h`. */
export function durationText(ms: number): string {
  const unit = (Object.keys(UNITS) as (keyof typeof UNITS)[]).find(name => ms !== 0 && ms % UNITS[name] === 0) ?? 's'
  return `${ms / UNITS[unit]}${unit}`
}

/** A duration, parsed to milliseconds. */
export const Duration = v.pipe(
  v.string(),
  v.regex(DURATION, 'a duration like 30s, 1h30m or 7d'),
  v.transform(text => durationMs(text) ?? Number.POSITIVE_INFINITY),
  v.number(),
  v.maxValue(LONGEST_MS, 'a duration of at most ten years'),
)

/** A duration, kept as text. */
export const DurationText = v.pipe(
  v.string(),
  v.regex(DURATION, 'a duration like 30s, 1h30m or 7d'),
  v.check(text => durationMs(text) !== undefined, 'a duration of at most ten years'),
)
