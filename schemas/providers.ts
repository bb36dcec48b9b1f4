/** Providers and their models. */
import * as v from 'valibot'
import { ReasoningEffort } from './agents.js'
import { Integer, maybeTimestamp, queryBoolean } from './kernel/common.js'
import { ApplyOutcome } from './settings.js'

/** A provider in a workspace. */
export const WorkspaceProvider = v.object({
  name: v.string(),
  auth_mode: v.optional(v.string()),
  display_name: v.optional(v.string()),
  env_policy: v.optional(v.string()),
  harness: v.optional(v.string()),
  home_policy: v.optional(v.string()),
  runtime_provider: v.optional(v.string()),
})
export type WorkspaceProvider = v.InferOutput<typeof WorkspaceProvider>

/** Whether a provider is ready, and the command to run if it is not. */
export const ProviderAuthStatus = v.object({
  code: v.optional(v.string()),
  env_policy: v.string(),
  home_policy: v.string(),
  last_probe_at: maybeTimestamp,
  login_command: v.optional(v.string()),
  message: v.optional(v.string()),
  mode: v.string(),
  state: v.string(),
  status_command: v.optional(v.string()),
})
export type ProviderAuthStatus = v.InferOutput<typeof ProviderAuthStatus>

/** A provider and its login. */
export const Provider = v.object({
  name: v.string(),
  auth_status: ProviderAuthStatus,
  default: v.boolean(),
  display_name: v.optional(v.string()),
  /** Command and arguments of its processes; absent if each agent defines its own. */
  command: v.optional(v.string()),
  /** Command to install it. */
  install_command: v.optional(v.string()),
  /** Path of the command. */
  executable: v.optional(v.string()),
  version: v.optional(v.string()),
})
export type Provider = v.InferOutput<typeof Provider>

/** Result of the login check; its output may contain secrets and is not kept. */
export const AuthProbe = v.object({
  duration_ms: Integer,
  exit_code: Integer,
  stderr: v.optional(v.string()),
  stdout: v.optional(v.string()),
})
export type AuthProbe = v.InferOutput<typeof AuthProbe>

/** Prices for a million tokens. */
export const ModelCost = v.object({
  cache_read_per_million: v.nullish(v.number()),
  cache_write_per_million: v.nullish(v.number()),
  input_per_million: v.nullish(v.number()),
  output_per_million: v.nullish(v.number()),
  reasoning_per_million: v.nullish(v.number()),
})
export type ModelCost = v.InferOutput<typeof ModelCost>

/** A source that lists a model. */
export const ModelOrigin = v.object({
  last_error: v.optional(v.string()),
  priority: Integer,
  refreshed_at: v.optional(v.string()),
  source_id: v.string(),
  source_kind: v.string(),
  stale: v.boolean(),
})
export type ModelOrigin = v.InferOutput<typeof ModelOrigin>

/** A model of one provider. */
export const Model = v.object({
  availability_state: v.string(),
  available: v.nullable(v.boolean()),
  context_window: v.nullish(Integer),
  cost: v.nullish(ModelCost),
  curated: v.boolean(),
  default_reasoning_effort: v.nullish(ReasoningEffort),
  deprecated: v.boolean(),
  display_name: v.optional(v.string()),
  featured: v.boolean(),
  hidden: v.boolean(),
  last_error: v.optional(v.string()),
  max_input_tokens: v.nullish(Integer),
  max_output_tokens: v.nullish(Integer),
  model_id: v.string(),
  provider_id: v.string(),
  reasoning_efforts: v.optional(v.array(ReasoningEffort)),
  reasoning_source: v.optional(v.picklist(['acp', 'catalog'])),
  refreshed_at: v.optional(v.string()),
  release_date: v.optional(v.string()),
  sources: v.array(ModelOrigin),
  stale: v.boolean(),
  supports_reasoning: v.nullish(v.boolean()),
  supports_tools: v.nullish(v.boolean()),
})
export type Model = v.InferOutput<typeof Model>

/** A source of models and its freshness. */
export const ModelSource = v.object({
  last_error: v.optional(v.string()),
  last_refresh: v.optional(v.string()),
  last_success: v.optional(v.string()),
  next_refresh: v.optional(v.string()),
  priority: Integer,
  provider_id: v.string(),
  refresh_state: v.string(),
  row_count: Integer,
  source_id: v.string(),
  source_kind: v.string(),
  stale: v.boolean(),
})
export type ModelSource = v.InferOutput<typeof ModelSource>

/** GET /api/providers. */
export const ListProvidersQuery = v.object({
  /** PATH of the caller, which may contain programs installed after the daemon started. */
  search_path: v.optional(v.pipe(v.string(), v.maxLength(16_384), v.description('additional PATH to search'))),
})
export type ListProvidersQuery = v.InferOutput<typeof ListProvidersQuery>

