import { describe, runsCode, throws } from '../../../../kernel/kit/annotations/index.js'
import { created, ok, routeOf } from '../../../../kernel/plugin.js'
import {
  AcceptSuggestionReply,
  ListSuggestionsQuery,
  ListSuggestionsReply,
  SuggestBody,
  SuggestionReply,
} from '../../../../schemas/automation.js'
import { undo } from '../../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { AutomationErrors } from '../api.js'
import { jobRefusals } from '../jobs/routes.js'
import type { AutomationService } from '../service.js'
import { triggerRefusals } from '../triggers/routes.js'

const route = routeOf<AutomationService>(describe('Automation'))
const ALL = '/api/workspaces/{workspace_id}/automation/suggestions'
const { suggestion_not_found, suggestion_resolved } = AutomationErrors
const ONE = `${ALL}/{suggestion_id}` as const

export const suggestionRoutes = [
  route({
    method: 'GET',
    path: ALL,
    summary: 'List the suggestions of a workspace, newest first',
    query: ListSuggestionsQuery,
    replies: { 200: ListSuggestionsReply },
    with: [throws(...REFERENCE_ERRORS)],
    handle: async (service, { params, query }) =>
      ok({ suggestions: await service.suggestions.list(params.workspace_id, query.status) }),
  }),
  route({
    method: 'POST',
    path: ALL,
    audited: false,
    summary: 'Suggest a job or trigger; it does not run until a user accepts it',
    body: SuggestBody,
    bodyLimit: 64 * 1024,
    // Agents may call this: a suggestion has no effect until a user accepts it.
    origins: ['agent_session'],
    with: [
      runsCode(false),
      throws(
        AutomationErrors.suggestion_invalid,
        AutomationErrors.suggestion_foreign,
        AutomationErrors.suggestion_limit,
        ...[...jobRefusals, ...triggerRefusals, ...REFERENCE_ERRORS],
      ),
    ],
    replies: { 201: SuggestionReply },
    handle: async (service, { params, body, actor }) =>
      created({ suggestion: await service.suggestions.propose(actor, params.workspace_id, body) }),
  }),
  route({
    method: 'POST',
    path: `${ONE}/accept`,
    with: [
      undo({ by: 'never', why: 'delete the job or trigger that it created: svc automation jobs delete' }),
      throws(suggestion_not_found, suggestion_resolved, ...jobRefusals, ...triggerRefusals, ...REFERENCE_ERRORS),
    ],
    summary: 'Accept a suggestion and create its job or trigger',
    replies: { 200: AcceptSuggestionReply },
    handle: async (service, { params, actor }) =>
      ok(await service.suggestions.accept(actor, params.workspace_id, params.suggestion_id)),
  }),
  route({
    method: 'POST',
    path: `${ONE}/dismiss`,
    with: [
      undo({
        by: 'never',
        why: 'a dismissed suggestion is not restored; create the job: svc automation jobs create',
      }),
      throws(suggestion_not_found, suggestion_resolved, ...REFERENCE_ERRORS),
    ],
    summary: 'Dismiss a suggestion',
    replies: { 200: SuggestionReply },
    handle: async (service, { params }) =>
      ok({ suggestion: await service.suggestions.dismiss(params.workspace_id, params.suggestion_id) }),
  }),
]
