import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { clip, shown } from '../../../kernel/kit/text.js'
import { defineErrors, type Fault, type FaultMore } from '../../../kernel/plugin.js'
import { ReasonCode, type ToolErrorCode } from '../../../schemas/tools.js'

const SHOW = command('tool show', placeholder('id'))

/**
 * Errors of tool calls and of their results. A call can also fail with `model_not_found` and
 * `reasoning_effort_unsupported`, which are errors of the models.
 */
export const ToolErrors = defineErrors({
  tool_not_found: {
    status: 404,
    message: 'no such tool',
    next: `find tools: ${command('tool search', placeholder('words'))}`,
  },
  tool_conflict: { status: 409, message: 'two tools have this id', next: command('tool list') },
  tool_unavailable: { status: 409, message: 'the tool cannot be called now', next: `see why: ${SHOW}` },
  tool_denied: { status: 403, message: 'this caller may not call the tool', next: `see why: ${SHOW}` },
  tool_approval_required: {
    status: 202,
    message: 'this call requires approval',
    next: `allow it: ${command('tool approve', placeholder('approval'))}`,
  },
  tool_invalid_input: {
    status: 400,
    message: 'the input does not match the schema of the tool',
    next: `read the schema: ${SHOW}`,
  },
  tool_result_too_large: {
    status: 502,
    message: 'the result of the tool is too large to store',
    next: 'request a smaller result',
  },
  tool_result_persistence_failed: {
    status: 507,
    message: 'the result is too large to return, and could not be stored',
    next: command('doctor'),
  },
  tool_backend_failed: { status: 502, message: 'the tool failed', next: command('logs') },
  tool_canceled: { status: 409, message: 'the caller canceled the call', next: 'call it again' },
  tool_timed_out: { status: 502, message: 'the tool did not answer in time', next: 'call it again' },
})

/** Errors of approvals and remembered decisions. */
export const ApprovalErrors = defineErrors({
  approval_not_found: {
    status: 404,
    message: 'no such approval, or it ended long ago',
    next: command('tool approvals'),
  },
  approval_over: { status: 409, message: 'this approval has ended', next: command('tool approvals') },
  grant_not_found: { status: 404, message: 'no such remembered decision', next: command('tool grants list') },
})

/** Error codes that are defined here. */
export type OwnErrorCode = Exclude<ToolErrorCode, 'model_not_found' | 'reasoning_effort_unsupported'>

/** A refusal or failure with its reasons, most significant first. */
export function toolFault(
  code: OwnErrorCode,
  reasons: readonly ReasonCode[],
  message?: string,
  more: FaultMore & { readonly toolId?: string } = {},
): Fault {
  const { toolId, ...rest } = more
  const details = {
    ...rest.details,
    ...(reasons.length > 0 ? { reason_codes: reasons.join(',') } : {}),
    ...(toolId === undefined ? {} : { tool_id: toolId }),
  }
  return ToolErrors[code](message, { ...rest, details })
}

/** The fault of an unknown or hidden tool. `meant`: id of the tool with this name. */
export const noTool = (id: string, meant?: string): Fault => {
  const server = /^mcp__(.+?)__/.exec(id)?.[1]
  return toolFault('tool_not_found', ['tool_unknown'], `no such tool: ${shown(id, 256)}`, {
    toolId: clip(id, 256),
    ...(meant !== undefined && { next: command('tool show', meant) }),
    // Tools of a server are known only after a connection to it.
    ...(server !== undefined && {
      next: `check its MCP server: ${command('mcp show', server, '--probe')}`,
    }),
  })
}

const known: ReadonlySet<string> = new Set(ReasonCode.options)

/** The reasons of such a fault. */
export const reasonsOf = ({ details }: Pick<Fault, 'details'>): ReasonCode[] =>
  (details?.reason_codes ?? '').split(',').filter((code): code is ReasonCode => known.has(code))
