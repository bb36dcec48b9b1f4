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

/** Query members shared by the lists of jobs and triggers. */
const listing = {
  scope: v.optional(v.pipe(AutomationScope, v.description('filter by scope'))),
  workspace_id: v.optional(v.pipe(v.string(), v.description('filter by workspace id'))),
  source: v.optional(v.pipe(AutomationSource, v.description('filter by where the definition comes from'))),
  enabled: v.optional(v.pipe(queryBoolean(), v.description('show only enabled or only disabled ones'))),
  cursor: v.optional(v.pipe(v.string(), v.description('next_cursor of the previous page'))),
  limit: v.optional(v.pipe(queryInteger(0), v.description('page size; default 50, at most 200'))),
  loop: v.optional(v.pipe(v.string(), v.description('filter by the name of the target loop'))),
}

/** GET /api/automation/jobs. */
export const ListJobsQuery = v.object({
  ...listing,
  q: v.optional(v.pipe(v.string(), v.description('search in name, agent, prompt, scope, source and schedule'))),
})
export type ListJobsQuery = v.InferOutput<typeof ListJobsQuery>

/** GET /api/automation/jobs. */
export const ListJobsReply = v.object({ jobs: v.array(Job), page: Page })
export type ListJobsReply = v.InferOutput<typeof ListJobsReply>

/** GET of one job; POST and PATCH also return warnings about conditions that would prevent its runs. */
export const JobReply = v.object({ job: Job, warnings: v.optional(v.array(v.string())) })
export type JobReply = v.InferOutput<typeof JobReply>

const SCHEDULE_HELP =
  'schedule: {"mode":"every","interval":"1h"}, {"mode":"cron","expr":"0 9 * * 1-5"} or {"mode":"at","time":"2030-01-31T09:00:00Z"}'
const RETRY_HELP = 'retry policy: {"strategy":"backoff","max_retries":3,"base_delay":"2s"}'
const LIMIT_HELP = 'maximum number of runs in a sliding window: {"max":3,"window":"1h"}'
const Limit = v.nullish(v.pipe(FireLimit, v.description(LIMIT_HELP)))
const Retries = v.nullish(v.pipe(Retry, v.description(RETRY_HELP)))

const NAME_HELP = 'name, unique in its scope'
const AGENT_HELP = 'agent to run; default: that of the workspace, else defaults.agent'
const ENABLED_HELP = 'fire automatically'
const LOOP_HELP = 'loop to start instead of an agent'
const TASK_HELP = 'create a task instead of a session: {"title":"…"}'
const PLACE_HELP = 'workspace id, for scope workspace; svc defaults to the workspace of this folder'
const Name = v.pipe(v.string(), v.description(NAME_HELP))
const AgentName = v.pipe(v.string(), v.description(AGENT_HELP))
const Enabled = v.nullish(v.pipe(v.boolean(), v.description(ENABLED_HELP)))
const Loop = v.nullish(v.pipe(LoopTarget, v.description(LOOP_HELP)))
const Task = v.nullish(v.pipe(JobTask, v.description(TASK_HELP)))
const Scope = v.pipe(
  AutomationScope,
  v.description('a workspace (default: that of this folder), or global: runs in the workspace scratch'),
)
const TargetKind = v.optional(v.pipe(v.string(), v.description('what a run starts: agent (default) or loop')))
const JobPrompt = v.pipe(v.string(), v.description('prompt to send to the agent'))

/** POST /api/automation/jobs; missing members get their defaults. */
export const CreateJobBody = v.strictObject({
  name: Name,
  agent_name: v.optional(AgentName),
  enabled: Enabled,
  fire_limit: Limit,
  loop_target: Loop,
  prompt: JobPrompt,
  retry: Retries,
  schedule: v.pipe(Schedule, v.description(SCHEDULE_HELP)),
  scope: Scope,
  target_kind: TargetKind,
  task: Task,
  workspace_id: v.optional(v.pipe(v.string(), v.description(PLACE_HELP))),
})
export type CreateJobBody = v.InferOutput<typeof CreateJobBody>

/** PATCH /api/automation/jobs/{id}: the members that change. */
export const PatchJobBody = v.strictObject({
  name: v.nullish(Name),
  agent_name: v.nullish(AgentName),
  enabled: Enabled,
  fire_limit: Limit,
  loop_target: Loop,
  prompt: v.nullish(JobPrompt),
  retry: Retries,
  schedule: v.nullish(v.pipe(Schedule, v.description(SCHEDULE_HELP))),
  task: Task,
})
export type PatchJobBody = v.InferOutput<typeof PatchJobBody>

