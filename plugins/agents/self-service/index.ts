import { cli, columnsOf, describe, runsCode, throws, tool } from '../../../kernel/kit/annotations/index.js'
import { created, definePlugin, ok, routeOf, surfaceOf } from '../../../kernel/plugin.js'
import { Soul } from '../../../schemas/agents/sidecars.js'
import {
  AgentContextReply,
  AgentMeReply,
  CoordinatorConfigQuery,
  CoordinatorConfigReply,
  SpawnBody,
  SpawnReply,
  ValidateOwnSoulBody,
} from '../../../schemas/sessions/self-service.js'
import { AGENT_SESSION } from '../../access/identity/api.js'
import { SandboxErrors } from '../../access/sandboxes/api.js'
import { undo } from '../../desk/changes/api.js'
import { CREATE_ERRORS, SessionErrors, Sessions } from '../../work/sessions/api.js'
import { AgentErrors } from '../agents/api.js'
import { Company, HeldWork, SpawnErrors, Spawning } from './api.js'
import { needs } from './needs.js'
import type { SelfService } from './service.js'
import { SPAWN_TABLES } from './spawn-table.js'

const route = routeOf<SelfService>(describe('Agent self-service (caller headers)'))
const { tap } = surfaceOf<SelfService>()
/** Optional for an agent, which its socket identifies. */
const headers = { 'X-Service-Session-ID': { required: false }, 'X-Service-Agent': { required: false } }
const origins = [AGENT_SESSION]
const ofCaller = [SessionErrors.session_not_found, SpawnErrors.spawn_parent_stopped]
const ofPersona = [AgentErrors.agent_not_found, AgentErrors.agent_invalid, ...ofCaller]
const identity = columnsOf<AgentMeReply['me']>()([
  { of: 'self.session_id', header: 'Session' },
  { of: 'self.agent_name', header: 'Agent' },
  'self.provider',
  'self.model',
  { of: 'workspace.root_dir', header: 'Workspace' },
  { of: 'session.lineage.parent_session_id', header: 'Parent' },
  { of: 'session.lineage.ttl_expires_at~time', header: 'Ends' },
  { of: 'limits.max_children', header: 'Children left' },
])
const within = (member: string) => identity.map(column => ({ ...column, path: `${member}.${column.path}` }))

