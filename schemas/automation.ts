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
  WebhookScheme,
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
const LIMIT_HELP = '{"max":3,"window":"1h"}: at most so many runs in a sliding window'
const Limit = v.nullish(v.pipe(FireLimit, v.description(LIMIT_HELP)))
const Retries = v.nullish(v.pipe(Retry, v.description(RETRY_HELP)))

/** POST /api/automation/jobs; missing members get their defaults. */
export const CreateJobBody = v.strictObject({
  name: v.string(),
  /** Default: the agent of the workspace, else `defaults.agent`. */
  agent_name: v.optional(v.string()),
  enabled: v.nullish(v.boolean()),
  fire_limit: Limit,
  loop_target: v.nullish(LoopTarget),
  prompt: v.string(),
  retry: Retries,
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
  agent_name: v.nullish(v.string()),
  enabled: v.nullish(v.boolean()),
  fire_limit: Limit,
  loop_target: v.nullish(LoopTarget),
  prompt: v.nullish(v.string()),
  retry: Retries,
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

const EVENT_HELP =
  'session.created, session.stopped, automation.run.completed, automation.run.failed, hook.<name>.completed, ext.<extension>.<name> or webhook'
const FILTER_HELP = '{"data.stop_reason":"error"}: what has to be equal, all of it'
const SLUG_HELP = 'of a webhook: begins the last part of its path, as my-pushes'
const WEBHOOK_HELP = 'of a webhook: ends its path; default: a random one'
const SCHEME_HELP = 'how deliveries are signed; default service'
const Slug = v.pipe(v.string(), v.description(SLUG_HELP))
const WebhookId = v.pipe(v.string(), v.description(WEBHOOK_HELP))
const Scheme = v.pipe(WebhookScheme, v.description(SCHEME_HELP))
const SECRET_HELP = 'env:NAME or vault:automation/…, what deliveries are signed with'
const SecretValue = v.pipe(v.string(), v.maxLength(4096), v.description('stored in the vault; written, never read'))

/** POST /api/automation/triggers; `webhook_secret_value` is written, never read. */
export const CreateTriggerBody = v.strictObject({
  name: v.string(),
  /** Default: the agent of the workspace, else `defaults.agent`. */
  agent_name: v.optional(v.string()),
  enabled: v.nullish(v.boolean()),
  endpoint_slug: v.optional(Slug),
  event: v.pipe(v.string(), v.description(EVENT_HELP)),
  filter: v.optional(v.pipe(StringMap, v.description(FILTER_HELP))),
  fire_limit: Limit,
  loop_target: v.nullish(LoopTarget),
  prompt: v.string(),
  retry: Retries,
  scope: AutomationScope,
  target_kind: v.optional(v.string()),
  webhook_id: v.optional(WebhookId),
  webhook_scheme: v.optional(Scheme),
  webhook_secret_ref: v.optional(v.pipe(v.string(), v.description(SECRET_HELP))),
  webhook_secret_value: v.optional(SecretValue),
  workspace_id: v.optional(v.pipe(v.string(), v.description('for scope workspace; svc workspace list'))),
})
export type CreateTriggerBody = v.InferOutput<typeof CreateTriggerBody>

/** PATCH /api/automation/triggers/{id}: the members that change. */
export const PatchTriggerBody = v.strictObject({
  name: v.nullish(v.string()),
  agent_name: v.nullish(v.string()),
  enabled: v.nullish(v.boolean()),
  endpoint_slug: v.nullish(Slug),
  event: v.nullish(v.pipe(v.string(), v.description(EVENT_HELP))),
  filter: v.optional(v.pipe(StringMap, v.description(FILTER_HELP))),
  fire_limit: Limit,
  loop_target: v.nullish(LoopTarget),
  prompt: v.nullish(v.string()),
  retry: Retries,
  webhook_id: v.nullish(WebhookId),
  webhook_scheme: v.nullish(Scheme),
  webhook_secret_ref: v.nullish(v.pipe(v.string(), v.description(SECRET_HELP))),
  webhook_secret_value: v.nullish(SecretValue),
})
export type PatchTriggerBody = v.InferOutput<typeof PatchTriggerBody>

/** Reply to a signed webhook. */
export const WebhookReply = v.object({ result: v.object({ matched: Integer, runs: v.optional(v.array(Run)) }) })
export type WebhookReply = v.InferOutput<typeof WebhookReply>

/** POST /api/automation/events */
export const EmitEventBody = v.strictObject({
  /** `ext.<extension>.<name>` */
  event: v.pipe(v.string(), v.minLength(1), v.maxLength(200)),
  workspace_id: v.optional(v.pipe(v.string(), v.maxLength(64))),
  data: v.optional(v.record(v.string(), v.unknown())),
  /** Id of the event of the log that led to it. */
  cause: v.optional(v.pipe(v.string(), v.regex(/^evt_[0-9a-f]{16}$/, 'the id of an event'))),
})
export type EmitEventBody = v.InferOutput<typeof EmitEventBody>

/** Reply of POST /api/automation/events */
export const EmitEventReply = v.object({ event_id: v.string() })
export type EmitEventReply = v.InferOutput<typeof EmitEventReply>

const { scope: _jobScope, workspace_id: _jobWorkspace, ...proposedJob } = CreateJobBody.entries
const {
  scope: _scope,
  workspace_id: _workspace,
  endpoint_slug: _slug,
  webhook_id: _webhook,
  webhook_scheme: _scheme,
  webhook_secret_ref: _ref,
  webhook_secret_value: _secret,
  ...proposedTrigger
} = CreateTriggerBody.entries

/** POST /api/workspaces/{workspace_id}/automation/suggestions: a job or a trigger of that workspace; no webhook, which needs a secret. */
export const SuggestBody = v.strictObject({
  job: v.optional(v.strictObject(proposedJob)),
  trigger: v.optional(v.strictObject(proposedTrigger)),
  /** Proposals of one key that wait are one; default: made of what is proposed. */
  dedup_key: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(200))),
})
export type SuggestBody = v.InferOutput<typeof SuggestBody>

/** GET /api/workspaces/{workspace_id}/automation/suggestions. */
export const ListSuggestionsQuery = v.object({ status: v.optional(v.picklist(['pending', 'accepted', 'dismissed'])) })
export type ListSuggestionsQuery = v.InferOutput<typeof ListSuggestionsQuery>

/** GET /api/workspaces/{workspace_id}/automation/suggestions. */
export const ListSuggestionsReply = v.object({ suggestions: v.array(Suggestion) })
export type ListSuggestionsReply = v.InferOutput<typeof ListSuggestionsReply>

/** POST of an acceptance: what came of it; of a trigger `job` is what it has in common with one. */
export const AcceptSuggestionReply = v.object({ job: Job, trigger: v.optional(Trigger), suggestion: Suggestion })
export type AcceptSuggestionReply = v.InferOutput<typeof AcceptSuggestionReply>

/** POST of a dismissal. */
export const SuggestionReply = v.object({ suggestion: Suggestion })
export type SuggestionReply = v.InferOutput<typeof SuggestionReply>
