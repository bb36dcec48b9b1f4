import * as v from 'valibot'
import { settingsSection } from '../../../kernel/kit/settings.js'
import { Duration } from '../../../schemas/duration.js'
import { LIMITS } from './limits.js'

const orchestration = settingsSection({ path: 'task.orchestration', section: 'general', apply: 'live' })
const autonomy = settingsSection({ path: 'autonomy', section: 'general', apply: 'live' })
const recovery = settingsSection({ path: 'task.recovery', section: 'general', apply: 'live' })
const tasks = settingsSection({ path: 'tasks', section: 'general', apply: 'live' })
const role = settingsSection({ path: 'roles.coordinator', section: 'roles', apply: 'live' })
const name = (meaning: string) => v.pipe(v.string(), v.maxLength(4096), v.description(meaning))
const count = (most: number) => v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(most))

/** The settings of tasks. */
export const TaskSettings = {
  /** Maximum number of active runs per workspace; 0: no limit. */
  maxActiveRuns: orchestration('max_active_runs_per_workspace', count(1000), 16),
  /** Failed sessions per run before the run needs attention; 0: no limit. */
  spawnFailureLimit: orchestration('spawn_failure_limit', count(1000), 5),
  /** Maximum number of runs per fan-out. */
  designatedRunMax: orchestration(
    'designated_run_max',
    v.pipe(count(LIMITS.designations), v.minValue(1)),
    LIMITS.designations,
  ),
  /** Maximum size in bytes of the handoff from the previous run in the context of a run. */
  summaryBytes: orchestration('summary_max_bytes', v.pipe(count(LIMITS.result), v.minValue(256)), 4096),
  /** Maximum size in bytes of the description and of all event payloads in the context of a run. */
  bodyBytes: orchestration('context_body_max_bytes', v.pipe(count(LIMITS.text), v.minValue(1024)), 8192),
  /** Number of earlier runs and reviews in the context of a run. */
  priorAttempts: orchestration('context_prior_attempts', count(50), 5),
  /** Number of recent events in the context of a run. */
  recentEvents: orchestration('context_recent_events', count(500), 50),
  /** Consecutive scheduler passes that started none of the queued runs before a warning; 0: never. */
  badTicks: orchestration('scheduler_bad_tick_threshold', count(1000), 6),
  /** Minimum milliseconds between two such warnings. */
  badTickCooldown: orchestration('scheduler_bad_tick_cooldown', Duration, 5 * 60_000),
  /** Maximum milliseconds that a session started by the daemon may work on a run; 0: no limit. */
  maxRuntime: orchestration('default_max_runtime', Duration, 0),
  /** Coordinators: sessions that the daemon starts for runs of kind `coordinator`. */
  coordinators: role(
    'enabled',
    v.pipe(v.boolean(), v.description('Whether coordinators are started for tasks whose profile has one')),
    true,
  ),
  coordinatorAgent: role('agent', name('Agent of coordinators whose task names none; empty: the default agent'), ''),
  coordinatorProvider: role('provider', name('Provider of coordinators whose task names none; empty: any'), ''),
  coordinatorModel: role('model', name('Model of coordinators whose task names none; empty: that of the agent'), ''),
  coordinatorsAtOnce: role(
    'max_active_sessions_per_workspace',
    v.pipe(
      count(1000),
      v.description('Maximum number of coordinators in one workspace; further ones wait; 0: no limit'),
    ),
    3,
  ),
  coordinatorChildren: role(
    'max_children',
    v.pipe(count(1000), v.description('Sessions that one coordinator may have started at once')),
    5,
  ),
  coordinatorLife: role('ttl', Duration, 2 * 60 * 60_000),
  /** Whether agents may force-release, force-fail, retry and recover runs in their workspace. */
  agentForce: recovery('allow_agent_force', v.boolean(), true),
  /** Review rounds after which a rejection makes the task need attention; 0: no limit. */
  reviewRounds: orchestration('review_rounds_max', count(100), 3),
  /** Days after the last activity of a finished task when it is moved to the archive; 0: never. */
  archiveAfterDays: tasks('archive_after_days', count(3650), 30),
  /** How often a kind of block may recur before the task needs attention; 0: no limit. */
  blockRecurrenceLimit: autonomy('block_recurrence_limit', count(1000), 2),
}
