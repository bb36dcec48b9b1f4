import type { EventContent } from '../events.js'
import type { Permissions } from '../requests/permissions.js'
import type { ToolCall } from '../turn/tool-calls.js'

/** A warning about a tool call for which its agent should have asked. */
export function unasked(
  call: ToolCall,
  { mode, tools, guardedBy }: Pick<Permissions, 'mode' | 'tools' | 'guardedBy'>,
): EventContent {
  const lacking = tools.lacking(call.kind, call, call.fields)
  const ofMode = mode === 'approve-all' && guardedBy !== undefined ? guardedBy : `permissions=${mode}`
  const rule = lacking === undefined ? ofMode : `that the session has no tool ${lacking}`
  const text = `the agent did "${call.title}" without asking: ${rule} does not hold for its own tools; set this up in the agent, or trust it with what the workspace holds`
  return { warning: 'permission_not_asked', text }
}
