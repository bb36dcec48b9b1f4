/** Agent definitions and agents. */
import * as v from 'valibot'
import { Integer, maybeTimestamp, Page, queryInteger, StringMap } from './kernel/common.js'

/** Location of a definition: the home or a workspace. */
export const AgentOrigin = v.picklist(['global', 'workspace'])
export type AgentOrigin = v.InferOutput<typeof AgentOrigin>

/** Reasoning effort of a model. */
export const ReasoningEffort = v.picklist(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])
export type ReasoningEffort = v.InferOutput<typeof ReasoningEffort>

/** Approval policy of an agent's actions. */
export const PermissionMode = v.picklist(['deny-all', 'approve-reads', 'approve-all'])
export type PermissionMode = v.InferOutput<typeof PermissionMode>

/** OAuth settings of an MCP server; they contain no secret. */
export const McpAuth = v.object({
  authorization_url: v.optional(v.string()),
  client_id: v.optional(v.string()),
  client_secret_configured: v.boolean(),
  issuer_url: v.optional(v.string()),
  metadata_url: v.optional(v.string()),
  revocation_url: v.optional(v.string()),
  scopes: v.optional(v.array(v.string())),
  token_url: v.optional(v.string()),
  type: v.optional(v.string()),
})
export type McpAuth = v.InferOutput<typeof McpAuth>

/** An MCP server declared by an agent. */
export const McpServer = v.object({
  name: v.string(),
  args: v.optional(v.array(v.string())),
  auth: v.nullish(McpAuth),
  command: v.optional(v.string()),
  env: v.optional(StringMap),
  secret_env: v.optional(StringMap),
  transport: v.optional(v.string()),
  url: v.optional(v.string()),
  /** Sandbox profile of its program. */
  sandbox: v.optional(v.string()),
  /** Refuse the session if the server cannot start. */
  required: v.optional(v.boolean()),
  /** Time limits of the start and of a tool call, as durations. */
  start_timeout: v.optional(v.string()),
  call_timeout: v.optional(v.string()),
})
export type McpServer = v.InferOutput<typeof McpServer>

/** Skills disabled for one agent. */
export const AgentSkills = v.strictObject({ disabled: v.optional(v.array(v.string())) })
export type AgentSkills = v.InferOutput<typeof AgentSkills>

/** A problem of a definition file. */
export const AgentDiagnostic = v.object({ error_kind: v.string(), message: v.string(), path: v.string() })
export type AgentDiagnostic = v.InferOutput<typeof AgentDiagnostic>

/** Provider and model after all defaults, and the source of each. */
export const EffectiveRuntime = v.object({
  model: v.optional(v.string()),
  provider: v.string(),
  reasoning_effort: v.optional(ReasoningEffort),
  sources: v.object({
    model: v.optional(v.string()),
    provider: v.string(),
    reasoning_effort: v.optional(v.string()),
  }),
})
export type EffectiveRuntime = v.InferOutput<typeof EffectiveRuntime>

/** An agent definition with all defaults applied. */
export const Agent = v.object({
  name: v.string(),
  category_path: v.optional(v.array(v.string())),
  command: v.optional(v.string()),
  definition_digest: v.string(),
  deny_tools: v.optional(v.array(v.string())),
  diagnostics: v.optional(v.array(AgentDiagnostic)),
  effective_runtime: v.nullish(EffectiveRuntime),
  mcp_servers: v.optional(v.array(McpServer)),
  model: v.optional(v.string()),
  origin: AgentOrigin,
  permissions: v.optional(v.string()),
  /** Permission mode of the definition, else `permissions.mode`. */
  effective_permissions: v.optional(PermissionMode),
  prompt: v.string(),
  provider: v.string(),
  reasoning_effort: v.optional(ReasoningEffort),
  skills: v.nullish(AgentSkills),
  tools: v.optional(v.array(v.string())),
  toolsets: v.optional(v.array(v.string())),
  workspace_id: v.optional(v.string()),
})
export type Agent = v.InferOutput<typeof Agent>

/** Members of a definition that a request may write. */
export const AgentInput = v.strictObject({
  name: v.pipe(v.string(), v.trim()),
  category_path: v.optional(v.array(v.string())),
  command: v.optional(v.string()),
  deny_tools: v.optional(v.array(v.string())),
  model: v.optional(v.string()),
  permissions: v.optional(PermissionMode),
  prompt: v.string(),
  provider: v.optional(v.string()),
  reasoning_effort: v.optional(ReasoningEffort),
  skills: v.nullish(AgentSkills),
  tools: v.optional(v.array(v.string())),
  toolsets: v.optional(v.array(v.string())),
})
export type AgentInput = v.InferOutput<typeof AgentInput>

