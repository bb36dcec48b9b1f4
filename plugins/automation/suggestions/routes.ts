import { created, ok, routeOf } from '../../../kernel/plugin.js'
import {
  AcceptSuggestionReply,
  ListSuggestionsQuery,
  ListSuggestionsReply,
  SuggestBody,
  SuggestionReply,
} from '../../../schemas/automation.js'
import type { AutomationService } from '../service.js'

const route = routeOf<AutomationService>()
const area = 'Automation'
const ALL = '/api/workspaces/{workspace_id}/automation/suggestions'
const ONE = `${ALL}/{suggestion_id}` as const

export const suggestionRoutes = [
  route({
    method: 'GET',
    path: ALL,
    area,
    summary: 'List suggestions of a workspace, the newest first',
    query: ListSuggestionsQuery,
    replies: { 200: ListSuggestionsReply },
    errors: [400, 404, 500, 503],
    handle: async (self, { params, query }) =>
      ok({ suggestions: await self.suggestions.list(params.workspace_id, query.status) }),
  }),
  route({
    method: 'POST',
    path: ALL,
    area,
    summary: 'Suggest a job or trigger; nothing of it runs before a person accepts it',
    body: SuggestBody,
    bodyLimit: 64 * 1024,
    // The agent of a session may: what it proposes waits for a person.
    origins: ['agent_session'],
    runsCode: false,
    replies: { 201: SuggestionReply },
    errors: [400, 403, 404, 409, 413, 422, 500, 503],
    handle: async (self, { params, body, actor }) =>
      created({ suggestion: await self.suggestions.propose(actor, params.workspace_id, body) }),
  }),
  route({
    method: 'POST',
    path: `${ONE}/accept`,
    area,
    summary: 'Accept a suggestion: its job or trigger is created',
    replies: { 200: AcceptSuggestionReply },
    errors: [400, 404, 409, 500, 503],
    handle: async (self, { params, actor }) =>
      ok(await self.suggestions.accept(actor, params.workspace_id, params.suggestion_id)),
  }),
  route({
    method: 'POST',
    path: `${ONE}/dismiss`,
    area,
    summary: 'Dismiss a suggestion',
    replies: { 200: SuggestionReply },
    errors: [404, 409, 500, 503],
    handle: async (self, { params }) =>
      ok({ suggestion: await self.suggestions.dismiss(params.workspace_id, params.suggestion_id) }),
  }),
]
