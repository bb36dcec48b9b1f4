/** The overview of the daemon: items that need attention, runs, and usage. */
import * as v from 'valibot'
import { CountMap, Integer, Timestamp } from './kernel/common.js'

/** GET /api/observe/overview. */
export const OverviewQuery = v.object({
  workspace: v.optional(v.pipe(v.string(), v.description('show only this workspace: ID, name or path'))),
  usage_window: v.optional(
    v.pipe(v.picklist(['7', '30', '90']), v.description('days of usage: 7, 30 or 90; default 30')),
    '30',
  ),
})
export type OverviewQuery = v.InferOutput<typeof OverviewQuery>

/** How current a view is. */
const Freshness = v.object({
  status: v.string(),
  stale: v.boolean(),
  stale_after_ms: Integer,
  age_ms: Integer,
  has_live_work: v.boolean(),
  latest_activity_at: Timestamp,
  observed_at: Timestamp,
})

/** Something that needs the caller. */
export const AttentionItem = v.object({
  kind: v.picklist(['approval', 'failure', 'needs_input']),
  title: v.string(),
  detail: v.optional(v.string()),
  /** Actions available to the caller. */
  actions: v.array(v.string()),
  occurred_at: Timestamp,
  run_id: v.optional(v.string()),
  session_id: v.optional(v.string()),
  task_id: v.optional(v.string()),
  command: v.optional(v.pipe(v.string(), v.description('command to run next'))),
})
export type AttentionItem = v.InferOutput<typeof AttentionItem>

/** Events in one hour of one day of the week, 0 for Sunday, in the time zone of the daemon. */
const PulseBucket = v.object({ hour: Integer, weekday: Integer, events: Integer })

/** All dates are days in the time zone of the daemon, `YYYY-MM-DD`; windows include today. */
export const Overview = v.object({
  schema_version: v.string(),
  generated_at: Timestamp,
  attention: v.object({ total: Integer, by_kind: CountMap, items: v.array(AttentionItem) }),
  freshness: Freshness,
  today: v.object({ runs_completed: Integer, runs_failed: Integer, tasks_closed: Integer }),
  /** Ended runs of tasks, jobs and triggers; a run delegated to a task counts once, as the run of the task. */
  outcomes: v.object({
    window_days: Integer,
    completed: Integer,
    failed: Integer,
    canceled: Integer,
    /** Percentage of completed runs among those that completed or failed; 0 without any. */
    success_pct: v.number(),
    days: v.array(v.object({ date: v.string(), completed: Integer, failed: Integer, canceled: Integer })),
  }),
  /** Events of the log by hour and day of the week; hours without events are left out. */
  pulse: v.object({
    window_days: Integer,
    buckets: v.array(PulseBucket),
    busiest: v.nullish(PulseBucket),
    /** Measured from creation to last activity. */
    longest_session: v.nullish(
      v.object({ session_id: v.string(), agent_name: v.string(), date: v.string(), duration_seconds: Integer }),
    ),
  }),
  usage: v.object({
    window_days: Integer,
    total_tokens: Integer,
    /** Cost as reported by agents; null if none reports it. */
    estimated_cost: v.nullish(v.number()),
    cost_currency: v.optional(v.string()),
    /** Coverage of the cost. `actual`: all usage; `estimated`: part of it; `unknown`: none. */
    cost_status: v.optional(v.picklist(['actual', 'estimated', 'included', 'unknown'])),
    days: v.array(v.object({ date: v.string(), tokens: Integer })),
    /** Agents with the highest usage of the last 30 days, and their share of all tokens. */
    agent_share: v.array(v.object({ agent_name: v.string(), tokens: Integer, fraction: v.number() })),
    retention_days: Integer,
    /** The window exceeds the retention of usage data. */
    truncated: v.boolean(),
  }),
  network: v.object({ messages_today: Integer }),
  system: v.object({ hook_runs_today: Integer, hook_failures_today: Integer, retention_days: Integer }),
})
export type Overview = v.InferOutput<typeof Overview>

export const OverviewReply = v.object({ overview: Overview })
export type OverviewReply = v.InferOutput<typeof OverviewReply>
