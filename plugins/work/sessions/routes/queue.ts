import { cli, runsCode, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { accepted, ok, type Route } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { SessionErrors } from '../api.js'
import { GOAL_ERRORS, REPETITION_ERRORS, TURN_ERRORS } from '../refusals.js'
import type { SessionsService } from '../service.js'
import { changeInQueue, dropFromQueue, listQueue } from '../turn/queue.js'
import { find, id, ONE, reading, route } from './common.js'

const entry = { name: 'queue_entry_id', in: 'path' } as const

/** Routes for waiting prompts and the running turn. */
export const queueRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'POST',
    path: `${ONE}/steer`,
    audited: false,
    summary: 'Give the running turn guidance with its next tool result',
    body: schemas.SteerSessionBody,
    replies: { 202: schemas.PromptReceiptReply },
    with: [
      cli('session steer', { args: [id, { name: 'text', in: 'body' }], find, view: { text: '{prompt.status}' } }),
      throws(
        ...TURN_ERRORS,
        SessionErrors.no_active_prompt,
        SessionErrors.prompt_text_missing,
        SessionErrors.queue_full,
        ...GOAL_ERRORS,
      ),
    ],
    handle: async (service, { params, body, actor }) => {
      const row = service.find(params.session_id, params.workspace_id)
      return accepted({ prompt: await service.prompting.steer(row.id, body.text, actor) })
    },
  }),
  reading({
    method: 'GET',
    path: `${ONE}/prompt/queue`,
    origins: ['agent_session'],
    summary: 'List queued prompts, next first',
    replies: { 200: schemas.ListQueuedPromptsReply },
    with: [
      cli('session input list', {
        args: [id],
        find,
        view: show(
          schemas.ListQueuedPromptsReply,
          'inputs',
          ['id', 'mode', 'text', { of: 'enqueued_at~ago', header: 'Since' }],
          { empty: 'nothing waits' },
        ),
      }),
      tool('session_queue', ['sessions']),
    ],
    handle: (service, { params }) =>
      ok({ inputs: listQueue(service.context, service.find(params.session_id, params.workspace_id)) }),
  }),
  route({
    method: 'PUT',
    path: `${ONE}/prompt/queue/{queue_entry_id}`,
    audited: false,
    with: [
      throws(
        SessionErrors.session_not_found,
        SessionErrors.prompt_text_missing,
        SessionErrors.prompt_not_queued,
        SessionErrors.hook_denied,
        ...REPETITION_ERRORS,
      ),
    ],
    summary: 'Change the text of a queued prompt',
    body: schemas.PutQueuedPromptBody,
    replies: { 200: schemas.QueuedPromptReply },
    handle: async (service, { params, body }) => {
      const row = service.find(params.session_id, params.workspace_id)
      return ok({ input: await changeInQueue(service.context, row, params.queue_entry_id, body) })
    },
  }),
  route({
    method: 'DELETE',
    path: `${ONE}/prompt/queue/{queue_entry_id}`,
    audited: false,
    summary: 'Remove a prompt from the queue',
    essential: true,
    replies: { 200: schemas.PromptReceiptReply },
    with: [
      cli('session input remove', { args: [id, entry], find, done: 'removed {queue_entry_id}' }),
      throws(SessionErrors.session_not_found, SessionErrors.prompt_not_queued, SessionErrors.session_journal_damaged),
      runsCode(false),
    ],
    handle: async (service, { params }) => {
      const row = service.find(params.session_id, params.workspace_id)
      return ok({ prompt: await dropFromQueue(service.context, row, params.queue_entry_id) })
    },
  }),
]