const runFilter = {
  status: v.optional(v.pipe(RunStatus, v.description('filter by status'))),
  since: v.optional(v.pipe(Timestamp, v.description('only runs started at or after this time'))),
  until: v.optional(v.pipe(Timestamp, v.description('only runs started at or before this time'))),
  limit: v.optional(v.pipe(queryInteger(0), v.description('maximum number of runs; default 100, at most 1000'))),
}

/** GET /api/automation/jobs/{id}/runs and GET /api/automation/triggers/{id}/runs. */
export const ListJobRunsQuery = v.object(runFilter)
export type ListJobRunsQuery = v.InferOutput<typeof ListJobRunsQuery>

/** GET /api/automation/runs. */
export const ListRunsQuery = v.object({
  job_id: v.optional(v.pipe(v.string(), v.description('only runs of this job'))),
  trigger_id: v.optional(v.pipe(v.string(), v.description('only runs of this trigger'))),
  ...runFilter,
})
export type ListRunsQuery = v.InferOutput<typeof ListRunsQuery>

/** Reply of every list of runs. */
export const ListRunsReply = v.object({ runs: v.array(Run) })
export type ListRunsReply = v.InferOutput<typeof ListRunsReply>

/** GET of one run, and POST /api/automation/jobs/{id}/trigger. */
export const RunReply = v.object({ run: Run })
export type RunReply = v.InferOutput<typeof RunReply>

/** GET /api/automation/triggers. */
export const ListTriggersQuery = v.object({
  ...listing,
  event: v.optional(v.pipe(v.string(), v.description('filter by event name'))),
  q: v.optional(v.pipe(v.string(), v.description('search in name, agent, prompt, scope, source, event and filter'))),
})
export type ListTriggersQuery = v.InferOutput<typeof ListTriggersQuery>

/** GET /api/automation/triggers. */
export const ListTriggersReply = v.object({ page: Page, triggers: v.array(Trigger) })
export type ListTriggersReply = v.InferOutput<typeof ListTriggersReply>

/** GET, POST and PATCH of one trigger. */
export const TriggerReply = v.object({ trigger: Trigger })
export type TriggerReply = v.InferOutput<typeof TriggerReply>

const EVENT_HELP =
  'event that fires the trigger: session.created, session.stopped, automation.run.completed, automation.run.failed, hook.<name>.completed, ext.<extension>.<name> or webhook'
const FILTER_HELP = 'fire only if every field equals its value: {"data.stop_reason":"error"}'
const SLUG_HELP = 'webhooks: readable part of the URL, such as my-pushes'
const WEBHOOK_HELP = 'webhooks: id at the end of the URL, wbh_…; default: a random id'
const REPEAT_HELP =
  'webhooks whose body alone is signed (github, gitlab, linear, sentry): accept a known body under a new delivery id'
const SCHEME_HELP = 'webhooks: signature scheme; default service'
const Slug = v.pipe(v.string(), v.description(SLUG_HELP))
const WebhookId = v.pipe(v.string(), v.description(WEBHOOK_HELP))
const Scheme = v.pipe(WebhookScheme, v.description(SCHEME_HELP))
const Repeat = v.pipe(v.boolean(), v.description(REPEAT_HELP))
const SECRET_HELP = 'webhooks: reference to the signing secret: env:NAME or vault:automation/…'
const TEMPLATE_HELP = 'prompt template, such as: Review {{ .Data.after }}'
const SecretValue = v.pipe(
  v.string(),
  v.maxLength(4096),
  v.description('webhooks: signing secret to store in the vault; write-only'),
)
const TriggerPrompt = v.pipe(v.string(), v.description(TEMPLATE_HELP))

/** POST /api/automation/triggers; `webhook_secret_value` is write-only. */
export const CreateTriggerBody = v.strictObject({
  name: Name,
  agent_name: v.optional(AgentName),
  enabled: Enabled,
  endpoint_slug: v.optional(Slug),
  event: v.pipe(v.string(), v.description(EVENT_HELP)),
  filter: v.optional(v.pipe(StringMap, v.description(FILTER_HELP))),
  fire_limit: Limit,
  loop_target: Loop,
  prompt: TriggerPrompt,
  retry: Retries,
  scope: Scope,
  target_kind: TargetKind,
  webhook_id: v.optional(WebhookId),
  webhook_allow_repeat: v.optional(Repeat),
  webhook_scheme: v.optional(Scheme),
  webhook_secret_ref: v.optional(v.pipe(v.string(), v.description(SECRET_HELP))),
  webhook_secret_value: v.optional(SecretValue),
  workspace_id: v.optional(v.pipe(v.string(), v.description(PLACE_HELP))),
})
export type CreateTriggerBody = v.InferOutput<typeof CreateTriggerBody>

