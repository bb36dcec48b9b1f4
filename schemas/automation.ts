/** Automation: jobs, runs, triggers. */
import * as v from 'valibot'
import {
  AutomationScope,
  AutomationSource,
  FireLimit,
  Job,
  JobTask,
  LoopTarget,
  Retry,
  Run,
  RunStatus,
  Schedule,
  Suggestion,
  Trigger,
} from './automation/definitions.js'
import { Integer, Page, queryBoolean, queryInteger, StringMap, Timestamp } from './kernel/common.js'

export * from './automation/definitions.js'

/** GET /api/automation/jobs; `q` searches name, agent, prompt, scope, source and schedule. */
export const ListJobsQuery = v.object({
  scope: v.optional(AutomationScope),
  workspace_id: v.optional(v.string()),
  source: v.optional(AutomationSource),
  enabled: v.optional(queryBoolean()),
  q: v.optional(v.string()),
  cursor: v.optional(v.string()),
  limit: v.optional(queryInteger(0)),
  loop: v.optional(v.string()),
})
export type ListJobsQuery = v.InferOutput<typeof ListJobsQuery>

/** GET /api/automation/jobs. */
export const ListJobsReply = v.object({ jobs: v.array(Job), page: Page })
export type ListJobsReply = v.InferOutput<typeof ListJobsReply>

/** GET, POST and PATCH of one job. */
export const JobReply = v.object({ job: Job })
export type JobReply = v.InferOutput<typeof JobReply>

const SCHEDULE_HELP =
  '{"mode":"every","interval":"1h"}, {"mode":"cron","expr":"0 9 * * 1-5"} or {"mode":"at","time":"2030-01-31T09:00:00Z"}'
const RETRY_HELP = '{"strategy":"backoff","max_retries":3,"base_delay":"2s"}: tries after a failed run'

/** POST /api/automation/jobs; missing members get their defaults. */
export const CreateJobBody = v.strictObject({
  name: v.string(),
  agent_name: v.string(),
  enabled: v.nullish(v.boolean()),
  fire_limit: v.nullish(
    v.pipe(FireLimit, v.description('{"max":3,"window":"1h"}: at most so many runs in a sliding window')),
  ),
  loop_target: v.nullish(LoopTarget),
  prompt: v.string(),
  retry: v.nullish(v.pipe(Retry, v.description(RETRY_HELP))),
  schedule: v.pipe(Schedule, v.description(SCHEDULE_HELP)),
  scope: AutomationScope,
  target_kind: v.optional(v.string()),
  task: v.nullish(JobTask),
  workspace_id: v.optional(v.pipe(v.string(), v.description('for scope workspace; svc workspace list'))),
})
export type CreateJobBody = v.InferOutput<typeof CreateJobBody>

/** PATCH /api/automation/jobs/{id}: the members that change. */
export const PatchJobBody = v.strictObject({
  name: v.nullish(v.string()),
  enabled: v.nullish(v.boolean()),
  fire_limit: v.nullish(FireLimit),
  loop_target: v.nullish(LoopTarget),
  prompt: v.nullish(v.string()),
  retry: v.nullish(v.pipe(Retry, v.description(RETRY_HELP))),
  schedule: v.nullish(v.pipe(Schedule, v.description(SCHEDULE_HELP))),
  task: v.nullish(JobTask),
})
export type PatchJobBody = v.InferOutput<typeof PatchJobBody>

/** GET /api/automation/jobs/{id}/runs, and those of a trigger. */
export const ListJobRunsQuery = v.object({
  status: v.optional(RunStatus),
  since: v.optional(Timestamp),
  until: v.optional(Timestamp),
  limit: v.optional(queryInteger(0)),
})
export type ListJobRunsQuery = v.InferOutput<typeof ListJobRunsQuery>

/** GET /api/automation/runs. */
export const ListRunsQuery = v.object({
  job_id: v.optional(v.string()),
  trigger_id: v.optional(v.string()),
  status: v.optional(RunStatus),
  since: v.optional(Timestamp),
  until: v.optional(Timestamp),
  limit: v.optional(queryInteger(0)),
})
export type ListRunsQuery = v.InferOutput<typeof ListRunsQuery>

