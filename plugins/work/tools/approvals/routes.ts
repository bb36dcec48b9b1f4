import { cli, describe, runsCode, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../../kernel/kit/collection.js'
import { created, type Fault, ok, type Route, routeOf } from '../../../../kernel/plugin.js'
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
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { ApprovalErrors, ToolErrors } from '../faults.js'
import { PLACE_ERRORS } from '../routes.js'
import type { ToolsService } from '../service.js'
import { errorToWire } from '../wire.js'
import { approvalToWire, pendingToWire } from './approvals.js'
import { ofForgetting, ofGrant } from './undo.js'

const about = describe('Tools and approvals')
const route = routeOf<ToolsService>(about)
const { approval_not_found, approval_over } = ApprovalErrors
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

const grants = collectionOf<ToolsService>(about)({
  path: '/api/tool-approval-grants',
  key: 'id',
  noun: 'tool grants',
  one: [GrantReply, 'grant'],
  many: [ListGrantsReply, 'grants'],
  show: [
    'id',
    { of: 'tool_id', header: 'Tool' },
    'decision',
    { of: 'agent_name', header: 'Agent' },
    { of: 'last_used_at~ago', header: 'Used' },
  ],
  fields: ['id', { of: 'tool_id', header: 'Tool' }, 'decision'],
  missing: ApprovalErrors.grant_not_found,
})
const inWorkspace = { workspace: 'workspace_id', options: { workspace_id: 'workspace' } }

export const approvalRoutes: readonly Route<ToolsService>[] = [
  route({
    method: 'POST',
    path: '/api/tools/{id}/approvals',
    faults,
    with: [
      undo({ by: 'never', why: 'it expires after its call or its time limit' }),
      throws(ToolErrors.tool_not_found, ToolErrors.tool_invalid_input, ...PLACE_ERRORS),
    ],
    summary: 'Approve one call of a session in advance with a single-use token',
    body: MintApprovalBody,
    bodyLimit: MAX_INPUT_BYTES + 64 * 1024,
    replies: { 201: MintApprovalReply },
    handle: async (service, { actor, params, body }) =>
      created({ approval: await service.decisions.mint(params.id, body, actor) }),
  }),

  route({
    method: 'GET',
    path: '/api/tool-approvals',
    summary: 'List tool calls that wait for approval',
    replies: { 200: ListApprovalsReply },
    with: [
      cli('tool approvals', {
        view: show(
          ListApprovalsReply,
          'approvals',
          [
            { of: 'id', header: 'Approval' },
            { of: 'tool_id', header: 'Tool' },
            'risk',
            { of: 'agent_name', header: 'Agent' },
            { of: 'session_id', header: 'Session' },
            { of: 'expires_at~ago', header: 'Until' },
            { of: 'input', below: true },
          ],
          { empty: 'no call waits for an answer' },
        ),
      }),
    ],
    handle: service => ok({ approvals: service.approvals.pending().map(pendingToWire) }),
  }),
  route({
    method: 'GET',
    path: '/api/tools/approvals/{id}',
    with: [tool('tool_approval_status', ['tool_approvals']), throws(approval_not_found)],
    faults: approvalFaults,
    origins,
    summary: 'Show the status of an approval and the result of the call',
    replies: { 200: ApprovalReply },
    handle: (service, { actor, params }) => ok(approvalToWire(service.approvalOf(params.id, agentSessionOf(actor)))),
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
      throws(approval_not_found, approval_over),
    ],
    summary: 'Withdraw an approval request',
    replies: { 200: ApprovalReply },
    handle: (service, { actor, params }) => {
      const waiting = service.approvalOf(params.id, agentSessionOf(actor))
      if (!service.approvals.cancel(waiting))
        throw ApprovalErrors.approval_over(`approval ${waiting.id} has ended: ${waiting.status}`)
      return ok(approvalToWire(waiting))
    },
  }),
  route({
    method: 'POST',
    path: '/api/tool-approvals/{id}/decide',
    with: [
      undo({ by: 'never', why: 'the agent went on with the answer' }),
      throws(approval_not_found, approval_over, ToolErrors.tool_denied),
    ],
    summary: 'Approve or reject a pending tool call',
    body: DecideApprovalBody,
    replies: { 200: ApprovalReply },
    handle: async (service, { actor, params, body }) =>
      // An agent's attempt to decide is refused; approvals of other sessions are reported as not found.
      ok(
        await service.decisions.decide(
          service.approvalOf(params.id, agentSessionOf(actor)),
          body.decision,
          body.remember,
          actor,
        ),
      ),
  }),
  grants.list({
    summary: 'List remembered decisions of a workspace',
    query: WorkspaceIdQuery,
    with: [tool('tool_grants_list', ['tool_approvals'], { visibility: 'operator' })],
    throws: REFERENCE_ERRORS,
    cli: inWorkspace,
    empty: 'nothing is remembered',
    handle: async (service, { query }) => {
      const { id } = await service.kernel.needs.workspaces.find(query.workspace_id)
      const grants = service.grants.list(id)
      return { grants, total: grants.length }
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
        options: { ...inWorkspace.options, agent_name: 'agent' },
        view: grants.view,
      }),
      throws(ToolErrors.tool_denied, ToolErrors.tool_not_found, ...REFERENCE_ERRORS),
    ],
    handle: async (service, { actor, query, body }) =>
      ok({ grant: await service.decisions.remember(query.workspace_id, body, actor) }),
  }),
  grants.delete({
    summary: 'Delete a remembered decision',
    essential: true,
    query: WorkspaceIdQuery,
    with: [undo(ofForgetting)],
    throws: REFERENCE_ERRORS,
    cli: inWorkspace,
    done: 'forgot {id}',
    handle: async (service, { query, params }) => {
      const { id } = await service.kernel.needs.workspaces.find(query.workspace_id)
      if (!(await service.grants.remove(id, params.id))) throw ApprovalErrors.grant_not_found()
    },
  }),
]
