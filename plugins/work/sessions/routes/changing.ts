import { cli, runsCode, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { accepted, noContent, ok, type Route, streamed } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { undo } from '../../../desk/changes/api.js'
import { AcpErrors } from '../../acp/api.js'
import { ApprovalErrors } from '../../tools/api.js'
import { SessionErrors } from '../api.js'
import { promptStream, UI_STREAM_HEADERS } from '../read/ui-stream.js'
import { GOAL_ERRORS, REPETITION_ERRORS, RESUME_ERRORS, TURN_ERRORS } from '../refusals.js'
import { changeSession } from '../runtime/permissions.js'
import type { SessionsService } from '../service.js'
import type { PromptAnswer } from '../turn/prompting.js'
import { fields, find, id, ONE, route } from './common.js'

const { session_not_found, hook_denied } = SessionErrors

const canceled = show(schemas.CancelPromptReply, '', [
  { of: 'outcome', words: { no_active_prompt: 'no prompt was running', cancel_requested: 'cancel requested' } },
])

/** Routes that change one session in its workspace. */
export const changingRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'PATCH',
    path: ONE,
    summary: 'Rename a session, or change its permission mode or the mode of its agent',
    body: schemas.PatchSessionBody,
    replies: { 200: schemas.SessionDetailReply },
    with: [
      cli('session rename', {
        args: [id, { name: 'name', in: 'body' }],
        find,
        view: { item: 'session', fields: fields.slice(0, 5) },
      }),
      undo({ by: 'patch', of: 'session' }),
      tool('session_update', ['sessions']),
      throws(session_not_found, SessionErrors.session_name_invalid, SessionErrors.agent_mode_invalid),
    ],
    handle: async (service, { params, body }) => {
      const row = service.find(params.session_id, params.workspace_id)
      await changeSession(service.context, row, service.open.peek(row.id), body)
      return ok({ session: service.wire.detail(service.find(row.id)) })
    },
  }),
  route({
    method: 'DELETE',
    path: ONE,
    summary: 'Stop and delete a session with its history',
    essential: true,
    replies: { 204: null },
    with: [
      undo({ by: 'never', why: 'the history of a deleted session is not kept; start another one: svc session new' }),
      cli('session remove', { args: [id], find, done: 'removed {session_id}' }),
      tool('session_remove', ['sessions']),
      throws(session_not_found, hook_denied),
    ],
    handle: async (service, { params }) => {
      await service.endings.remove(service.find(params.session_id, params.workspace_id).id)
      return noContent()
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/prompt`,
    audited: false,
    with: [
      tool('session_prompt', ['sessions']),
      throws(
        ...TURN_ERRORS,
        ...RESUME_ERRORS,
        ...REPETITION_ERRORS,
        ...GOAL_ERRORS,
        SessionErrors.prompt_text_missing,
        SessionErrors.queue_full,
        SessionErrors.attachment_not_found,
        SessionErrors.provider_fixed,
        SessionErrors.runtime_invalid,
      ),
    ],
    summary: 'Send a prompt: run, queue, interrupt or steer; replies with a stream where the client accepts one',
    body: schemas.PromptBody,
    headers: { 'Idempotency-Key': { required: false }, Accept: { required: false } },
    replies: { 200: schemas.PromptReply, 202: schemas.PromptReply },
    frames: schemas.UiStreamFrame,
    handle: async (service, input) => {
      const { params, body, headers, actor } = input
      const row = service.find(params.session_id, params.workspace_id)
      const key = body.idempotency_key ?? headers['idempotency-key']
      const request = { ...body, ...(key !== undefined && { idempotency_key: key }) }
      const submit = () => service.prompting.submit(row.id, request, actor, { onBehalfOf: body.on_behalf_of })
      if (!headers.accept?.includes('text/event-stream')) return answered(await submit())
      const { answer, frames } = await promptStream(service.context, row, submit, input.signal)
      return frames ? streamed(frames, UI_STREAM_HEADERS) : answered(answer)
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/prompt/cancel`,
    audited: false,
    summary: 'Cancel the running prompt',
    essential: true,
    replies: { 200: schemas.CancelPromptReply },
    with: [
      cli('session cancel', { args: [id], find, view: canceled }),
      tool('session_cancel', ['sessions']),
      throws(session_not_found),
      runsCode(false),
    ],
    handle: async (service, { params }) =>
      ok(await service.endings.cancel(service.find(params.session_id, params.workspace_id).id)),
  }),
  route({
    method: 'POST',
    path: `${ONE}/approve`,
    with: [
      undo({ by: 'never', why: 'the agent went on with the answer' }),
      throws(
        session_not_found,
        AcpErrors.permission_not_found,
        AcpErrors.permission_not_offered,
        ApprovalErrors.approval_over,
      ),
    ],
    summary: 'Answer a permission request',
    essential: true,
    body: schemas.ApproveBody,
    replies: { 200: schemas.ApproveReply },
    handle: async (service, { params, body, actor }) => {
      const { id } = service.find(params.session_id, params.workspace_id)
      return ok({ status: (await service.answer(id, body, actor)) ? 'allowed' : 'rejected' })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/stop`,
    summary: 'Stop a session',
    essential: true,
    replies: { 204: null },
    with: [
      undo({ by: 'never', why: 'its next prompt starts it again: svc session prompt' }),
      cli('session stop', { args: [id], find, done: '{session_id} is stopped' }),
      tool('session_stop', ['sessions']),
      throws(session_not_found, hook_denied),
      runsCode(false),
    ],
    handle: async (service, { params, actor }) => {
      const row = service.find(params.session_id, params.workspace_id)
      await service.endings.stop(row.id, { reason: 'user_canceled', cause: actor.cause, isRefusable: true })
      return noContent()
    },
  }),
]

const answered = ({ status, prompt }: PromptAnswer) => (status === 200 ? ok({ prompt }) : accepted({ prompt }))
