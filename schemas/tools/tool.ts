/** A tool, and why it cannot be called. */
import * as v from 'valibot'
import { Integer } from '../kernel/common.js'

/** Why a tool or toolset is unavailable, or a call was refused. */
export const ReasonCode = v.picklist([
  'approval_canceled',
  'approval_required',
  'approval_timed_out',
  'approval_token_expired',
  'approval_token_mismatch',
  'approval_token_missing',
  'approval_token_replayed',
  'approval_unreachable',
  'backend_not_executable',
  'backend_unhealthy',
  'call_canceled',
  'call_timed_out',
  'conflicted_id',
  'conflicted_sanitized_name',
  'dependency_missing',
  'extension_capability_missing',
  'extension_inactive',
  'extension_runtime_mismatch',
  'handler_missing',
  'hook_denied',
  'id_empty',
  'id_empty_segment',
  'id_invalid_format',
  'id_too_long',
  'mcp_auth_expired',
  'mcp_auth_invalid',
  'mcp_auth_refresh_failed',
  'mcp_auth_required',
  'mcp_auth_unconfigured',
  'mcp_unreachable',
  'policy_denied',
  'reserved_conflict',
  'reserved_namespace',
  'result_budget_exceeded',
  'result_persistence_failed',
  'runtime_descriptor_mismatch',
  'runtime_descriptor_missing',
  'schema_invalid',
  'secret_metadata',
  'session_denied',
  'source_disabled',
  'tool_artifact_corrupt',
  'tool_artifact_not_found',
  'tool_unknown',
  'toolset_cycle',
  'toolset_unknown',
  'visibility_denied',
  'config_path_not_found',
  'loop_source_immutable',
  'loop_version_conflict',
])
export type ReasonCode = v.InferOutput<typeof ReasonCode>

export const ToolErrorCode = v.picklist([
  'tool_not_found',
  'tool_conflict',
  'tool_unavailable',
  'tool_denied',
  'tool_approval_required',
  'tool_invalid_input',
  'model_not_found',
  'reasoning_effort_unsupported',
  'tool_result_too_large',
  'tool_result_persistence_failed',
  'tool_backend_failed',
  'tool_canceled',
  'tool_timed_out',
])
export type ToolErrorCode = v.InferOutput<typeof ToolErrorCode>

export const Risk = v.picklist(['read', 'mutating', 'open_world', 'destructive'])
export const SourceKind = v.picklist(['builtin', 'mcp', 'extension', 'dynamic'])
export const reasons = v.optional(v.array(ReasonCode))
export const strings = v.optional(v.array(v.string()))

/** Maximum input of a call in bytes of JSON; the request body may be slightly larger. */
export const MAX_INPUT_BYTES = 1024 * 1024

/** A tool, its availability, and its permitted callers. */
export const Tool = v.pipe(
  v.object({
    availability: v.object({
      authorized: v.boolean(),
      available: v.boolean(),
      conflicted: v.boolean(),
      enabled: v.boolean(),
      executable: v.boolean(),
      reason_codes: reasons,
      registered: v.boolean(),
      /** Why it cannot be called, for people. */
      detail: v.optional(v.string()),
    }),
    decision: v.object({
      agent_policy_result: v.optional(v.string()),
      approval_required: v.boolean(),
      availability_result: v.optional(v.string()),
      callable: v.boolean(),
      hook_result: v.optional(v.string()),
      reason_codes: reasons,
      registry_policy_result: v.optional(v.string()),
      session_policy_result: v.optional(v.string()),
      source_policy_result: v.optional(v.string()),
      system_permission_mode: v.optional(v.string()),
      visible_to_operator: v.boolean(),
      visible_to_session: v.boolean(),
    }),
    descriptor: v.object({
      backend: v.object({
        extension_id: v.optional(v.string()),
        handler: v.optional(v.string()),
        kind: v.picklist(['native_go', 'extension_host', 'mcp', 'bridge']),
        mcp_server: v.optional(v.string()),
        mcp_tool: v.optional(v.string()),
        native_name: v.optional(v.string()),
        requires_capabilities: strings,
      }),
      concurrency_safe: v.boolean(),
      description: v.string(),
      destructive: v.boolean(),
      display_title: v.optional(v.string()),
      friendly_verb: v.optional(v.string()),
      input_schema: v.unknown(),
      input_schema_digest: v.string(),
      max_result_bytes: v.optional(Integer),
      open_world: v.boolean(),
      output_schema: v.optional(v.unknown()),
      output_schema_digest: v.optional(v.string()),
      preview: v.optional(v.string()),
      read_only: v.boolean(),
      requires_interaction: v.boolean(),
      risk: Risk,
      search_hints: strings,
      source: v.object({
        kind: SourceKind,
        owner: v.string(),
        raw_server_name: v.optional(v.string()),
        raw_tool_name: v.optional(v.string()),
        resource_id: v.optional(v.string()),
        resource_version: v.optional(v.string()),
        scope: v.optional(v.string()),
        workspace_id: v.optional(v.string()),
      }),
      tags: strings,
      tool_id: v.string(),
      toolsets: strings,
      visibility: v.picklist(['internal', 'operator', 'session', 'model']),
    }),
  }),
  v.title('Tool'),
)
export type Tool = v.InferOutput<typeof Tool>
