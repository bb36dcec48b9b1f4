import * as v from 'valibot'
import { event } from '../../../kernel/plugin.js'

const about = {
  tool_id: v.string(),
  session_id: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
  agent_name: v.optional(v.string()),
}

/** A call needs the approval of a person. */
export const ApprovalRequested = event('tool.approval_requested', v.object({ ...about, approval_id: v.string() }))
/** A person decided; `token`: by creating a token for one call. */
export const ApprovalDecided = event(
  'tool.approval_decided',
  v.object({ ...about, approval_id: v.optional(v.string()), decision: v.picklist(['allow', 'reject', 'token']) }),
)
/** A tool with more than read risk was called; `error_code` is set if it failed. */
export const ToolCalled = event(
  'tool.called',
  v.object({ ...about, risk: v.string(), error_code: v.optional(v.string()) }),
)
