const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
const DURATION = /^(?:\d{1,9}(?:\.\d{1,6})?(?:ms|s|m|h))+$/
const TEN_YEARS = 10 * 365 * 24 * UNITS.h!

/** Milliseconds of a duration like `30s`, `1h30m` or `1.5h`, at most ten years; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  if (text.length > 64 || !DURATION.test(text)) return undefined
  let total = 0
  for (const [, count, unit] of text.matchAll(/([\d.]+)(ms|s|m|h)/g)) total += Number(count) * UNITS[unit!]!
  return total <= TEN_YEARS ? Math.round(total) : undefined
}
