import { accepted, ok, type Route, routeOf } from '../../kernel/plugin.js'
import * as schemas from '../../schemas/sessions.js'
import { waitForSession } from './lifecycle/waiting.js'
import { inspectionOf, interactionsOf, repairTranscript, usageOf } from './read/inspection.js'
import { find, id, ONE } from './routes.js'
import type { SessionsService } from './service.js'
import { changeInQueue, dropFromQueue, listQueue } from './turn/queue.js'

const route = routeOf<SessionsService>()
const area = 'Sessions'
const entry = { name: 'queue_entry_id', in: 'path' } as const

/** Routes that look closer at one session. */
export const inspectionRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'GET',
    path: `${ONE}/usage`,
    area,
    summary: 'Tokens and cost as far as the agent tells',
    replies: { 200: schemas.SessionUsageReply },
    errors: [404, 500],
    cli: { path: 'session usage', args: [id], find },
    handle: async (self, { params }) =>
      ok({ usage: await usageOf(self.context, self.find(params.session_id, params.workspace_id)) }),
  }),
  route({
    method: 'GET',
    path: `${ONE}/interactions`,
    area,
    summary: 'What the agent asked a person: what waits, and what became of it',
    query: schemas.ListInteractionsQuery,
    replies: { 200: schemas.ListInteractionsReply },
    errors: [400, 403, 404, 500, 503],
    cli: {
      path: 'session interactions',
      args: [id],
      find,
      view: {
        rows: 'interactions',
        columns: [
          { header: 'ID', path: 'interaction_id' },
          { header: 'Asks for', path: 'title' },
          { header: 'Status', path: 'status' },
          { header: 'Answer', path: 'resolution' },
          { header: 'By', path: 'resolved_by' },
          { header: 'Asked', path: 'created_at', as: 'ago' },
        ],
        empty: 'this session asked for nothing',
      },
    },
    handle: async (self, { params, query }) => {
      const row = self.find(params.session_id, params.workspace_id)
      return ok({ interactions: await interactionsOf(self.context, row, self.live(row.id), query.status) })
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/inspect`,
    area,
    summary: 'Diagnostic picture of a session',
    query: schemas.InspectSessionQuery,
    replies: { 200: schemas.InspectSessionReply },
    errors: [403, 404, 500],
    cli: { path: 'session inspect', args: [id], find },
    handle: async (self, { params, query }) => {
      const row = self.find(params.session_id, params.workspace_id)
      return ok(await inspectionOf(self.context, row, self.live(row.id), query.include_recent_wake_events ?? false))
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/repair`,
    area,
    summary: 'Find and close what an interrupted transcript left open',
    query: schemas.RepairSessionQuery,
    replies: { 200: schemas.RepairSessionReply },
    errors: [400, 404, 500],
    cli: { path: 'session repair', args: [id], find },
    handle: async (self, { params, query }) => {
      const row = self.find(params.session_id, params.workspace_id)
      return ok({ repair: await repairTranscript(self.context, row, self.live(row.id), query) })
    },
  }),
  route({
    method: 'POST',
    path: `${ONE}/wait`,
    area,
    summary: 'Wait until a session is in one of some states; default: no turn runs any more',
    body: schemas.WaitSessionBody,
    replies: { 200: schemas.WaitSessionReply },
    errors: [400, 404, 409, 410, 422, 500, 503],
    essential: true,
    handle: async (self, { params, body, signal }) => {
      const row = self.find(params.session_id, params.workspace_id)
      const look = () => ({ row: self.context.table.get(row.id), live: self.live(row.id) })
      return ok(await waitForSession(self.context, row, look, body, signal))
    },
  }),
]

/** Routes over prompts that wait, and over the turn that runs. */
export const queueRoutes: readonly Route<SessionsService>[] = [
  route({
    method: 'POST',
    path: `${ONE}/steer`,
    area,
    summary: 'Go along with the next tool result of the running prompt',
    body: schemas.SteerSessionBody,
    replies: { 202: schemas.PromptReceiptReply },
    errors: [400, 404, 409, 500],
    cli: { path: 'session steer', args: [id, { name: 'text', in: 'body' }], find, view: { text: '{prompt.status}' } },
    handle: async (self, { params, body, actor }) => {
      const row = self.find(params.session_id, params.workspace_id)
      return accepted({ prompt: await self.prompting.steer(row.id, body.text, actor) })
    },
  }),
  route({
    method: 'GET',
    path: `${ONE}/prompt/queue`,
    area,
    summary: 'Prompts that wait, first in first out',
    replies: { 200: schemas.ListQueuedPromptsReply },
    errors: [404, 500],
    cli: {
      path: 'session input list',
      args: [id],
      find,
      view: {
        rows: 'inputs',
        columns: [
          { header: 'ID', path: 'id' },
          { header: 'Mode', path: 'mode' },
          { header: 'Text', path: 'text' },
          { header: 'Since', path: 'enqueued_at', as: 'ago' },
        ],
        empty: 'nothing waits',
      },
    },
    handle: (self, { params }) =>
      ok({ inputs: listQueue(self.context, self.find(params.session_id, params.workspace_id)) }),
  }),
  route({
    method: 'PUT',
    path: `${ONE}/prompt/queue/{queue_entry_id}`,
    area,
    summary: 'Another text for a prompt that waits',
    body: schemas.PutQueuedPromptBody,
    replies: { 200: schemas.QueuedPromptReply },
    errors: [400, 404, 409, 500],
    handle: async (self, { params, body }) => {
      const row = self.find(params.session_id, params.workspace_id)
      return ok({ input: await changeInQueue(self.context, row, params.queue_entry_id, body) })
    },
  }),
  route({
    method: 'DELETE',
    path: `${ONE}/prompt/queue/{queue_entry_id}`,
    area,
    summary: 'Take a prompt out of the queue',
    essential: true,
    replies: { 200: schemas.PromptReceiptReply },
    errors: [404, 500],
    cli: { path: 'session input remove', args: [id, entry], find, done: 'removed {queue_entry_id}' },
    handle: async (self, { params }) => {
      const row = self.find(params.session_id, params.workspace_id)
      return ok({ prompt: await dropFromQueue(self.context, row, params.queue_entry_id) })
    },
  }),
]
