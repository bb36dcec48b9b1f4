import * as v from 'valibot'
import type { Setting } from '../../kernel/plugin.js'

const integer = (min: number, max: number) => v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max))
const setting = (path: string, schema: v.GenericSchema<unknown, number>, initial: number): Setting<number> => ({
  path: `observability.${path}`,
  section: 'observability',
  schema,
  default: initial,
  apply: 'restart-required',
})

/** Retention of the journal of events: days and total bytes. */
export const EventSettings = {
  retentionDays: setting('retention_days', integer(1, 3650), 7),
  maxBytes: setting('max_global_bytes', integer(2 ** 24, 2 ** 50), 2 ** 30),
}
