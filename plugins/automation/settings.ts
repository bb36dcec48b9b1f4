import * as v from 'valibot'
import { settingsSection } from '../../kernel/kit/settings.js'
import { FireLimit } from '../../schemas/automation.js'
import { durationMs } from '../../schemas/duration.js'
import { isTimezone } from './schedule.js'

const setting = settingsSection({ path: 'automation', section: 'automation', apply: 'restart-required' })

/** The settings of automation. */
export const AutomationSettings = {
  /** False: nothing is fired, by schedule or by hand; definitions and history stay. */
  enabled: setting('enabled', v.boolean(), true),
  /** Of cron expressions: an IANA name. */
  timezone: setting('timezone', v.pipe(v.string(), v.check(isTimezone, 'an IANA time zone like Europe/Paris')), 'UTC'),
  /** Runs that go on at once, over all jobs. */
  maxConcurrentJobs: setting(
    'max_concurrent_jobs',
    v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000)),
    5,
  ),
  /** Of jobs that have none of their own. */
  fireLimit: setting(
    'default_fire_limit',
    v.pipe(
      FireLimit,
      v.check(limit => limit.max > 0 && Boolean(durationMs(limit.window)), 'max above 0 and a window like 1h'),
    ),
    { max: 12, window: '1h' },
  ),
}