/** Members that a copy changes. */
export const AgentOverrides = v.strictObject({
  category_path: v.optional(v.array(v.string())),
  command: v.optional(v.string()),
  deny_tools: v.optional(v.array(v.string())),
  model: v.optional(v.string()),
  permissions: v.optional(PermissionMode),
  prompt: v.optional(v.string()),
  provider: v.optional(v.string()),
  reasoning_effort: v.optional(ReasoningEffort),
  skills: v.nullish(AgentSkills),
  tools: v.optional(v.array(v.string())),
  toolsets: v.optional(v.array(v.string())),
})
export type AgentOverrides = v.InferOutput<typeof AgentOverrides>

/** Session counts of one agent. */
export const AgentActivity = v.object({
  active: Integer,
  failed: Integer,
  last_activity_at: maybeTimestamp,
  runtime_seconds: Integer,
  total: Integer,
})
export type AgentActivity = v.InferOutput<typeof AgentActivity>

/** One entry of the catalog. */
export const AgentCatalogEntry = v.object({ agent: Agent, sessions: v.nullish(AgentActivity) })
export type AgentCatalogEntry = v.InferOutput<typeof AgentCatalogEntry>

/** Counts over all filtered entries, on all pages. */
export const AgentFacets = v.object({
  active: Integer,
  categories: v.array(v.string()),
  idle: Integer,
  total: Integer,
})
export type AgentFacets = v.InferOutput<typeof AgentFacets>

/** GET /api/agents, and GET and DELETE of one: the workspace by id, name or path. */
export const ListAgentsQuery = v.object({ workspace: v.optional(v.string()) })
export type ListAgentsQuery = v.InferOutput<typeof ListAgentsQuery>

/** GET /api/agents; `diagnostics` lists invalid definitions, which are left out. */
export const ListAgentsReply = v.object({
  agents: v.array(Agent),
  diagnostics: v.optional(v.array(AgentDiagnostic)),
})
export type ListAgentsReply = v.InferOutput<typeof ListAgentsReply>

/** GET /api/agents/catalog; `q` searches name and category, `category` is a path joined by slashes. */
export const AgentCatalogQuery = v.object({
  workspace: v.string(),
  name: v.optional(v.string()),
  q: v.optional(v.string()),
  category: v.optional(v.string()),
  status: v.optional(v.picklist(['active', 'idle'])),
  cursor: v.optional(v.string()),
  limit: v.optional(queryInteger(1, 100)),
})
export type AgentCatalogQuery = v.InferOutput<typeof AgentCatalogQuery>

/** GET /api/agents/catalog. */
export const AgentCatalogReply = v.object({
  agents: v.array(AgentCatalogEntry),
  facets: AgentFacets,
  page: Page,
  sessions_available: v.boolean(),
})
export type AgentCatalogReply = v.InferOutput<typeof AgentCatalogReply>

/** GET, POST, PUT and duplicate of one agent. */
export const AgentReply = v.object({ agent: Agent })
export type AgentReply = v.InferOutput<typeof AgentReply>

/** POST /api/agents. */
export const CreateAgentBody = v.strictObject({
  agent: AgentInput,
  scope: v.picklist(['workspace', 'global']),
  workspace: v.optional(v.string()),
})
export type CreateAgentBody = v.InferOutput<typeof CreateAgentBody>

/** PUT /api/agents/{name}; an outdated digest is a conflict. */
export const PutAgentBody = v.strictObject({
  agent: AgentInput,
  expected_digest: v.optional(v.string()),
  workspace: v.optional(v.string()),
})
export type PutAgentBody = v.InferOutput<typeof PutAgentBody>

/** POST /api/agents/{name}/duplicate. */
export const DuplicateAgentBody = v.strictObject({
  name: v.pipe(v.string(), v.trim()),
  overrides: v.nullish(AgentOverrides),
  scope: v.optional(v.picklist(['workspace', 'global'])),
  workspace: v.optional(v.string()),
})
export type DuplicateAgentBody = v.InferOutput<typeof DuplicateAgentBody>

/** DELETE /api/agents/{name}; `unshadowed_origin` is the location of the definition that now applies. */
export const DeleteAgentReply = v.object({
  name: v.string(),
  origin: AgentOrigin,
  unshadowed_origin: v.optional(AgentOrigin),
})
export type DeleteAgentReply = v.InferOutput<typeof DeleteAgentReply>