/** PATCH /api/automation/triggers/{id}: the members that change. */
export const PatchTriggerBody = v.strictObject({
  name: v.nullish(Name),
  agent_name: v.nullish(AgentName),
  enabled: Enabled,
  endpoint_slug: v.nullish(Slug),
  event: v.nullish(v.pipe(v.string(), v.description(EVENT_HELP))),
  filter: v.optional(v.pipe(StringMap, v.description(FILTER_HELP))),
  fire_limit: Limit,
  loop_target: Loop,
  prompt: v.nullish(TriggerPrompt),
  retry: Retries,
  webhook_id: v.nullish(WebhookId),
  webhook_allow_repeat: v.nullish(Repeat),
  webhook_scheme: v.nullish(Scheme),
  webhook_secret_ref: v.nullish(v.pipe(v.string(), v.description(SECRET_HELP))),
  webhook_secret_value: v.nullish(SecretValue),
})
export type PatchTriggerBody = v.InferOutput<typeof PatchTriggerBody>

/** POST /api/automation/triggers/{id}/test. */
export const TestTriggerBody = v.strictObject({
  body: v.optional(
    v.pipe(v.string(), v.maxLength(65_536), v.description('body of the delivery; default a small JSON object')),
  ),
})
export type TestTriggerBody = v.InferOutput<typeof TestTriggerBody>

/** A signed delivery that a trigger would accept. Nothing was delivered. */
export const TestTriggerReply = v.object({
  delivery: v.object({
    /** Path to POST it to. */
    path: v.string(),
    headers: StringMap,
    body: v.string(),
    /** When the signature expires; null if the scheme does not sign a time. */
    expires_at: v.nullable(Timestamp),
  }),
})
export type TestTriggerReply = v.InferOutput<typeof TestTriggerReply>

/** Reply to a webhook delivery. */
export const WebhookReply = v.object({
  result: v.object({ matched: Integer, runs: v.optional(v.array(Run)) }),
  /** Echo of the value with which the sender tests the endpoint. */
  challenge: v.optional(v.string()),
})
export type WebhookReply = v.InferOutput<typeof WebhookReply>

/** POST /api/automation/events */
export const EmitEventBody = v.strictObject({
  /** `ext.<extension>.<name>` */
  event: v.pipe(v.string(), v.minLength(1), v.maxLength(200)),
  workspace_id: v.optional(v.pipe(v.string(), v.maxLength(64))),
  data: v.optional(v.record(v.string(), v.unknown())),
  /** ID of the logged event that caused this one. */
  cause: v.optional(v.pipe(v.string(), v.regex(/^evt_[0-9a-f]{16}$/, 'an event id (evt_ and 16 hex digits)'))),
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
  webhook_allow_repeat: _repeat,
  webhook_scheme: _scheme,
  webhook_secret_ref: _ref,
  webhook_secret_value: _secret,
  ...proposedTrigger
} = CreateTriggerBody.entries

/** POST /api/workspaces/{workspace_id}/automation/suggestions. Webhooks cannot be suggested: they need a secret. */
export const SuggestBody = v.strictObject({
  job: v.optional(v.strictObject(proposedJob)),
  trigger: v.optional(v.strictObject(proposedTrigger)),
  /** A pending suggestion with the same key is reused; default: derived from the job or trigger. */
  dedup_key: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(200))),
})
export type SuggestBody = v.InferOutput<typeof SuggestBody>

/** GET /api/workspaces/{workspace_id}/automation/suggestions. */
export const ListSuggestionsQuery = v.object({
  status: v.optional(v.pipe(v.picklist(['pending', 'accepted', 'dismissed']), v.description('filter by status'))),
})
export type ListSuggestionsQuery = v.InferOutput<typeof ListSuggestionsQuery>

/** GET /api/workspaces/{workspace_id}/automation/suggestions. */
export const ListSuggestionsReply = v.object({ suggestions: v.array(Suggestion) })
export type ListSuggestionsReply = v.InferOutput<typeof ListSuggestionsReply>

/** POST …/accept. For a trigger, `job` holds the members that jobs and triggers share. */
export const AcceptSuggestionReply = v.object({ job: Job, trigger: v.optional(Trigger), suggestion: Suggestion })
export type AcceptSuggestionReply = v.InferOutput<typeof AcceptSuggestionReply>

/** POST …/dismiss. */
export const SuggestionReply = v.object({ suggestion: Suggestion })
export type SuggestionReply = v.InferOutput<typeof SuggestionReply>
