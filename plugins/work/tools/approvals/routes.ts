import { cli, describe, runsCode, tool } from '../../../../kernel/kit/annotations/index.js'
import { created, type Fault, noContent, ok, routeOf } from '../../../../kernel/plugin.js'
import {
  ApprovalError,
  ApprovalReply,
  DecideApprovalBody,
  GrantReply,
  ListApprovalsReply,
  ListGrantsReply,
  MAX_INPUT_BYTES,
  MintApprovalBody,
  MintApprovalReply,
  PutGrantBody,
  ToolErrorBody,
  WorkspaceIdQuery,
} from '../../../../schemas/tools.js'
import { AGENT_SESSION, agentSessionOf } from '../../../access/identity/api.js'
import { undo } from '../../../desk/changes/api.js'
import { ApprovalErrors } from '../faults.js'
import type { ToolsService } from '../service.js'
import { errorToWire } from '../wire.js'
import { approvalToWire, pendingToWire } from './approvals.js'
import { ofForgetting, ofGrant } from './undo.js'

const route = routeOf<ToolsService>(describe('Tools and approvals'))
const faults = { reply: ToolErrorBody, body: errorToWire } as const
const origins = [AGENT_SESSION]

const approvalFaults = {
  reply: ApprovalError,
  body: ({ message, code, next }: Fault) => ({
    error: code,
    code,
    message,
    ...(next === undefined ? {} : { reason: next }),
  }),
} as const
export const approvalRoutes = [
  route({
    method: 'POST',
    path: '/api/tools/{id}/approvals',
    faults,
    with: [undo({ by: 'never', why: 'it ends with its call or its time' })],
    summary: 'Approve one call of a session in advance with a single-use token',
    body: MintApprovalBody,
    bodyLimit: MAX_INPUT_BYTES + 64 * 1024,
    replies: { 201: MintApprovalReply },
    handle: async (self, { actor, params, body }) =>
      created({ approval: await self.decisions.mint(params.id, body, actor) }),
  }),

  route({
    method: 'GET',
    path: '/api/tool-approvals',
    summary: 'List tool calls that wait for approval',
    replies: { 200: ListApprovalsReply },
    with: [
      cli('tool approvals', {
        view: {
          rows: 'approvals',
          columns: [
            { header: 'Approval', path: 'id' },
            { header: 'Tool', path: 'tool_id' },
            { header: 'Risk', path: 'risk' },
            { header: 'Agent', path: 'agent_name' },
            { header: 'Session', path: 'session_id' },
            { header: 'Until', path: 'expires_at', as: 'ago' },
            { header: 'Input', path: 'input', below: true },
          ],
          empty: 'no call waits for an answer',
        },
      }),
    ],
    handle: self => ok({ approvals: self.approvals.pending().map(pendingToWire) }),
  }),
  route({
    method: 'GET',
    path: '/api/tools/approvals/{id}',
    with: [tool('tool_approval_status', ['tool_approvals'])],
    faults: approvalFaults,
    origins,
    summary: 'Show the status of an approval and the result of the call',
    replies: { 200: ApprovalReply },
    handle: (self, { actor, params }) => ok(approvalToWire(self.approvalOf(params.id, agentSessionOf(actor)))),
  }),
  route({
    method: 'POST',
    path: '/api/tools/approvals/{id}/cancel',
    faults: approvalFaults,
    origins,
    with: [
      undo({ by: 'never', why: 'the agent asks again with its next call' }),
      runsCode(false),
      tool('tool_approval_cancel', ['tool_approvals']),
    ],
    summary: 'Withdraw an approval request',
    replies: { 200: ApprovalReply },
    handle: (self, { actor, params }) => {
      const waiting = self.approvalOf(params.id, agentSessionOf(actor))
      if (!self.approvals.cancel(waiting))
        throw ApprovalErrors.approval_over(`approval ${waiting.id} is over: ${waiting.status}`)
      return ok(approvalToWire(waiting))
    },
  }),
  route({
    method: 'POST',
    path: '/api/tool-approvals/{id}/decide',
    with: [undo({ by: 'never', why: 'the agent went on with the answer' })],
    summary: 'Approve or reject a pending tool call',
    body: DecideApprovalBody,
    replies: { 200: ApprovalReply },
    handle: async (self, { actor, params, body }) =>
      // An agent that decides for itself is refused; of what others ask it is not even told that it is there.
      ok(
        await self.decisions.decide(
          self.approvalOf(params.id, agentSessionOf(actor)),
          body.decision,
          body.remember,
          actor,
        ),
      ),
  }),
  route({
    method: 'GET',
    path: '/api/tool-approval-grants',
    summary: 'List remembered decisions of a workspace',
    query: WorkspaceIdQuery,
    replies: { 200: ListGrantsReply },
    with: [
      cli('tool grants list', {
        workspace: 'workspace_id',
        options: { workspace_id: 'workspace' },
        view: {
          rows: 'grants',
          columns: [
            { header: 'ID', path: 'id' },
            { header: 'Tool', path: 'tool_id' },
            { header: 'Decision', path: 'decision' },
            { header: 'Agent', path: 'agent_name' },
            { header: 'Used', path: 'last_used_at', as: 'ago' },
          ],
          empty: 'nothing is remembered',
        },
      }),
      tool('tool_grants_list', ['tool_approvals'], { visibility: 'operator' }),
    ],
    handle: async (self, { query }) => {
      const { id } = await self.kernel.needs.workspaces.find(query.workspace_id)
      const grants = self.grants.list(id)
      return ok({ grants, total: grants.length })
    },
  }),
  route({
    method: 'PUT',
    path: '/api/tool-approval-grants',
    summary: 'Remember whether agents may call a tool without approval',
    query: WorkspaceIdQuery,
    body: PutGrantBody,
    replies: { 200: GrantReply },
    with: [
      undo(ofGrant),
      cli('tool grants put', {
        workspace: 'workspace_id',
        args: [{ name: 'tool_id', summary: 'id of a tool' }],
        options: { workspace_id: 'workspace', agent_name: 'agent' },
        view: {
          item: 'grant',
          fields: [
            { header: 'ID', path: 'id' },
            { header: 'Tool', path: 'tool_id' },
            { header: 'Decision', path: 'decision' },
          ],
        },
      }),
    ],
    handle: async (self, { actor, query, body }) =>
      ok({ grant: await self.decisions.remember(query.workspace_id, body, actor) }),
  }),
  route({
    method: 'DELETE',
    path: '/api/tool-approval-grants/{id}',
    summary: 'Delete a remembered decision',
    essential: true,
    query: WorkspaceIdQuery,
    replies: { 204: null },
    with: [
      undo(ofForgetting),
      cli('tool grants delete', {
        workspace: 'workspace_id',
        options: { workspace_id: 'workspace' },
        done: 'forgot {id}',
      }),
    ],
    handle: async (self, { query, params }) => {
      const { id } = await self.kernel.needs.workspaces.find(query.workspace_id)
      if (!(await self.grants.remove(id, params.id))) throw ApprovalErrors.grant_not_found()
      return noContent()
    },
  }),
]
