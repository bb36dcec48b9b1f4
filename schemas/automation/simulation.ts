/** What jobs and triggers would do. */
import * as v from 'valibot'
import { Integer, queryInteger, Timestamp } from '../kernel/common.js'

const Part = v.picklist(['all', 'jobs', 'triggers'])

/** GET /api/automation/simulation. */
export const SimulationQuery = v.object({
  days: v.optional(
    v.pipe(queryInteger(1, 366), v.description('jobs over so many days to come, triggers over as many past ones')),
  ),
  part: v.optional(v.pipe(Part, v.description('only jobs, or only triggers'))),
  only: v.optional(
    v.pipe(v.string(), v.description('list only this job or trigger, by id or name; all of them are simulated')),
  ),
  failing: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(4096),
      v.description('ids or names whose runs fail, separated by commas, or *: shows retries'),
    ),
  ),
  run_seconds: v.optional(
    v.pipe(
      queryInteger(0, 86_400),
      v.description('how long each run takes; default: the median of its latest ones, else 60'),
    ),
  ),
  offline: v.optional(
    v.pipe(
      v.string(),
      v.maxLength(4096),
      v.description('when the daemon does not run, as <from>/<to> in RFC 3339, several separated by commas'),
    ),
  ),
  limit: v.optional(
    v.pipe(queryInteger(1, 20_000), v.description('occasions that are listed, the earliest; default 1000')),
  ),
})
export type SimulationQuery = v.InferOutput<typeof SimulationQuery>

/** One thing that would happen. */
export const SimulatedOccasion = v.object({
  at: Timestamp,
  job_id: v.optional(v.string()),
  trigger_id: v.optional(v.string()),
  name: v.string(),
  outcome: v.picklist(['fires', 'skips']),
  attempt: Integer,
  /** Why it is skipped, as in the metadata of a run. */
  reason: v.optional(v.string()),
  text: v.optional(v.string()),
  /** Of a job: the occurrence, and the run that it would have. */
  scheduled_at: v.optional(Timestamp),
  run_id: v.optional(v.string()),
  /** Occurrences from here on have no run of their own: this one stands for them. */
  missed_since: v.optional(Timestamp),
  /** Occurrences before this are passed over, for the fire limit is reached. */
  resumes_at: v.optional(Timestamp),
  /** Of a trigger: the recorded event. */
  event: v.optional(v.string()),
  event_seq: v.optional(Integer),
})
export type SimulatedOccasion = v.InferOutput<typeof SimulatedOccasion>

/** A job or trigger that would do nothing. */
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
  /** Jobs or triggers that were looked at. */
  definitions: Integer,
  fires: Integer,
  skips: Integer,
  /** By reason. */
  skipped: v.record(v.string(), Integer),
  occasions: v.array(SimulatedOccasion),
  /** Occasions that are not listed, for there are more than the limit. */
  unlisted: Integer,
  /** Those that would do nothing, at most 100 of them. */
  silent: v.array(Silent),
  /** It was given up here, for too much happens: simulate fewer days. */
  ended_early: v.optional(Timestamp),
  /** Of triggers: events that were read. */
  events: v.optional(Integer),
})
export type Timeline = v.InferOutput<typeof Timeline>

/** GET /api/automation/simulation. */
export const SimulationReply = v.object({
  simulation: v.object({
    /** Zone of cron expressions. */
    timezone: v.string(),
    max_concurrent_jobs: Integer,
    /** What is to come. */
    jobs: v.optional(Timeline),
    /** What the triggers of now would have done about the events of the past. */
    triggers: v.optional(Timeline),
  }),
})
export type SimulationReply = v.InferOutput<typeof SimulationReply>
