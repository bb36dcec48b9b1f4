import { cli, runsCode, throws, tool } from '../../../../kernel/kit/annotations/index.js'
import { ok, type Route } from '../../../../kernel/plugin.js'
import * as schemas from '../../../../schemas/sessions.js'
import { undo } from '../../../desk/changes/api.js'
import { AcpErrors } from '../../acp/api.js'
import { SessionErrors } from '../api.js'
import { waitForSession } from '../lifecycle/waiting.js'
import { inspectionOf, interactionIn, interactionsOf, repairTranscript, usageOf } from '../read/inspection.js'
import type { SessionsService } from '../service.js'
import { inspectView, repairView, usageView } from '../views.js'
import { find, id, ONE, reading, readingJournal, route } from './common.js'

/** Requests that wait for a person, of all sessions. */
export const inboxRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'GET',
    path: '/api/inbox',
    summary: 'List questions, approvals and tasks that wait for you',
    replies: { 200: schemas.InboxReply },
    handle: service => ok({ items: service.inbox() }),
  }),
]

/** Routes for diagnostics of one session. */
export const inspectionRoutes: readonly Route<SessionsService>[] = [
  readingJournal({
    method: 'GET',
    path: `${ONE}/usage`,
    origins: ['agent_session'],
    summary: 'Show the tokens and cost that the agent reports',
    replies: { 200: schemas.SessionUsageReply },
    with: [cli('session usage', { args: [id], find, view: usageView }), tool('session_usage', ['sessions'])],
    handle: async (service, { params }) => {
      const row = service.find(params.session_id, params.workspace_id)
      const days = service.context.usageDays.between('', '9999', row.id)
      return ok({
        usage: await usageOf(service.context, row),
        days: days.map(({ day, turns, tokens, cost, currency }) => ({ date: day, turns, tokens, cost, currency })),
      })
    },
  }),
  readingJournal({
    method: 'GET',
    path: `${ONE}/interactions`,
    origins: ['agent_session'],
    summary: 'List the questions of an agent, open and answered',
    query: schemas.ListInteractionsQuery,
    replies: { 200: schemas.ListInteractionsReply },
    handle: async (service, { params, query }) => {
      const row = service.find(params.session_id, params.workspace_id)
      return ok({ interactions: await interactionsOf(service.context, row, service.open.peek(row.id), query.status) })
    },
  }),
  readingJournal({
    method: 'GET',
    path: `${ONE}/interactions/{interaction_id}`,
    origins: ['agent_session'],
    with: [throws(AcpErrors.permission_not_found)],
    summary: 'Show a question of an agent, with everything that it would run or change',
    replies: { 200: schemas.InteractionReply },
    handle: async (service, { params }) => {
      const row = service.find(params.session_id, params.workspace_id)
      return ok({
        interaction: await interactionIn(service.context, row, service.open.peek(row.id), params.interaction_id),
      })
    },
  }),
  reading({
    method: 'GET',
    path: `${ONE}/inspect`,
    origins: ['agent_session'],
    summary: 'Show a session with diagnostic details',
    query: schemas.InspectSessionQuery,
    replies: { 200: schemas.InspectSessionReply },
    with: [cli('session inspect', { args: [id], find, view: inspectView }), tool('session_inspect', ['sessions'])],
    handle: async (service, { params, query }) => {
      const row = service.find(params.session_id, params.workspace_id)
      return ok(
        await inspectionOf(service.context, row, service.open.peek(row.id), query.include_recent_wake_events ?? false),
      )
    },
  }),
  reading({
    method: 'POST',
    path: `${ONE}/repair`,
    summary: 'Repair an interrupted transcript',
    query: schemas.RepairSessionQuery,
    replies: { 200: schemas.RepairSessionReply },
    with: [
      undo({ by: 'never', why: 'the transcript before the repair is not kept' }),
      cli('session repair', { args: [id], find, view: repairView }),
    ],
    handle: async (service, { params, query }) => {
      const row = service.find(params.session_id, params.workspace_id)
      return ok({ repair: await repairTranscript(service.context, row, service.open.peek(row.id), query) })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/wait`,
    audited: false,
    with: [
      throws(
        SessionErrors.session_not_found,
        SessionErrors.wait_invalid,
        SessionErrors.wait_outdated,
        SessionErrors.wait_target_unknown,
        SessionErrors.wait_gone,
        SessionErrors.session_journal_damaged,
      ),
      tool('session_wait', ['sessions'], { risk: 'read' }),
      runsCode(false),
    ],
    summary: 'Wait until a session reaches one of the given states; default: no running turn',
    body: schemas.WaitSessionBody,
    replies: { 200: schemas.WaitSessionReply },
    essential: true,
    handle: async (service, { params, body, signal }) => {
      const row = service.find(params.session_id, params.workspace_id)
      const readState = () => ({ row: service.context.table.get(row.id), live: service.open.peek(row.id) })
      return ok(await waitForSession(service.context, row, readState, body, signal))
    },
  }),
]
