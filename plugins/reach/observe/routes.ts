import { describe, throws } from '../../../kernel/kit/annotations/index.js'
import { ok, routeOf } from '../../../kernel/plugin.js'
import { OverviewQuery, OverviewReply } from '../../../schemas/observe.js'
import { REFERENCE_ERRORS } from '../../desk/workspaces/api.js'
import type { ObserveService } from './service.js'

const route = routeOf<ObserveService>(describe('Overview', { errors: [410] }))

export const routes = [
  route({
    method: 'GET',
    path: '/api/observe/overview',
    summary: 'Show what needs attention, what ran and what it used',
    query: OverviewQuery,
    invalid: 422,
    replies: { 200: OverviewReply },
    with: [throws(...REFERENCE_ERRORS)],
    handle: async (self, { actor, query }) => ok({ overview: await self.overview(actor, query) }),
  }),
]
