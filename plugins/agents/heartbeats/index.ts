import { describe, throws, tool } from '../../../kernel/kit/annotations/index.js'
import { definePlugin, ok, routeOf, surfaceOf } from '../../../kernel/plugin.js'
import { HeartbeatStatus, HeartbeatStatusQuery, WakeBody, WakeReply } from '../../../schemas/agents/sidecars.js'
import { Checks } from '../../desk/daemon/api.js'
import { REFERENCE_ERRORS } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { SessionCreated, Sessions, WakeSources } from '../../work/sessions/api.js'
import { AgentErrors } from '../agents/api.js'
import { AgentHeartbeatKind, Sidecars } from '../sidecars/api.js'
import { HeartbeatErrors, HeartbeatSent, Heartbeats, WakeContexts } from './api.js'
import { needs } from './needs.js'
import type { HeartbeatsService } from './service.js'
import { failuresColumn, wakeTables } from './wakes.js'

const route = routeOf<HeartbeatsService>(describe('Agent heartbeat'))
const { contribute, reconciler, tap } = surfaceOf<HeartbeatsService>()

const ofAgent = [AgentErrors.agent_not_found, AgentErrors.agent_invalid, ...REFERENCE_ERRORS]
const name = { name: 'name', summary: 'name of an agent' }
const workspace = {
  name: 'workspace',
  type: 'workspace',
  summary: 'id, name or path; default: SVC_WORKSPACE, else the workspace of this folder, else none (global)',
} as const
const everywhere = {
  name: 'global',
  type: 'boolean',
  summary: 'use the global agent even inside a workspace',
} as const

export default definePlugin({
  name: 'heartbeats',
  version: '0.1.0',
  requires: needs,
  provides: Heartbeats,
  service: () => import('./service.js').then(module => module.HeartbeatsService),
}).surface({
  declares: [WakeContexts],
  events: [HeartbeatSent],
  errors: [HeartbeatErrors],
  tables: [
    { id: '001-wake', sql: wakeTables },
    { id: '002-failures', sql: failuresColumn },
  ],
  // Decisions are not deleted with their session, because they serve as its audit.
  owned: [{ by: Sessions, table: 'heartbeats_state', column: 'session_id' }],
  services: [{ name: 'wakes', run: (service, signal) => service.run(signal) }],
  // A policy of a package changed: nothing of it is cached, so its sessions are planned again.
  reconcilers: [reconciler({ kind: AgentHeartbeatKind, run: service => service.planAll() })],
  taps: [
    tap(
      Events,
      events => events.of(SessionCreated),
      service =>
        ({ payload }) =>
          service.plan(payload),
    ),
    tap(
      Sessions,
      sessions => sessions.prepare,
      service => async (_start, session) => {
        await service.plan(session)
        return undefined
      },
    ),
    tap(
      Sessions,
      sessions => sessions.stopped,
      service => session => service.plan(session),
    ),
    tap(
      Sidecars,
      sidecars => sidecars.policyResolved,
      service => (_policy, agent) => service.planAll(agent),
    ),
    tap(
      Sidecars,
      sidecars => sidecars.configured,
      service => () => service.planAll(),
    ),
  ],
  commands: [
    {
      path: 'agent heartbeat status',
      summary: 'Show the heartbeat policy of an agent and its latest decisions',
      args: [name],
      options: [{ name: 'session', type: 'text', summary: 'only show this session' }, workspace, everywhere],
      load: () => import('./commands.js').then(module => ({ run: module.runStatus })),
    },
    {
      path: 'agent heartbeat wake',
      summary: 'Wake a session of an agent now, if its policy and the session allow it',
      args: [
        name,
        {
          name: 'session',
          optional: true,
          summary: 'id of a session of this agent; default: the most recently active',
        },
      ],
      options: [{ name: 'dry-run', type: 'boolean', summary: 'show what would happen' }, workspace, everywhere],
      load: () => import('./commands.js').then(module => ({ run: module.runWake })),
    },
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/agents/{name}/heartbeat/status',
      with: [
        throws(HeartbeatErrors.wake_session_not_found, ...ofAgent),
        tool('agent_heartbeat_status', ['autonomy', 'authored_context']),
      ],
      summary: 'Show whether a heartbeat policy applies, the session it wakes and its latest decisions',
      query: HeartbeatStatusQuery,
      replies: { 200: HeartbeatStatus },
      handle: async (service, { params, query }) => ok(await service.status(params.name, query)),
    }),
    route({
      method: 'POST',
      path: '/api/agents/{name}/heartbeat/wake',
      audited: false,
      with: [throws(...ofAgent), tool('agent_heartbeat_wake', ['autonomy', 'authored_context'])],
      summary: 'Request a wake-up now; 409 means that the session cannot be woken. A wake-up claims no task run',
      body: WakeBody,
      replies: { 200: WakeReply, 409: WakeReply },
      handle: (service, { params, body }) => service.wake(params.name, body),
    }),
  ],
  registries: [
    contribute(WakeSources, service => [{ read: (sessionId, withEvents) => service.inspect(sessionId, withEvents) }]),
    contribute(WakeContexts, service => service.contexts),
    contribute(Checks, service => [{ id: 'heartbeats', category: 'agents', run: async () => service.checkItems() }]),
  ],
})
