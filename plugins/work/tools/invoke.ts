import type { Actor } from '../../../kernel/plugin.js'
import type { InvokeToolBody, InvokeToolReply, ToolCallEvent } from '../../../schemas/tools.js'
import { digestOf } from './digest.js'
import type { ToolsService } from './service.js'
import { resultToWire, SOURCES } from './wire.js'

/** Calls a tool for a request and reports the outcome. */
export async function invoke(
  tools: ToolsService,
  id: string,
  body: InvokeToolBody,
  actor: Actor,
  signal: AbortSignal,
): Promise<InvokeToolReply> {
  const scope = await tools.scopes.resolve(body, actor)
  const { approval_token: approvalToken } = body
  const outcome = await tools.call(
    id,
    body.input,
    { ...scope, actor, signal },
    approvalToken === undefined ? {} : { approvalToken },
  )
  const scene = await tools.scene(scope, outcome.toolId)
  const { descriptor } = tools.entryOf(scene, outcome.toolId)
  const about: Omit<ToolCallEvent, 'kind'> = {
    tool_id: outcome.toolId,
    ...(outcome.title === undefined ? {} : { display_title: outcome.title }),
    risk: descriptor.risk,
    read_only: descriptor.risk === 'read',
    destructive: descriptor.risk === 'destructive',
    open_world: descriptor.risk === 'open_world',
    truncated: outcome.truncated,
    input_digest: digestOf(body.input),
    source_kind: SOURCES[descriptor.backend.kind],
    source_owner: descriptor.owner,
    ...(scope.sessionId === undefined ? {} : { session_id: scope.sessionId }),
    ...(scope.workspaceId === undefined ? {} : { workspace_id: scope.workspaceId }),
    ...(scope.agentName === undefined ? {} : { agent_name: scope.agentName }),
    ...(body.correlation_id === undefined ? {} : { correlation_id: body.correlation_id }),
    ...(body.sensitive_input_fields ? { redacted_input_fields: body.sensitive_input_fields } : {}),
  }
  const done = { duration_ms: outcome.durationMs, result_bytes: outcome.bytes }
  return {
    tool_id: outcome.toolId,
    status: outcome.result.isError ? 'failed' : 'completed',
    duration_ms: outcome.durationMs,
    truncated: outcome.truncated,
    result: resultToWire(outcome),
    events: [
      { ...about, kind: 'tool.call_started' },
      ...(outcome.truncated ? [{ ...about, ...done, kind: 'tool.result_truncated' as const }] : []),
      { ...about, ...done, kind: outcome.result.isError ? 'tool.call_failed' : 'tool.call_completed' },
    ],
  }
}
