/** Approval requests for calls, and remembered decisions. */
import * as v from 'valibot'
import { Integer, Timestamp } from '../kernel/common.js'
import { Risk, strings } from './tool.js'

/** POST /api/tools/{id}/approvals with the input or its digest. */
export const MintApprovalBody = v.strictObject({
  agent_name: v.optional(v.string()),
  input: v.optional(v.unknown()),
  input_digest: v.optional(v.string()),
  session_id: v.string(),
  workspace_id: v.optional(v.string()),
})
export type MintApprovalBody = v.InferOutput<typeof MintApprovalBody>

export const MintApprovalReply = v.object({
  approval: v.object({
    approval_token: v.string(),
    expires_at: Timestamp,
    input_digest: v.string(),
    tool_id: v.string(),
  }),
})

const PendingApproval = v.object({
  id: v.string(),
  tool_id: v.string(),
  risk: Risk,
  agent_name: v.optional(v.string()),
  session_id: v.optional(v.string()),
  workspace_id: v.optional(v.string()),
  input: v.unknown(),
  input_digest: v.string(),
  expires_at: Timestamp,
  approval_status: v.string(),
})
export type PendingApproval = v.InferOutput<typeof PendingApproval>
export const ListApprovalsReply = v.object({ approvals: v.array(PendingApproval) })

/** State of an approval and of the waiting call. */
export const ApprovalReply = v.object({
  approval_status: v.string(),
  error: v.optional(v.unknown()),
  execution_status: v.optional(v.string()),
  expires_at: v.nullish(Timestamp),
  result: v.optional(v.unknown()),
})
export type ApprovalReply = v.InferOutput<typeof ApprovalReply>

/** POST /api/tool-approvals/{id}/decide; `remember` keeps the decision for this input, or for the tool and agent. */
export const DecideApprovalBody = v.strictObject({
  decision: v.picklist(['allow', 'reject']),
  remember: v.optional(v.picklist(['input', 'agent'])),
})
export type DecideApprovalBody = v.InferOutput<typeof DecideApprovalBody>

/** Error body of the approval routes. */
export const ApprovalError = v.object({
  clients: strings,
  error: v.string(),
  fields: v.optional(v.record(v.string(), v.string())),
  message: v.optional(v.string()),
  reason: v.optional(v.string()),
})

export const WorkspaceIdQuery = v.object({ workspace_id: v.pipe(v.string(), v.minLength(1)) })

/** A remembered decision. Without an agent it applies to all agents, without a digest to all inputs. */
export const Grant = v.pipe(
  v.object({
    agent_name: v.optional(v.string()),
    created_at: Timestamp,
    decision: v.picklist(['allow', 'reject']),
    id: v.string(),
    input_digest: v.optional(v.string()),
    last_used_at: Timestamp,
    tool_id: v.string(),
    workspace_id: v.string(),
  }),
  v.title('ToolGrant'),
)
export type Grant = v.InferOutput<typeof Grant>
export const ListGrantsReply = v.object({ grants: v.array(Grant), total: Integer })
export const GrantReply = v.object({ grant: Grant })

/** PUT /api/tool-approval-grants; scope `agent` needs `agent_name`. */
export const PutGrantBody = v.strictObject({
  agent_name: v.optional(v.pipe(v.string(), v.maxLength(128))),
  decision: v.picklist(['allow', 'reject']),
  scope: v.picklist(['agent', 'tool']),
  tool_id: v.pipe(v.string(), v.maxLength(256)),
})
export type PutGrantBody = v.InferOutput<typeof PutGrantBody>
