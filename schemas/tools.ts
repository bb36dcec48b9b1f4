/** Tools, toolsets, approvals, remembered decisions and artifacts. */
import * as v from 'valibot'
import { Integer, JsonMap, queryInteger } from './kernel/common.js'
import { ReasonCode, Risk, reasons, SourceKind, strings, Tool, ToolErrorCode } from './tools/tool.js'

export * from './tools/approvals.js'
export { MAX_INPUT_BYTES, ReasonCode, Tool, ToolErrorCode } from './tools/tool.js'

/** Context of list queries. `workspace` is an id, a name or a path. */
export const ToolPlaceQuery = v.object({
  workspace_id: v.optional(v.string()),
  workspace: v.optional(v.string()),
  session_id: v.optional(v.string()),
  agent_name: v.optional(v.string()),
})
export type ToolPlaceQuery = v.InferOutput<typeof ToolPlaceQuery>

/** GET /api/tools: `native` tools are those of the daemon itself, `external` ones all others. */
export const ListToolsQuery = v.object({
  ...ToolPlaceQuery.entries,
  source: v.optional(
    v.pipe(
      v.picklist(['all', 'native', 'external']),
      v.description('external: of MCP servers and extensions; native: of the daemon; all'),
    ),
  ),
})
export type ListToolsQuery = v.InferOutput<typeof ListToolsQuery>

export const SessionToolsQuery = v.object({ agent_name: v.optional(v.string()) })
export const ListToolsReply = v.object({
  tools: v.array(Tool),
  /** Notes about entries left out of a filtered list. */
  notes: v.optional(v.array(v.string())),
})
export type ListToolsReply = v.InferOutput<typeof ListToolsReply>
export const ToolReply = v.object({ tool: Tool })

/** POST …/tools/search; an empty query returns all tools. */
export const SearchToolsBody = v.strictObject({
  agent_name: v.optional(v.string()),
  limit: v.optional(v.pipe(Integer, v.minValue(1))),
  query: v.string(),
  session_id: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
})
export type SearchToolsBody = v.InferOutput<typeof SearchToolsBody>

/** POST /api/tools/{id}/invoke. */
export const InvokeToolBody = v.strictObject({
  agent_name: v.optional(v.string()),
  approval_token: v.optional(v.string()),
  correlation_id: v.optional(v.pipe(v.string(), v.maxLength(200))),
  input: v.unknown(),
  sensitive_input_fields: strings,
  session_id: v.optional(v.string()),
  tool_call_id: v.optional(v.pipe(v.string(), v.maxLength(200))),
  turn_id: v.optional(v.pipe(v.string(), v.maxLength(200))),
  workspace_id: v.optional(v.string()),
})
export type InvokeToolBody = v.InferOutput<typeof InvokeToolBody>

const Artifact = v.pipe(
  v.object({
    bytes: v.optional(Integer),
    mime_type: v.optional(v.string()),
    name: v.optional(v.string()),
    sha256: v.optional(v.string()),
    uri: v.string(),
  }),
  v.title('ToolArtifact'),
)

/** The result of a call, or the returned part of it. */
export const ToolResultWire = v.pipe(
  v.object({
    artifacts: v.optional(v.array(Artifact)),
    bytes: Integer,
    content: v.optional(
      v.array(
        v.object({
          data: v.optional(v.unknown()),
          metadata: v.optional(JsonMap),
          mime_type: v.optional(v.string()),
          text: v.optional(v.string()),
          type: v.string(),
        }),
      ),
    ),
    duration_ms: Integer,
    metadata: v.optional(JsonMap),
    preview: v.optional(v.string()),
    redactions: v.optional(v.array(v.object({ bytes: v.optional(Integer), path: v.string(), reason: ReasonCode }))),
    structured: v.optional(v.unknown()),
    truncated: v.boolean(),
    /** The tool reported a failure. */
    is_error: v.optional(v.boolean()),
  }),
  v.title('ToolResult'),
)
export type ToolResultWire = v.InferOutput<typeof ToolResultWire>

export const ToolCallEvent = v.object({
  agent_name: v.optional(v.string()),
  approval_mode: v.optional(v.string()),
  correlation_id: v.optional(v.string()),
  decision: v.optional(v.string()),
  destructive: v.boolean(),
  display_title: v.optional(v.string()),
  duration_ms: v.optional(Integer),
  error_code: v.optional(ToolErrorCode),
  input_digest: v.optional(v.string()),
  kind: v.picklist([
    'tool.call_started',
    'tool.call_completed',
    'tool.call_failed',
    'tool.call_denied',
    'tool.result_truncated',
  ]),
  open_world: v.boolean(),
  read_only: v.boolean(),
  reason_codes: reasons,
  redacted_input_fields: strings,
  result_bytes: v.optional(Integer),
  result_digest: v.optional(v.string()),
  result_redaction_paths: strings,
  risk: v.optional(Risk),
  session_id: v.optional(v.string()),
  source_kind: v.optional(SourceKind),
  source_owner: v.optional(v.string()),
  tool_id: v.string(),
  truncated: v.boolean(),
  workspace_id: v.optional(v.string()),
})
export type ToolCallEvent = v.InferOutput<typeof ToolCallEvent>

export const InvokeToolReply = v.object({
  duration_ms: Integer,
  events: v.array(ToolCallEvent),
  result: ToolResultWire,
  status: v.string(),
  tool_id: v.string(),
  truncated: v.boolean(),
})
export type InvokeToolReply = v.InferOutput<typeof InvokeToolReply>

/** Error body of the tool routes. */
export const ToolErrorBody = v.pipe(
  v.object({
    error: v.object({
      code: ToolErrorCode,
      details: v.optional(JsonMap),
      layer: v.optional(v.string()),
      message: v.string(),
      partial_result: v.nullish(ToolResultWire),
      reason_codes: reasons,
      tool_id: v.optional(v.string()),
    }),
  }),
  v.title('ToolErrorBody'),
)
export type ToolErrorBody = v.InferOutput<typeof ToolErrorBody>

/** A range of a stored result, in bytes. */
export const ArtifactQuery = v.object({
  offset: v.optional(queryInteger(0)),
  limit: v.optional(queryInteger(1, 1024 * 1024)),
})
export type ArtifactQuery = v.InferOutput<typeof ArtifactQuery>
export const ArtifactReply = v.object({
  artifact: Artifact,
  bytes: Integer,
  data_base64: v.string(),
  eof: v.boolean(),
  next_offset: Integer,
  offset: Integer,
  total_bytes: Integer,
})
export type ArtifactReply = v.InferOutput<typeof ArtifactReply>

/** A named set of tools; `expanded_tools` also includes nested sets, sorted. */
export const Toolset = v.pipe(
  v.object({
    expanded_tools: strings,
    id: v.string(),
    reason_codes: reasons,
    status: v.string(),
    tools: strings,
    toolsets: strings,
  }),
  v.title('Toolset'),
)
export type Toolset = v.InferOutput<typeof Toolset>
export const ListToolsetsReply = v.object({ toolsets: v.array(Toolset) })
export const ToolsetReply = v.object({ toolset: Toolset })
