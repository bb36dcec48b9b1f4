import * as v from 'valibot'
import { settingsSection } from '../../kernel/kit/settings.js'
import { Duration } from '../../schemas/duration.js'
import { LIMITS } from './limits.js'

const orchestration = settingsSection({ path: 'task.orchestration', section: 'general', apply: 'live' })
const autonomy = settingsSection({ path: 'autonomy', section: 'general', apply: 'live' })
const recovery = settingsSection({ path: 'task.recovery', section: 'general', apply: 'live' })
const count = (most: number) => v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(most))

/** The settings of tasks. */
export const TaskSettings = {
  /** Runs that are held in one workspace at once; 0: no limit. */
  maxActiveRuns: orchestration('max_active_runs_per_workspace', count(1000), 16),
  /** Sessions that are started for one run in vain before a person has to look; 0: no limit. */
  spawnFailureLimit: orchestration('spawn_failure_limit', count(1000), 5),
  /** Runs of one fan-out at most. */
  designatedRunMax: orchestration(
    'designated_run_max',
    v.pipe(count(LIMITS.designations), v.minValue(1)),
    LIMITS.designations,
  ),
  /** Bytes of what one run leaves to the next that its holder is told. */
  summaryBytes: orchestration('summary_max_bytes', v.pipe(count(LIMITS.result), v.minValue(256)), 4096),
  /** Bytes of a description, and of the payloads of events, that the holder of a run is told. */
  bodyBytes: orchestration('context_body_max_bytes', v.pipe(count(LIMITS.text), v.minValue(1024)), 8192),
  /** Earlier runs, and reviews, that the holder of a run is told of. */
  priorAttempts: orchestration('context_prior_attempts', count(50), 5),
  /** Events that the holder of a run is told of, the newest. */
  recentEvents: orchestration('context_recent_events', count(500), 50),
  /** Looks in a row that found runs to start and started none, after which that is said; 0: never. */
  badTicks: orchestration('scheduler_bad_tick_threshold', count(1000), 6),
  /** Milliseconds after which it is said again. */
  badTickCooldown: orchestration('scheduler_bad_tick_cooldown', Duration, 5 * 60_000),
  /** Milliseconds for which a session that the daemon starts may work on a run; 0: no limit. */
  maxRuntime: orchestration('default_max_runtime', Duration, 0),
  /** Whether agents may release, fail, retry and recover runs of their workspace that others hold. */
  agentForce: recovery('allow_agent_force', v.boolean(), true),
  /** Rounds of review after which what is rejected is for a person; 0: no limit. */
  reviewRounds: orchestration('review_rounds_max', count(100), 3),
  /** How often a kind of block may come back before a person has to look; 0: no limit. */
  blockRecurrenceLimit: autonomy('block_recurrence_limit', count(1000), 2),
}
