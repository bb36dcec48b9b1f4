import { cli, runsCode, show, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { type Actor, accepted, ok, type Route } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { AcpErrors } from '../../acp/api.js'
import { SessionErrors } from '../api.js'
import { commandsOf, recapOf } from '../read/recap.js'
import { REPETITION_ERRORS } from '../refusals.js'
import type { SessionsService } from '../service.js'
import { steerFromQueue } from '../turn/queue.js'
import { find, id, ONE, reading, readingJournal, route } from './common.js'

/** Default seconds for a question. */
const ASK_SECONDS = 300

/** Name of the asking party, for a person. */
const askerOf = ({ origin, owner }: Actor): string =>
  origin === 'agent_session' ? 'the agent' : origin === 'extension' ? `the extension ${owner.id}` : 'somebody'

/** Routes for questions, commands and the position of a conversation. */
export const conversationRoutes: readonly Route<SessionsService>[] = [
  reading({
    method: 'GET',
    path: `${ONE}/clarifications`,
    origins: ['agent_session'],
    summary: 'List the open questions of an agent',
    replies: { 200: schemas.ListClarificationsReply },
    handle: (service, { params }) => {
      const row = service.find(params.session_id, params.workspace_id)
      const pending = service.open.peek(row.id)?.binding.running?.clarifications.pending ?? []
      return ok({ clarifications: pending.map(({ turnId: _turn, ...clarification }) => clarification) })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/clarifications`,
    audited: false,
    origins: ['agent_session'],
    with: [
      tool('clarify', ['sessions'], {
        description:
          'Ask the person a question that you cannot answer yourself, as text or with choices, and wait for the answer. `fallback` true: no answer came; continue by yourself',
        fixed: { timeout_seconds: ASK_SECONDS },
        // The request changes nothing, and a person answers it.
        risk: 'read',
      }),
      throws(SessionErrors.session_not_found, AcpErrors.clarification_idle, AcpErrors.clarification_crowded),
      runsCode(false),
    ],
    summary: 'Ask the user of a session a question and wait for the answer',
    body: schemas.AskClarificationBody,
    replies: { 200: schemas.AskClarificationReply },
    handle: async (service, { params, body, actor, signal }) => {
      const row = service.find(params.session_id, params.workspace_id)
      const clarifications = service.open.peek(row.id)?.binding.running?.clarifications
      if (!clarifications) throw AcpErrors.clarification_idle()
      const { question, choices, timeout_seconds: seconds = ASK_SECONDS } = body
      return ok(await clarifications.put({ by: askerOf(actor), question, choices, timeoutMs: seconds * 1000, signal }))
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/clarifications/{request_id}/answer`,
    audited: false,
    with: [
      throws(
        SessionErrors.session_not_found,
        AcpErrors.clarification_not_found,
        AcpErrors.clarification_answered,
        AcpErrors.clarification_invalid,
      ),
    ],
    summary: 'Answer a question of an agent',
    essential: true,
    body: schemas.AnswerClarificationBody,
    replies: { 200: schemas.AnswerClarificationReply },
    handle: (service, { params, body }) =>
      ok(service.clarify(service.find(params.session_id, params.workspace_id).id, params.request_id, body)),
  }),
  reading({
    method: 'GET',
    path: `${ONE}/commands`,
    origins: ['agent_session'],
    summary: 'List the slash commands that the agent of a session offers',
    replies: { 200: schemas.ListCommandsReply },
    with: [
      cli('session commands', {
        args: [id],
        find,
        view: show(
          schemas.ListCommandsReply,
          'commands',
          [
            { of: 'canonical_token', header: 'Command' },
            { of: 'input_hint', header: 'Input' },
            'available',
            { of: 'description', below: true },
          ],
          { empty: 'the agent offers no commands; it lists them while it runs' },
        ),
      }),
    ],
    handle: (service, { params }) => {
      const row = service.find(params.session_id, params.workspace_id)
      return ok(commandsOf(row, service.open.peek(row.id)))
    },
  }),
  readingJournal({
    method: 'GET',
    path: `${ONE}/recap`,
    origins: ['agent_session'],
    with: [tool('session_recap', ['sessions'])],
    summary: 'Show a recap of a session',
    query: schemas.RecapQuery,
    replies: { 200: schemas.RecapReply },
    handle: async (service, { params, query }) => {
      const row = service.find(params.session_id, params.workspace_id)
      return ok({
        recap: await recapOf(service.context, row, service.open.peek(row.id), service.wire.session(row), query.limit),
      })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/prompt/queue/{queue_entry_id}/steer`,
    audited: false,
    with: [
      throws(
        SessionErrors.session_not_found,
        SessionErrors.prompt_text_missing,
        SessionErrors.prompt_not_queued,
        SessionErrors.no_active_prompt,
        SessionErrors.turn_changed,
        SessionErrors.hook_denied,
        ...REPETITION_ERRORS,
      ),
    ],
    summary: 'Use a queued prompt to steer the running turn',
    body: schemas.SteerQueuedPromptBody,
    replies: { 202: schemas.SteerQueuedPromptReply },
    handle: async (service, { params, body }) => {
      const row = service.find(params.session_id, params.workspace_id)
      const turn = () => service.open.peek(row.id)?.turn
      return accepted({ prompt: await steerFromQueue(service.context, row, params.queue_entry_id, body, turn) })
    },
  }),
]
