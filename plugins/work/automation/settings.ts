import * as v from 'valibot'
import { settingsSection } from '../../../kernel/kit/settings.js'
import { FireLimit } from '../../../schemas/automation.js'
import { Duration, durationMs } from '../../../schemas/duration.js'
import { isTimezone } from './schedule.js'

const setting = settingsSection({ path: 'automation', section: 'automation', apply: 'restart-required' })

/** The settings of automation. */
export const AutomationSettings = {
  /** False: nothing fires, neither on schedule nor manually; definitions and history are kept. */
  enabled: setting('enabled', v.boolean(), true),
  /** IANA time zone of cron expressions. */
  timezone: setting(
    'timezone',
    v.pipe(v.string(), v.check(isTimezone, 'must be an IANA time zone such as Europe/Paris')),
    'UTC',
  ),
  /** Maximum number of concurrent runs of all jobs and triggers. */
  maxConcurrentJobs: setting(
    'max_concurrent_jobs',
    v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000)),
    5,
  ),
  /** Milliseconds that a scheduled occurrence waits for one of these slots; 0: not at all. */
  queueWait: setting('queue_wait', Duration, 10 * 60_000),
  /** Fire limit of jobs and triggers that set none. */
  fireLimit: setting(
    'default_fire_limit',
    v.pipe(
      FireLimit,
      v.check(
        limit => limit.max > 0 && Boolean(durationMs(limit.window)),
        'max must be greater than 0 and window a duration such as 1h',
      ),
    ),
    { max: 12, window: '1h' },
  ),
}