/** GET /api/automation/runs, and those of a job or a trigger. */
export const ListRunsReply = v.object({ runs: v.array(Run) })
export type ListRunsReply = v.InferOutput<typeof ListRunsReply>

/** GET of one run, and POST of the trigger of a job. */
export const RunReply = v.object({ run: Run })
export type RunReply = v.InferOutput<typeof RunReply>

/** GET /api/automation/triggers. */
export const ListTriggersQuery = v.object({
  scope: v.optional(AutomationScope),
  workspace_id: v.optional(v.string()),
  source: v.optional(AutomationSource),
  enabled: v.optional(queryBoolean()),
  event: v.optional(v.string()),
  q: v.optional(v.string()),
  cursor: v.optional(v.string()),
  limit: v.optional(queryInteger(0)),
  loop: v.optional(v.string()),
})
export type ListTriggersQuery = v.InferOutput<typeof ListTriggersQuery>

/** GET /api/automation/triggers. */
export const ListTriggersReply = v.object({ page: Page, triggers: v.array(Trigger) })
export type ListTriggersReply = v.InferOutput<typeof ListTriggersReply>

/** GET, POST and PATCH of one trigger. */
export const TriggerReply = v.object({ trigger: Trigger })
export type TriggerReply = v.InferOutput<typeof TriggerReply>

/** POST /api/automation/triggers; `webhook_secret_value` is written, never read. */
export const CreateTriggerBody = v.strictObject({
  name: v.string(),
  agent_name: v.string(),
  enabled: v.nullish(v.boolean()),
  endpoint_slug: v.optional(v.string()),
  event: v.string(),
  filter: v.optional(StringMap),
  fire_limit: v.nullish(FireLimit),
  loop_target: v.nullish(LoopTarget),
  prompt: v.string(),
  retry: v.nullish(Retry),
  scope: AutomationScope,
  target_kind: v.optional(v.string()),
  webhook_id: v.optional(v.string()),
  webhook_secret_value: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
})
export type CreateTriggerBody = v.InferOutput<typeof CreateTriggerBody>

/** PATCH /api/automation/triggers/{id}: the members that change. */
export const PatchTriggerBody = v.strictObject({
  name: v.nullish(v.string()),
  enabled: v.nullish(v.boolean()),
  endpoint_slug: v.nullish(v.string()),
  event: v.nullish(v.string()),
  filter: v.optional(StringMap),
  fire_limit: v.nullish(FireLimit),
  loop_target: v.nullish(LoopTarget),
  prompt: v.nullish(v.string()),
  retry: v.nullish(Retry),
  webhook_id: v.nullish(v.string()),
  webhook_secret_value: v.nullish(v.string()),
})
export type PatchTriggerBody = v.InferOutput<typeof PatchTriggerBody>

/** Headers of a signed webhook, in lower case as Node provides them. */
export const WebhookHeaders = v.object({
  'x-service-webhook-timestamp': v.string(),
  'x-service-webhook-signature': v.string(),
  'x-service-webhook-delivery-id': v.optional(v.string()),
})
export type WebhookHeaders = v.InferOutput<typeof WebhookHeaders>

/** Reply to a signed webhook. */
export const WebhookReply = v.object({ result: v.object({ matched: Integer, runs: v.optional(v.array(Run)) }) })
export type WebhookReply = v.InferOutput<typeof WebhookReply>

/** GET /api/workspaces/{workspace_id}/automation/suggestions. */
export const ListSuggestionsQuery = v.object({ status: v.optional(v.picklist(['pending', 'accepted', 'dismissed'])) })
export type ListSuggestionsQuery = v.InferOutput<typeof ListSuggestionsQuery>

/** GET /api/workspaces/{workspace_id}/automation/suggestions. */
export const ListSuggestionsReply = v.object({ suggestions: v.array(Suggestion) })
export type ListSuggestionsReply = v.InferOutput<typeof ListSuggestionsReply>

/** POST of an acceptance: the job that came of it. */
export const AcceptSuggestionReply = v.object({ job: Job, suggestion: Suggestion })
export type AcceptSuggestionReply = v.InferOutput<typeof AcceptSuggestionReply>

/** POST of a dismissal. */
export const SuggestionReply = v.object({ suggestion: Suggestion })
export type SuggestionReply = v.InferOutput<typeof SuggestionReply>
