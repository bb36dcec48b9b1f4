import { cli, describe, runsCode, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { ok, type Route, routeOf } from '../../../../kernel/plugin.js'
import {
  CoordinationQuery,
  CoordinationReply,
  PutCoordinationBody,
  PutInvitationBody,
} from '../../../../schemas/network/coordination.js'
import { namedActor } from '../../../access/identity/api.js'
import { undo } from '../../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { TaskErrors } from '../../../work/tasks/api.js'
import { NetworkErrors } from '../api.js'
import type { NetworkService } from '../service.js'

const route = routeOf<NetworkService>(describe('Network'), runsCode(false))
const base = '/api/workspaces/{workspace_id}/network-coordination'
const { coordination_scope_invalid, coordination_scope_mismatch, coordination_conflict } = NetworkErrors
const { task_not_found, task_run_not_found } = TaskErrors
const shared = throws(...REFERENCE_ERRORS, coordination_scope_mismatch, task_not_found, task_run_not_found)

/** Routes for deciding whether runs coordinate. */
export const coordinationRoutes: readonly Route<NetworkService>[] = [
  route({
    method: 'GET',
    path: base,
    summary: 'Show whether runs of a workspace or task coordinate in a channel',
    query: CoordinationQuery,
    replies: { 200: CoordinationReply },
    origins: ['agent_session'],
    with: [
      shared,
      throws(coordination_scope_invalid),
      tool('network_coordination', ['network', 'coordination']),
      cli('network coordination status', {
        workspace: 'workspace_id',
        args: [{ name: 'scope', in: 'query', optional: true, default: 'workspace', summary: 'workspace or task' }],
        view: show(CoordinationReply, 'coordination', [
          'scope',
          { of: 'task_id', header: 'Task' },
          'enabled',
          'revision',
          { of: 'invitation.dismissed', header: 'Dismissed' },
          { of: 'eligibility.reason', header: 'Eligibility' },
          { of: 'updated_at~time', header: 'Updated' },
          { of: 'updated_by', header: 'By' },
        ]),
      }),
    ],
    handle: async (service, { params, query, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      return ok({ coordination: service.coordination.show(id, query) })
    },
  }),
  route({
    method: 'PUT',
    path: base,
    summary: 'Choose whether future runs of a workspace or task coordinate in a channel',
    body: PutCoordinationBody,
    replies: { 200: CoordinationReply },
    with: [
      undo({ by: 'never', why: 'runs that have started keep the choice; choose again: svc network coordination' }),
      shared,
      throws(coordination_conflict),
      tool('network_coordination_set', ['network', 'coordination'], { visibility: 'operator' }),
    ],
    handle: async (service, { params, body, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      return ok({ coordination: await service.coordination.put(id, body, namedActor(actor).ref) })
    },
  }),
  route({
    method: 'PUT',
    path: `${base}/invitation`,
    summary: 'Dismiss the invitation to coordinate, or open it again',
    body: PutInvitationBody,
    replies: { 200: CoordinationReply },
    with: [
      undo({ by: 'never', why: 'open or dismiss it again: svc network coordination' }),
      shared,
      throws(coordination_conflict),
    ],
    handle: async (service, { params, body, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      return ok({ coordination: await service.coordination.invite(id, body, namedActor(actor).ref) })
    },
  }),
]
