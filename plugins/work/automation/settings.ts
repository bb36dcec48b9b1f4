import * as v from 'valibot'
import { settingsSection } from '../../../kernel/kit/settings.js'
import { FireLimit } from '../../../schemas/automation.js'
import { Duration, durationMs } from '../../../schemas/duration.js'
import { isTimezone } from './zone.js'

/** Value of `automation.timezone`: the zone of the daemon's machine. */
export const MACHINE_ZONE = 'local'

const isZone = (name: string) => name === MACHINE_ZONE || isTimezone(name)

const setting = settingsSection({ path: 'automation', section: 'automation', apply: 'restart-required' })

/** The settings of automation. */
export const AutomationSettings = {
  /** False: nothing fires, neither on schedule nor manually; definitions and history are kept. */
  enabled: setting('enabled', v.boolean(), true),
  /** IANA time zone of cron expressions without one; `local`: the time zone of the machine. */
  timezone: setting(
    'timezone',
    v.pipe(
      v.string(),
      v.check(isZone, 'must be an IANA time zone such as Europe/Paris, or local: that of the machine'),
    ),
    MACHINE_ZONE,
  ),
  /** Maximum number of concurrent runs of all jobs and triggers. */
  maxConcurrentJobs: setting(
    'max_concurrent_jobs',
    v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000)),
    5,
  ),
  /** Milliseconds that a scheduled occurrence waits for one of these slots; 0: not at all. */
  queueWait: setting('queue_wait', Duration, 10 * 60_000),
  /** Days after which an ended run of a job is moved to the archive; 0: never. */
  archiveAfterDays: setting('archive_after_days', v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(3650)), 7),
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
