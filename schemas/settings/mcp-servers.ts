/** MCP servers in the settings API. */
import * as v from 'valibot'
import { McpAuth } from '../agents.js'
import { Integer, maybeTimestamp, queryBoolean, Timestamp } from '../kernel/common.js'
import { mapOf } from '../kernel/map-of.js'
import { McpServerPolicy, McpSidecarServer } from './entries.js'
import { SourceMetadata } from './hooks.js'

const name = v.pipe(v.string(), v.minLength(1), v.maxLength(128))
const line = (max: number) => v.pipe(v.string(), v.maxLength(max))
const byName = (max: number) => mapOf(line(256), line(max))

/** Global servers, or those of a workspace. */
export const McpScope = v.picklist(['global', 'workspace'])
export type McpScope = v.InferOutput<typeof McpScope>

/** Login state of an MCP server. */
export const McpAuthStatus = v.object({
  auth_type: v.optional(v.string()),
  authorization_url: v.optional(v.string()),
  client_id: v.optional(v.string()),
  diagnostic: v.optional(v.string()),
  expires_at: maybeTimestamp,
  issuer: v.optional(v.string()),
  refreshable: v.boolean(),
  remote_url: v.optional(v.string()),
  revocation_url: v.optional(v.string()),
  scope: v.string(),
  scopes: v.optional(v.array(v.string())),
  server_name: v.string(),
  status: v.string(),
  token_present: v.boolean(),
  updated_at: maybeTimestamp,
  workspace_id: v.optional(v.string()),
})
export type McpAuthStatus = v.InferOutput<typeof McpAuthStatus>

/** Summary of a server's tool. */
export const McpServerTool = v.object({ id: v.string(), title: v.string(), description: v.string() })
export type McpServerTool = v.InferOutput<typeof McpServerTool>

/** An MCP server with its declaration and state. Values of variables and headers are never shown. */
export const McpServerView = v.object({
  name: v.string(),
  scope: v.picklist(['global', 'workspace', 'agent']),
  workspace_id: v.optional(v.string()),
  transport: v.string(),
  command: v.optional(v.string()),
  args: v.optional(v.array(v.string())),
  /** Sandbox profile in its declaration. */
  sandbox: v.optional(v.string()),
  ...McpServerPolicy,
  url: v.optional(v.string()),
  env_keys: v.optional(v.array(v.string())),
  secret_env_keys: v.optional(v.array(v.string())),
  header_keys: v.optional(v.array(v.string())),
  secret_header_keys: v.optional(v.array(v.string())),
  auth: v.nullish(McpAuth),
  auth_status: v.nullish(McpAuthStatus),
  catalog_entry: v.optional(v.string()),
  catalog_version: v.optional(v.string()),
  runtime_status: v.nullish(
    v.object({
      configured: v.boolean(),
      diagnostic: v.optional(v.string()),
      initialized: v.boolean(),
      probe: v.string(),
      reason: v.optional(v.string()),
      state: v.string(),
      tool_count: Integer,
    }),
  ),
  /** The file, agent, skill or extension that declares it. */
  declared_in: v.string(),
  source_metadata: SourceMetadata,
  /** Only in replies about one server. */
  tools: v.optional(v.array(McpServerTool)),
  /** Unusable tools, with the reason. */
  refused_tools: v.optional(v.array(v.string())),
})
export type McpServerView = v.InferOutput<typeof McpServerView>

const scopeEntries = {
  scope: v.optional(McpScope),
  workspace_id: v.optional(line(4096)),
}
export const McpPlaceQuery = v.object(scopeEntries)
export type McpPlaceQuery = v.InferOutput<typeof McpPlaceQuery>

/** GET /api/settings/mcp-servers/{name}: `probe` connects to the server and lists its tools again. */
export const ShowMcpServerQuery = v.object({
  ...scopeEntries,
  probe: v.optional(v.pipe(queryBoolean(), v.description('connect to the server now and refresh its tools'))),
})
export type ShowMcpServerQuery = v.InferOutput<typeof ShowMcpServerQuery>

export const McpTargetQuery = v.object({
  ...scopeEntries,
  target: v.optional(v.picklist(['auto', 'config', 'sidecar'])),
})
export type McpTargetQuery = v.InferOutput<typeof McpTargetQuery>

/** GET /api/settings/mcp-servers. */
export const ListMcpServersReply = v.object({
  collection: v.picklist(['providers', 'mcp-servers', 'sandboxes', 'hooks']),
  scope: McpScope,
  available_scopes: v.array(McpScope),
  workspace_id: v.optional(v.string()),
  mcp_servers: v.array(McpServerView),
  /** Unreadable sources. */
  problems: v.optional(v.array(v.string())),
})
export type ListMcpServersReply = v.InferOutput<typeof ListMcpServersReply>

export const McpServerReply = v.object({ mcp_server: McpServerView })
export type McpServerReply = v.InferOutput<typeof McpServerReply>

/** PUT /api/settings/mcp-servers/{name}. */
export const PutMcpServerBody = v.strictObject({
  server: v.strictObject({ name, ...McpSidecarServer.entries }),
  /** Variables that keep their stored value. */
  preserve_env: v.optional(v.pipe(v.array(line(256)), v.maxLength(256))),
  /** Secrets that keep their stored value. */
  preserve_secrets: v.nullish(
    v.strictObject({
      oauth_client_secret: v.optional(v.boolean()),
      secret_env: v.optional(v.pipe(v.array(line(256)), v.maxLength(256))),
    }),
  ),
  /** Secrets to store in the vault; the server entry then refers to them. */
  secret_values: v.nullish(
    v.strictObject({
      oauth_client_secret: v.nullish(line(32_768)),
      secret_env: v.optional(byName(32_768)),
    }),
  ),
})
export type PutMcpServerBody = v.InferOutput<typeof PutMcpServerBody>

/** The scope of the server to log in to. */
export const McpAuthQuery = v.object({ scope: McpScope, workspace_id: v.optional(line(4096)) })
export type McpAuthQuery = v.InferOutput<typeof McpAuthQuery>

/** POST /api/settings/mcp-servers/{name}/auth/begin. */
export const BeginMcpAuthBody = v.strictObject({ mode: v.picklist(['automatic', 'manual']) })

/** The login URL and its expiry. */
export const BeginMcpAuthReply = v.object({
  authorization_url: v.string(),
  callback_url: v.string(),
  expires_at: Timestamp,
  manual_supported: v.boolean(),
  state: v.string(),
})
export type BeginMcpAuthReply = v.InferOutput<typeof BeginMcpAuthReply>

/** POST /api/settings/mcp-servers/{name}/auth/exchange. */
export const ExchangeMcpAuthBody = v.union([
  v.strictObject({ code: line(8192) }),
  v.strictObject({ redirect_url: line(16_384) }),
])
