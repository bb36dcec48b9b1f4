import { accepted, noContent, ok, type Route, routeOf, streamed } from '../../../kernel/plugin.js'
import * as schemas from '../../../schemas/sessions.js'
import { promptStream, UI_STREAM_HEADERS } from '../read/ui-stream.js'
import type { SessionsService } from '../service.js'
import type { PromptAnswer } from '../turn/prompting.js'
import { area, fields, find, id, ONE } from './place.js'

const route = routeOf<SessionsService>()

/** Routes over one session in its workspace that change it. */
export const changingRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'PATCH',
    path: ONE,
    area,
    summary: 'Rename a session or change its permission mode',
    body: schemas.PatchSessionBody,
    replies: { 200: schemas.SessionDetailReply },
    cli: {
      path: 'session rename',
      args: [id, { name: 'name', in: 'body' }],
      find,
      view: { item: 'session', fields: fields.slice(0, 5) },
    },
    handle: async (self, { params, body }) =>
      ok({ session: await self.change(self.find(params.session_id, params.workspace_id), body) }),
  }),
  route({
    method: 'DELETE',
    path: ONE,
    area,
    summary: 'Stop and delete a session with its history',
    essential: true,
    replies: { 204: null },
    cli: { path: 'session remove', args: [id], find, done: 'removed {session_id}' },
    handle: async (self, { params }) => {
      await self.remove(self.find(params.session_id, params.workspace_id))
      return noContent()
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/prompt`,
    audited: false,
    area,
    summary: 'Send a prompt: run, queue, interrupt or steer; replies with a stream where the client accepts one',
    body: schemas.PromptBody,
    headers: { 'Idempotency-Key': { required: false }, Accept: { required: false } },
    replies: { 200: schemas.PromptReply, 202: schemas.PromptReply },
    frames: schemas.UiStreamFrame,
    handle: async (self, { params, body, headers, actor, signal }) => {
      const row = self.find(params.session_id, params.workspace_id)
      const key = body.idempotency_key ?? headers['idempotency-key']
      const request = { ...body, ...(key !== undefined && { idempotency_key: key }) }
      const submit = () => self.prompting.submit(row.id, request, actor)
      if (!headers.accept?.includes('text/event-stream')) return answered(await submit())
      const { answer, frames } = await promptStream(self.context, row, submit, signal)
      return frames ? streamed(frames, UI_STREAM_HEADERS) : answered(answer)
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/prompt/cancel`,
    audited: false,
    runsCode: false,
    area,
    summary: 'Cancel the running prompt',
    essential: true,
    replies: { 200: schemas.CancelPromptReply },
    cli: { path: 'session cancel', args: [id], find, view: { text: 'outcome' } },
    handle: async (self, { params }) => ok(await self.cancel(self.find(params.session_id, params.workspace_id))),
  }),
  route({
    method: 'POST',
    path: `${ONE}/approve`,
    area,
    summary: 'Answer a permission request',
    essential: true,
    body: schemas.ApproveBody,
    replies: { 200: schemas.ApproveReply },
    handle: async (self, { params, body, actor }) => {
      const allowed = await self.answer(self.find(params.session_id, params.workspace_id), body, actor)
      return ok({ status: allowed ? 'allowed' : 'rejected' })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/stop`,
    runsCode: false,
    area,
    summary: 'Stop a session',
    essential: true,
    replies: { 204: null },
    cli: { path: 'session stop', args: [id], find, done: '{session_id} is stopped' },
    handle: async (self, { params, actor }) => {
      const row = self.find(params.session_id, params.workspace_id)
      await self.stop(row.id, { reason: 'user_canceled', cause: actor.cause, isRefusable: true })
      return noContent()
    },
  }),
]

const answered = ({ status, prompt }: PromptAnswer) => (status === 200 ? ok({ prompt }) : accepted({ prompt }))
