import * as v from 'valibot'
import { settingsSection } from '../../../kernel/kit/settings.js'

const integer = (min: number, max: number) => v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max))
const setting = settingsSection({ path: 'observability', section: 'observability', apply: 'restart-required' })

/** Retention of the journal of events: days and total bytes. */
export const EventSettings = {
  retentionDays: setting('retention_days', integer(1, 3650), 7),
  maxBytes: setting('max_global_bytes', integer(2 ** 24, 2 ** 50), 2 ** 30),
}
