import * as v from 'valibot'
import type { Setting } from '../../../kernel/plugin.js'

const logFile = (name: string, least: number, most: number, fallback: number): Setting<number> => ({
  path: `log.${name}`,
  section: 'observability',
  schema: v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most)),
  default: fallback,
  apply: 'restart-required',
})

/** Settings of the daemon's log file: maximum size, number of rotated files, and days they are kept (0: no limit). */
export const LogSettings = {
  megabytes: logFile('max_size_mb', 1, 1024, 10),
  backups: logFile('max_backups', 0, 100, 5),
  days: logFile('max_age_days', 0, 3650, 30),
}
