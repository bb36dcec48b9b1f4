import { describe, throws } from '../../../../kernel/kit/annotations/index.js'
import { ok, routeOf } from '../../../../kernel/plugin.js'
import {
  OccurrencesQuery,
  OccurrencesReply,
  SimulationQuery,
  SimulationReply,
} from '../../../../schemas/automation/simulation.js'
import { AutomationErrors } from '../api.js'
import type { AutomationService } from '../service.js'

const route = routeOf<AutomationService>(describe('Automation'))

export const simulationRoutes = [
  route({
    method: 'GET',
    path: '/api/automation/simulation',
    summary:
      'Simulate jobs over the coming days and triggers over recorded events, without running or writing anything',
    query: SimulationQuery,
    replies: { 200: SimulationReply },
    with: [throws(AutomationErrors.simulation_invalid, AutomationErrors.simulation_busy)],
    handle: async (service, { query, signal }) => ok({ simulation: await service.simulator.simulate(query, signal) }),
  }),
  route({
    method: 'GET',
    path: '/api/automation/occurrences',
    summary: 'Show a schedule in words and its next occurrences, without a job',
    query: OccurrencesQuery,
    replies: { 200: OccurrencesReply },
    with: [throws(AutomationErrors.job_invalid)],
    handle: async (service, { query: { count = 5, ...schedule } }) => ok(await service.preview(schedule, count)),
  }),
]