export default definePlugin({
  name: 'self-service',
  version: '0.1.0',
  requires: needs,
  provides: Spawning,
  service: () => import('./service.js').then(module => module.SelfService),
}).surface({
  declares: [HeldWork, Company],
  errors: [SpawnErrors],
  tables: SPAWN_TABLES,
  owned: [{ by: Sessions, table: 'self_service_child', column: 'session_id' }],
  services: [{ name: 'reaper', run: (service, signal) => service.spawner.reap(signal) }],
  taps: [
    tap(
      Sessions,
      sessions => sessions.stopped,
      service => session => service.spawner.parentStopped(session),
    ),
    tap(
      Sessions,
      sessions => sessions.launching,
      service => async launch => service.spawner.judge(launch),
    ),
  ],
  commands: [
    {
      path: 'spawn',
      summary: 'Start a session with fewer rights than the calling session',
      args: [{ name: 'agent', summary: 'name of an agent' }],
      options: [
        { name: 'role', type: 'text', summary: 'role of the session; default: worker' },
        { name: 'ttl', type: 'integer', summary: 'lifetime in seconds; default: 3600' },
        { name: 'name', type: 'text', summary: 'name of the session' },
        { name: 'model', type: 'text', summary: 'model to use instead of that of the agent' },
        { name: 'overlay', type: 'text', summary: 'instructions before its first prompt' },
        { name: 'paths', type: 'text', summary: 'folders it may work in, comma-separated; default: the workspace' },
        {
          name: 'tools',
          type: 'text',
          summary: 'tools it may use, comma-separated: svc__read, svc__edit, svc__execute, mcp__…; default: none',
        },
        { name: 'mcp-servers', type: 'text', summary: 'MCP servers it may use, comma-separated; default: none' },
        { name: 'sandbox', type: 'text', summary: 'sandbox profile; default: that of this session' },
        { name: 'keep', type: 'boolean', summary: 'keep it running when this session stops' },
        { name: 'idempotency-key', type: 'text', summary: 'idempotency key; the same spawn happens only once' },
      ],
      load: () => import('./commands.js').then(module => ({ run: module.runSpawn })),
    },
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/agent/me',
      summary: 'Show the identity of the calling session',
      headers,
      origins,
      replies: { 200: AgentMeReply },
      with: [
        cli('whoami', { view: { item: 'me', fields: identity } }),
        tool('session_me', ['bootstrap', 'coordination']),
        throws(...ofCaller),
      ],
      handle: async (service, { actor, headers }) => ok(await service.me(service.caller(actor, headers))),
    }),
    route({
      method: 'GET',
      path: '/api/agent/context',
      summary: 'Show the context of the calling session: identity, task, lease, persona and limits',
      headers,
      origins,
      replies: { 200: AgentContextReply },
      with: [
        cli('me context', {
          view: {
            item: '',
            fields: [
              ...within('context'),
              ...columnsOf<AgentContextReply>()([
                { of: 'context.soul.role', header: 'Persona' },
                { of: 'context.task.task.title', header: 'Task' },
                { of: 'context.task.lease.run_id', header: 'Run' },
                { of: 'context.task.lease.lease_until~time', header: 'Lease expires' },
                { of: 'context.coordination_channel.channel.id', header: 'Channel' },
                { of: 'context.inbox_summary.unread_count', header: 'Unread messages' },
              ]),
            ],
          },
        }),
        tool('session_context', ['bootstrap', 'coordination']),
        throws(...ofPersona),
      ],
      handle: async (service, { actor, headers }) => ok(await service.context(service.caller(actor, headers))),
    }),
    route({
      method: 'GET',
      path: '/api/agent/soul',
      summary: 'Show the persona of the calling agent',
      headers,
      origins,
      replies: { 200: Soul },
      with: [throws(...ofPersona)],
      handle: async (service, { actor, headers }) => ok(await service.soul(service.caller(actor, headers))),
    }),
    route({
      method: 'POST',
      path: '/api/agent/soul/validate',
      audited: false,
      summary: 'Check a persona of the calling agent without saving it',
      body: ValidateOwnSoulBody,
      headers,
      origins,
      with: [runsCode(false), throws(SpawnErrors.spawn_foreign, ...ofPersona)],
      replies: { 200: Soul, 422: Soul },
      handle: async (service, { actor, headers, body }) => {
        const soul = await service.validateSoul(service.caller(actor, headers), body)
        return soul.validation_status === 'invalid' ? { status: 422 as const, body: soul } : ok(soul)
      },
    }),
    route({
      method: 'GET',
      path: '/api/agent/coordinator/config',
      summary: 'Show the configuration of coordinators in the workspace of the calling session',
      query: CoordinatorConfigQuery,
      headers,
      origins,
      replies: { 200: CoordinatorConfigReply },
      with: [throws(SpawnErrors.spawn_foreign, ...ofCaller)],
      handle: async (service, { actor, headers, query }) =>
        ok({ coordinator: service.coordinator(service.own(service.caller(actor, headers), query.workspace)) }),
    }),
    route({
      method: 'POST',
      path: '/api/agent/spawn',
      with: [
        undo({ by: 'never', why: 'the effects of the session are not undone; stop it: svc session stop' }),
        tool('session_spawn', ['bootstrap', 'coordination']),
        throws(
          ...ofCaller,
          SpawnErrors.spawn_invalid,
          SpawnErrors.spawn_key_conflict,
          SpawnErrors.spawn_depth_exceeded,
          SpawnErrors.spawn_children_exceeded,
          SpawnErrors.spawn_rights_exceeded,
          ...CREATE_ERRORS,
          SandboxErrors.sandbox_weaker,
          SessionErrors.sandbox_unavailable,
        ),
      ],
      summary: 'Start a session with fewer rights than the calling session',
      body: SpawnBody,
      headers,
      origins,
      invalid: 422,
      replies: { 201: SpawnReply },
      handle: async (service, { actor, headers, body }) =>
        created(await service.spawn(service.caller(actor, headers), body)),
    }),
  ],
})
