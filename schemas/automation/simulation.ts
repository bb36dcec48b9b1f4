/** Simulation of jobs and triggers. */
import * as v from 'valibot'
import { Integer, queryInteger, Timestamp } from '../kernel/common.js'

const Part = v.picklist(['all', 'jobs', 'triggers'])

/** GET /api/automation/simulation. */
export const SimulationQuery = v.object({
  days: v.optional(
    v.pipe(queryInteger(1, 366), v.description('number of days: future for jobs, past for triggers; default 30')),
  ),
  part: v.optional(v.pipe(Part, v.description('simulate only jobs or only triggers; default all'))),
  only: v.optional(
    v.pipe(v.string(), v.description('list only this job or trigger (id or name); the others are still simulated')),
  ),
  failing: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(4096),
      v.description('assume that runs of these jobs or triggers fail: comma-separated ids or names, or *'),
    ),
  ),
  run_seconds: v.optional(
    v.pipe(
      queryInteger(0, 86_400),
      v.description('assumed duration of a run; default: the median of its recent runs, else 60'),
    ),
  ),
  offline: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(4096),
      v.description('assume that the daemon is down: comma-separated <from>/<to> in RFC 3339'),
    ),
  ),
  limit: v.optional(
    v.pipe(
      queryInteger(1, 20_000),
      v.description('maximum number of fires and skips to list, earliest first; default 1000'),
    ),
  ),
})
export type SimulationQuery = v.InferOutput<typeof SimulationQuery>

/** One simulated fire or skip. */
export const SimulatedOccasion = v.object({
  at: Timestamp,
  job_id: v.optional(v.string()),
  trigger_id: v.optional(v.string()),
  name: v.string(),
  outcome: v.picklist(['fires', 'skips']),
  attempt: Integer,
  /** Why it is skipped: the `metadata.reason` that the run would have. */
  reason: v.optional(v.string()),
  text: v.optional(v.string()),
  /** Jobs only: the scheduled occurrence and the ID of its run. */
  scheduled_at: v.optional(Timestamp),
  run_id: v.optional(v.string()),
  /** Catch-up: this run covers all occurrences missed since then. */
  missed_since: v.optional(Timestamp),
  /** Fire limit reached: occurrences before this time are skipped. */
  resumes_at: v.optional(Timestamp),
  /** Triggers only: the recorded event. */
  event: v.optional(v.string()),
  event_seq: v.optional(Integer),
})
export type SimulatedOccasion = v.InferOutput<typeof SimulatedOccasion>

/** A job or trigger that would not fire, with the reason. */
const Silent = v.object({
  job_id: v.optional(v.string()),
  trigger_id: v.optional(v.string()),
  name: v.string(),
  why: v.picklist(['disabled', 'ended', 'not_due', 'no_event', 'webhook']),
})

/** One part of a simulation. */
const Timeline = v.object({
  from: Timestamp,
  to: Timestamp,
  /** Number of jobs or triggers simulated. */
  definitions: Integer,
  fires: Integer,
  skips: Integer,
  /** Number of skips by reason. */
  skipped: v.record(v.string(), Integer),
  occasions: v.array(SimulatedOccasion),
  /** Number of fires and skips left out because of `limit`. */
  unlisted: Integer,
  /** Jobs or triggers that would not fire, at most 100. */
  silent: v.array(Silent),
  /** Jobs only: minutes in which more occurrences are due than run at once, earliest first, at most 100. */
  crowded: v.optional(v.array(v.object({ at: Timestamp, due: Integer }))),
  /** The simulation stopped here after 200,000 fires and skips. */
  ended_early: v.optional(Timestamp),
  /** Triggers only: number of recorded events read. */
  events: v.optional(Integer),
})
export type Timeline = v.InferOutput<typeof Timeline>

/** GET /api/automation/simulation. */
export const SimulationReply = v.object({
  simulation: v.object({
    /** Time zone of cron expressions. */
    timezone: v.string(),
    max_concurrent_jobs: Integer,
    /** Future occurrences. */
    jobs: v.optional(Timeline),
    /** The current triggers applied to recorded events. */
    triggers: v.optional(Timeline),
  }),
})
export type SimulationReply = v.InferOutput<typeof SimulationReply>

/** GET /api/automation/occurrences: the members of a schedule, and how many occurrences to show. */
export const OccurrencesQuery = v.object({
  mode: v.pipe(v.picklist(['cron', 'every', 'at']), v.description('mode of the schedule')),
  expr: v.optional(v.pipe(v.string(), v.maxLength(256), v.description('cron expression, for mode cron'))),
  interval: v.optional(v.pipe(v.string(), v.maxLength(64), v.description('duration, for mode every'))),
  time: v.optional(v.pipe(v.string(), v.maxLength(64), v.description('RFC 3339 time, for mode at'))),
  timezone: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(64),
      v.description('IANA time zone of a cron expression; default: that of the daemon'),
    ),
  ),
  count: v.optional(v.pipe(queryInteger(1, 100), v.description('number of occurrences; default 5'))),
})
export type OccurrencesQuery = v.InferOutput<typeof OccurrencesQuery>

export const OccurrencesReply = v.object({
  /** The schedule in words. */
  text: v.string(),
  timezone: v.string(),
  /** Fewer than requested when the schedule ends. */
  occurrences: v.array(Timestamp),
})
export type OccurrencesReply = v.InferOutput<typeof OccurrencesReply>
