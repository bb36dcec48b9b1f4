import type { Fault } from '../../../kernel/plugin.js'
import type { ErrorBody } from '../../../schemas/kernel/error.js'
import {
  type ArtifactReply,
  type Tool,
  type ToolErrorBody,
  ToolErrorCode,
  type ToolResultWire,
} from '../../../schemas/tools.js'
import { reasonsOf, type ToolBackendKind, type ToolDescriptor, type ToolOutcome } from './api.js'
import { digestOfSchema } from './digest.js'
import type { Judgement, PolicyScope } from './policy.js'
import type { Entry } from './registry/catalog.js'

const BACKENDS = { native: 'native_go', extension_host: 'extension_host', mcp: 'mcp' } as const satisfies Record<
  ToolBackendKind,
  string
>
export const SOURCES = { native: 'builtin', extension_host: 'extension', mcp: 'mcp' } as const satisfies Record<
  ToolBackendKind,
  string
>

/** Wire form of a tool. */
export function toolToWire(entry: Entry, scope: PolicyScope, judgement: Judgement): Tool {
  const { descriptor, conflicted, unavailable = [], why } = entry
  const { layers, callable, approvalRequired, reasons, visibleToSession, visibleToOperator } = judgement
  const isAvailable = unavailable.length === 0
  return {
    availability: {
      registered: true,
      enabled: layers.registry !== 'deny' && layers.source !== 'deny',
      available: isAvailable,
      executable: isAvailable,
      authorized: layers.agent !== 'deny' && layers.session !== 'deny',
      conflicted,
      ...(isAvailable ? {} : { reason_codes: [...unavailable] }),
      ...(why === undefined || isAvailable ? {} : { detail: why }),
    },
    decision: {
      callable,
      approval_required: approvalRequired,
      visible_to_session: visibleToSession,
      visible_to_operator: visibleToOperator,
      registry_policy_result: layers.registry,
      availability_result: layers.availability,
      source_policy_result: layers.source,
      agent_policy_result: layers.agent,
      session_policy_result: layers.session,
      ...(scope.agent ? { system_permission_mode: scope.agent.mode } : {}),
      ...(reasons.length > 0 ? { reason_codes: [...reasons] } : {}),
    },
    descriptor: descriptorToWire(descriptor),
  }
}

function descriptorToWire(descriptor: ToolDescriptor): Tool['descriptor'] {
  const { backend, risk, record } = descriptor
  return {
    tool_id: descriptor.id,
    description: descriptor.description,
    ...(descriptor.title === undefined ? {} : { display_title: descriptor.title }),
    backend: {
      kind: BACKENDS[backend.kind],
      ...(backend.extensionId === undefined ? {} : { extension_id: backend.extensionId }),
      ...(backend.handler === undefined ? {} : { handler: backend.handler }),
      ...(backend.mcpServer === undefined ? {} : { mcp_server: backend.mcpServer }),
      ...(backend.mcpTool === undefined ? {} : { mcp_tool: backend.mcpTool }),
      ...(backend.nativeName === undefined ? {} : { native_name: backend.nativeName }),
      ...(backend.requiresCapabilities === undefined
        ? {}
        : { requires_capabilities: [...backend.requiresCapabilities] }),
    },
    source: {
      kind: SOURCES[backend.kind],
      owner: descriptor.owner,
      ...(backend.mcpServer === undefined ? {} : { raw_server_name: backend.mcpServer }),
      ...(backend.mcpTool === undefined ? {} : { raw_tool_name: backend.mcpTool }),
      ...(record ? { resource_id: record.id, resource_version: String(record.version) } : {}),
    },
    risk,
    read_only: risk === 'read',
    destructive: risk === 'destructive',
    open_world: risk === 'open_world',
    requires_interaction: descriptor.requiresInteraction ?? false,
    concurrency_safe: descriptor.concurrencySafe ?? false,
    visibility: descriptor.visibility,
    input_schema: descriptor.inputSchema,
    input_schema_digest: digestOfSchema(descriptor.inputSchema),
    ...(descriptor.outputSchema
      ? { output_schema: descriptor.outputSchema, output_schema_digest: digestOfSchema(descriptor.outputSchema) }
      : {}),
    ...(descriptor.maxResultBytes === undefined ? {} : { max_result_bytes: descriptor.maxResultBytes }),
    ...(descriptor.tags?.length ? { tags: [...descriptor.tags] } : {}),
    ...(descriptor.toolsets?.length ? { toolsets: [...descriptor.toolsets] } : {}),
  }
}

/** Wire form of a call's outcome. */
export function resultToWire({ result, bytes, truncated, artifact, durationMs }: ToolOutcome): ToolResultWire {
  const [first] = result.content
  return {
    bytes,
    duration_ms: durationMs,
    truncated,
    content: result.content.map(({ mimeType, metadata, ...part }) => ({
      ...part,
      ...(mimeType === undefined ? {} : { mime_type: mimeType }),
      ...(metadata === undefined ? {} : { metadata: { ...metadata } }),
    })),
    ...(result.structured === undefined ? {} : { structured: result.structured }),
    ...(result.metadata === undefined ? {} : { metadata: { ...result.metadata } }),
    ...(truncated && first?.text !== undefined ? { preview: first.text } : {}),
    ...(artifact ? { artifacts: [artifactOf(artifact)] } : {}),
    ...(result.isError ? { is_error: true } : {}),
  }
}

const artifactOf = ({ id, uri, bytes, sha256 }: NonNullable<ToolOutcome['artifact']>): ArtifactReply['artifact'] => ({
  uri,
  name: id,
  bytes,
  sha256,
})

const CODES: Readonly<Record<number, ToolErrorCode>> = {
  400: 'tool_invalid_input',
  401: 'tool_denied',
  403: 'tool_denied',
  404: 'tool_not_found',
  409: 'tool_conflict',
  413: 'tool_invalid_input',
  415: 'tool_invalid_input',
  422: 'tool_invalid_input',
}
const known: ReadonlySet<string> = new Set(ToolErrorCode.options)

/**
 * Wire form of a fault: that of the tool routes, with codes of other plugins in the details. Unavailability uses the
 * common form.
 */
export function errorToWire(fault: Fault): (ToolErrorBody & { readonly code: string }) | ErrorBody {
  const { tool_id, reason_codes: _, layer, ...details } = fault.details ?? {}
  const isOwn = known.has(fault.code)
  const fields = {
    ...details,
    ...(isOwn ? {} : { code: fault.code }),
    ...(fault.next === undefined ? {} : { next: fault.next }),
  }
  if (fault.status === 503) return { error: fault.message, code: fault.code, details: fields }
  const reasons = reasonsOf(fault)
  return {
    // The code in the common place of all errors.
    code: fault.code,
    error: {
      code: isOwn ? (fault.code as ToolErrorCode) : (CODES[fault.status] ?? 'tool_backend_failed'),
      message: fault.message,
      ...(tool_id === undefined ? {} : { tool_id }),
      ...(layer === undefined ? {} : { layer }),
      ...(reasons.length > 0 ? { reason_codes: reasons } : {}),
      ...(Object.keys(fields).length > 0 ? { details: fields } : {}),
    },
  }
}
