/** Jobs, triggers, runs and suggestions. */
import * as v from 'valibot'
import { Integer, JsonMap, maybeTimestamp, StringMap, Timestamp } from '../kernel/common.js'
import { ParticipationRequest } from '../network.js'
import { Owner } from '../tasks.js'

/** Where a definition applies. */
export const AutomationScope = v.picklist(['global', 'workspace'])
export type AutomationScope = v.InferOutput<typeof AutomationScope>

/** Source of a definition: the configuration, a package, or a request. */
export const AutomationSource = v.picklist(['config', 'package', 'dynamic'])
export type AutomationSource = v.InferOutput<typeof AutomationSource>

/** States of a run. */
export const RunStatus = v.picklist(['scheduled', 'running', 'delegated', 'completed', 'failed', 'canceled'])
export type RunStatus = v.InferOutput<typeof RunStatus>

/** Each mode has its own field: `expr`, `interval` or `time`. */
export const ScheduleMode = v.picklist(['cron', 'every', 'at'])
export type ScheduleMode = v.InferOutput<typeof ScheduleMode>

/** Policy for missed occurrences. */
export const CatchUpPolicy = v.picklist(['skip_missed', 'coalesce', 'replay', 'run_once_on_catchup'])
export type CatchUpPolicy = v.InferOutput<typeof CatchUpPolicy>

/** Whether failed runs are retried. */
export const RetryStrategy = v.picklist(['none', 'backoff'])
export type RetryStrategy = v.InferOutput<typeof RetryStrategy>

/** At most `max` runs in a sliding `window` such as `1h`. */
export const FireLimit = v.strictObject({ max: Integer, window: v.string() })
export type FireLimit = v.InferOutput<typeof FireLimit>

/** Retries after a failed run; `base_delay` doubles with every retry. */
export const Retry = v.strictObject({
  base_delay: v.string(),
  max_retries: Integer,
  strategy: RetryStrategy,
})
export type Retry = v.InferOutput<typeof Retry>

/** When a job runs. */
export const Schedule = v.strictObject({
  catch_up_policy: v.optional(CatchUpPolicy),
  expr: v.optional(v.string()),
  interval: v.optional(v.string()),
  misfire_grace_seconds: v.optional(Integer),
  mode: ScheduleMode,
  time: v.optional(v.string()),
  /** IANA name; only for `cron`. */
  timezone: v.optional(v.string()),
})
export type Schedule = v.InferOutput<typeof Schedule>

/** The loop to start instead of an agent. */
export const LoopTarget = v.strictObject({
  input_mapping: v.optional(StringMap),
  inputs: v.optional(JsonMap),
  loop_name: v.string(),
  network_participation: v.nullish(ParticipationRequest),
  workspace_id: v.string(),
})
export type LoopTarget = v.InferOutput<typeof LoopTarget>

/** The task that a run creates instead of a session. */
export const JobTask = v.strictObject({
  description: v.optional(v.string()),
  network_participation: v.nullish(ParticipationRequest),
  owner: v.nullish(Owner),
  title: v.optional(v.string()),
})
export type JobTask = v.InferOutput<typeof JobTask>

/** The scheduler state of a job. */
export const SchedulerState = v.object({
  catch_up_policy: v.optional(CatchUpPolicy),
  consecutive_resume_failures: v.optional(Integer),
  job_id: v.string(),
  last_fire_id: v.optional(v.string()),
  last_misfire_at: maybeTimestamp,
  last_run_at: maybeTimestamp,
  last_scheduled_at: maybeTimestamp,
  misfire_count: v.optional(Integer),
  misfire_grace_seconds: v.optional(Integer),
  next_run_at: maybeTimestamp,
  registered: v.boolean(),
  updated_at: maybeTimestamp,
})
export type SchedulerState = v.InferOutput<typeof SchedulerState>

/** The newest run of a job, including skipped occurrences. */
export const LastRun = v.object({
  id: v.string(),
  status: RunStatus,
  error: v.optional(v.string()),
  started_at: Timestamp,
})
export type LastRun = v.InferOutput<typeof LastRun>

/** A job: a prompt, an agent and a schedule. */
export const Job = v.object({
  id: v.string(),
  name: v.string(),
  agent_name: v.string(),
  enabled: v.boolean(),
  fire_limit: FireLimit,
  loop_target: v.nullish(LoopTarget),
  last_run: v.nullish(LastRun),
  next_run: maybeTimestamp,
  prompt: v.string(),
  retry: Retry,
  schedule: v.nullish(Schedule),
  /** The schedule in words, with its time zone. */
  schedule_text: v.optional(v.string()),
  scheduler: v.nullish(SchedulerState),
  scope: AutomationScope,
  source: AutomationSource,
  target_kind: v.string(),
  task: v.nullish(JobTask),
  workspace_id: v.optional(v.string()),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Job = v.InferOutput<typeof Job>

/** One firing of a job or a trigger. */
export const Run = v.object({
  id: v.string(),
  attempt: Integer,
  delivery_error: v.optional(v.string()),
  delivery_error_at: maybeTimestamp,
  ended_at: maybeTimestamp,
  error: v.optional(v.string()),
  fire_id: v.optional(v.string()),
  job_id: v.optional(v.string()),
  loop_run_id: v.optional(v.string()),
  metadata: v.optional(JsonMap),
  network_participation: v.nullish(ParticipationRequest),
  scheduled_at: maybeTimestamp,
  session_id: v.optional(v.string()),
  started_at: maybeTimestamp,
  status: RunStatus,
  task_id: v.optional(v.string()),
  task_run_id: v.optional(v.string()),
  trigger_id: v.optional(v.string()),
})
export type Run = v.InferOutput<typeof Run>

/** Signature scheme of webhook deliveries: the daemon's own, Standard Webhooks, or that of a sender. */
export const WebhookScheme = v.picklist([
  'service',
  'standard',
  'github',
  'gitlab',
  'stripe',
  'slack',
  'linear',
  'sentry',
])
export type WebhookScheme = v.InferOutput<typeof WebhookScheme>

/** A trigger: a prompt template, an agent and an event that fires it. */
export const Trigger = v.object({
  id: v.string(),
  name: v.string(),
  agent_name: v.string(),
  enabled: v.boolean(),
  endpoint_slug: v.optional(v.string()),
  event: v.string(),
  filter: v.optional(StringMap),
  fire_limit: FireLimit,
  loop_target: v.nullish(LoopTarget),
  prompt: v.string(),
  retry: Retry,
  scope: AutomationScope,
  source: AutomationSource,
  target_kind: v.string(),
  /** Path to POST deliveries to. */
  webhook_endpoint: v.optional(v.string()),
  webhook_id: v.optional(v.string()),
  /** Accept a repeated body under a new delivery id, if the signature covers only the body. */
  webhook_allow_repeat: v.optional(v.boolean()),
  webhook_scheme: v.optional(WebhookScheme),
  webhook_secret_ref: v.optional(v.string()),
  webhook_secret_hash: v.optional(v.string()),
  webhook_secret_present: v.boolean(),
  workspace_id: v.optional(v.string()),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Trigger = v.InferOutput<typeof Trigger>

/** A suggested job or trigger. */
export const Suggestion = v.object({
  id: v.string(),
  dedup_key: v.string(),
  /** For a trigger: the members that jobs and triggers share. */
  payload: Job,
  trigger: v.optional(Trigger),
  resolved_at: maybeTimestamp,
  source: v.string(),
  status: v.string(),
  workspace_id: v.string(),
  created_at: Timestamp,
})
export type Suggestion = v.InferOutput<typeof Suggestion>