/** GET /api/providers. */
export const ListProvidersReply = v.object({ providers: v.array(Provider) })
export type ListProvidersReply = v.InferOutput<typeof ListProvidersReply>

/** POST /api/providers/{provider_id}/auth/probe. */
export const ProbeProviderReply = v.object({
  auth_status: ProviderAuthStatus,
  probe: v.nullish(AuthProbe),
  provider: v.string(),
})
export type ProbeProviderReply = v.InferOutput<typeof ProbeProviderReply>

/** GET /api/model-catalog/models. */
export const ListModelsQuery = v.object({
  provider_id: v.optional(v.string()),
  view: v.optional(v.picklist(['curated', 'all'])),
  source_id: v.optional(v.string()),
  refresh: v.optional(queryBoolean()),
  include_stale: v.optional(queryBoolean()),
})
export type ListModelsQuery = v.InferOutput<typeof ListModelsQuery>

/** GET /api/model-catalog/providers/{provider_id}/models. */
export const ListProviderModelsQuery = v.object({
  view: v.optional(v.picklist(['curated', 'all'])),
  source_id: v.optional(v.string()),
  refresh: v.optional(queryBoolean()),
  include_stale: v.optional(queryBoolean()),
})
export type ListProviderModelsQuery = v.InferOutput<typeof ListProviderModelsQuery>

/** The models of all providers, or of one. */
export const ListModelsReply = v.object({ models: v.array(Model) })
export type ListModelsReply = v.InferOutput<typeof ListModelsReply>

/** POST of a refresh, over all providers or for one. */
export const RefreshModelsBody = v.strictObject({
  force: v.optional(v.boolean()),
  request_id: v.optional(v.string()),
  source_id: v.optional(v.string()),
})
export type RefreshModelsBody = v.InferOutput<typeof RefreshModelsBody>

/** POST of a refresh; also with status 503, when no source could be read. */
export const RefreshModelsReply = v.object({
  code: v.optional(v.string()),
  error: v.optional(v.string()),
  sources: v.array(ModelSource),
})
export type RefreshModelsReply = v.InferOutput<typeof RefreshModelsReply>

/** Freshness of the sources. */
export const ListModelSourcesReply = v.object({ sources: v.array(ModelSource) })
export type ListModelSourcesReply = v.InferOutput<typeof ListModelSourcesReply>

/** POST /api/model-catalog/providers/{provider_id}/models/curate. */
export const CurateModelBody = v.strictObject({
  default_effort: v.nullish(ReasoningEffort),
  deprecated: v.nullish(v.boolean()),
  featured: v.nullish(v.boolean()),
  hidden: v.nullish(v.boolean()),
  model_id: v.string(),
})
export type CurateModelBody = v.InferOutput<typeof CurateModelBody>

/** POST /api/model-catalog/providers/{provider_id}/models/curate. */
export const CurateModelReply = v.object({ apply: ApplyOutcome, model: Model })
export type CurateModelReply = v.InferOutput<typeof CurateModelReply>

/** GET /api/openai/v1/models. */
export const ListOpenAiModelsQuery = v.object({ provider_id: v.optional(v.string()) })
export type ListOpenAiModelsQuery = v.InferOutput<typeof ListOpenAiModelsQuery>

/** A model in the OpenAI-compatible form; members of svc are in `service`. */
export const OpenAiModel = v.object({
  id: v.string(),
  created: Integer,
  object: v.string(),
  owned_by: v.string(),
  service: v.object({
    availability_state: v.string(),
    available: v.nullable(v.boolean()),
    context_window: v.nullish(Integer),
    cost: v.nullish(ModelCost),
    default_reasoning_effort: v.nullish(ReasoningEffort),
    display_name: v.optional(v.string()),
    last_error: v.optional(v.string()),
    max_input_tokens: v.nullish(Integer),
    max_output_tokens: v.nullish(Integer),
    model_id: v.string(),
    provider_id: v.string(),
    reasoning_efforts: v.optional(v.array(ReasoningEffort)),
    refreshed_at: v.optional(v.string()),
    sources: v.array(v.string()),
    stale: v.boolean(),
    supports_reasoning: v.nullish(v.boolean()),
    supports_tools: v.nullish(v.boolean()),
  }),
})
export type OpenAiModel = v.InferOutput<typeof OpenAiModel>

/** GET /api/openai/v1/models. */
export const ListOpenAiModelsReply = v.object({ data: v.array(OpenAiModel), object: v.string() })
export type ListOpenAiModelsReply = v.InferOutput<typeof ListOpenAiModelsReply>

/** Error reply of GET /api/openai/v1/models. */
export const OpenAiErrorBody = v.object({
  error: v.object({
    code: v.string(),
    message: v.string(),
    param: v.nullable(v.string()),
    type: v.string(),
  }),
})
export type OpenAiErrorBody = v.InferOutput<typeof OpenAiErrorBody>
