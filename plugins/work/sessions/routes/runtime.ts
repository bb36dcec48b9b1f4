import { throws } from '../../../../kernel/kit/annotations/index.js'
import { ok, type Route } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { AgentErrors } from '../../../agents/agents/api.js'
import { undo } from '../../../desk/changes/api.js'
import { SessionErrors } from '../api.js'
import { checkProvider, checkSelection, storeSelection } from '../runtime/selection.js'
import type { SessionsService } from '../service.js'
import { ONE, route } from './common.js'

const { session_not_found, runtime_changed } = SessionErrors

/** Routes for the runtime of later prompts. */
export const runtimeRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'PUT',
    path: `${ONE}/runtime`,
    with: [
      undo({ by: 'never', why: 'the former choice is not stored; choose again' }),
      throws(
        session_not_found,
        runtime_changed,
        SessionErrors.runtime_invalid,
        SessionErrors.provider_fixed,
        AgentErrors.agent_not_found,
        AgentErrors.agent_invalid,
      ),
    ],
    summary: 'Set the provider, model, effort and speed of later prompts',
    body: schemas.PutRuntimeBody,
    replies: { 200: schemas.SessionDetailReply },
    handle: async (service, { params, body }) => {
      const row = service.find(params.session_id, params.workspace_id)
      await checkProvider(service.context, row, body.runtime.provider)
      checkSelection(service.context, row, body.runtime, service.open.peek(row.id), false)
      await storeSelection(service.context, row.id, body.runtime, body.expected_revision)
      await service.prompting.atRest(row.id, live => live.binding.takeRuntime())
      return ok({ session: service.wire.detail(service.find(row.id)) })
    },
  }),
  route({
    method: 'DELETE',
    path: `${ONE}/runtime`,
    with: [
      undo({ by: 'never', why: 'the former choice is not stored; choose again' }),
      throws(session_not_found, runtime_changed),
    ],
    summary: 'Reset provider, model, effort and speed to those the session started with',
    query: schemas.DeleteRuntimeQuery,
    replies: { 200: schemas.SessionDetailReply },
    handle: async (service, { params, query }) => {
      const row = service.find(params.session_id, params.workspace_id)
      await storeSelection(service.context, row.id, undefined, query.expected_revision)
      await service.prompting.atRest(row.id, live => live.binding.takeRuntime())
      return ok({ session: service.wire.detail(service.find(row.id)) })
    },
  }),
]
