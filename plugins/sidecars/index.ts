import { definePlugin, ok, routeOf, surfaceOf } from '../../kernel/plugin.js'
import {
  DeleteSidecarBody,
  Heartbeat,
  HeartbeatChangeReply,
  HeartbeatHistoryReply,
  RefreshSoulBody,
  RollbackHeartbeatBody,
  RollbackSoulBody,
  SidecarHistoryQuery,
  SidecarQuery,
  Soul,
  SoulChangeReply,
  SoulHistoryReply,
  ValidateHeartbeatBody,
  ValidateSoulBody,
  WriteSidecarBody,
} from '../../schemas/sidecars.js'
import { Agents } from '../agents/api.js'
import { Checks } from '../daemon/api.js'
import { HealthTimings, SessionBriefings, Sessions } from '../sessions/api.js'
import { Workspaces } from '../workspaces/api.js'
import { AgentHeartbeatKind, AgentSoulKind, SidecarChanged, SidecarErrors, Sidecars, SoulRefreshed } from './api.js'
import { refreshTable } from './persona.js'
import { revisionTable } from './revisions.js'
import type { SidecarsService } from './service.js'
import { HeartbeatSetting, SoulSetting } from './settings.js'

const route = routeOf<SidecarsService>()
const { contribute } = surfaceOf<SidecarsService>()
const heartbeatArea = 'Agent heartbeat'
const soulArea = 'Agent persona (soul)'

/** Refused, so that nobody takes it for a check that happens. */
const headers = { 'If-Match': { required: false } }

const name = { name: 'name', summary: 'name of an agent' }
const workspace = {
  name: 'workspace',
  type: 'workspace',
  summary: 'id, name or path; default: SVC_WORKSPACE, else that of this folder, else everywhere',
} as const
const everywhere = { name: 'everywhere', type: 'boolean', summary: 'of the home, whatever the workspace here' } as const
const file = { name: 'file', type: 'text', summary: 'a file with the text; - is standard input' } as const
const digest = {
  name: 'expected-digest',
  type: 'text',
  summary: 'refuse when the file is another one by now; default: what it is when the command starts',
} as const

type Verb = 'Inspect' | 'Validate' | 'Write' | 'Remove' | 'History' | 'Rollback'

/** The commands that both sidecars have. */
function commandsOf(which: 'soul' | 'heartbeat', title: string, fileName: string) {
  const load = (verb: Verb) => () => import('./commands.js').then(module => ({ run: module[`${which}${verb}`] }))
  const at = (verb: string) => `agent ${which} ${verb}`
  return [
    {
      path: at('inspect'),
      summary: `Show the ${title} of an agent and what is wrong with it`,
      args: [name],
      options: [workspace, everywhere],
      load: load('Inspect'),
    },
    {
      path: at('validate'),
      summary: `Check a ${fileName} text without saving it; without --file the one in force`,
      args: [name],
      options: [file, workspace, everywhere],
      load: load('Validate'),
    },
    {
      path: at('write'),
      summary: `Write ${fileName}`,
      args: [name],
      options: [file, digest, workspace, everywhere],
      load: load('Write'),
    },
    {
      path: at('delete'),
      summary: `Remove ${fileName}; the history keeps it`,
      args: [name],
      options: [digest, workspace, everywhere],
      load: load('Remove'),
    },
    {
      path: at('history'),
      summary: `Changes of ${fileName}, the newest first`,
      args: [name],
      options: [
        { name: 'limit', type: 'integer', summary: 'at most 100; default 20' },
        { name: 'cursor', type: 'text', summary: 'next_cursor of the page before' },
        workspace,
        everywhere,
      ],
      load: load('History'),
    },
    {
      path: at('rollback'),
      summary: `Write ${fileName} as it was after an earlier change`,
      args: [name, { name: 'revision', summary: `an id of svc agent ${which} history` }],
      options: [digest, workspace, everywhere],
      load: load('Rollback'),
    },
  ] as const
}

export default definePlugin({
  name: 'sidecars',
  version: '0.1.0',
  requires: { agents: Agents, sessions: Sessions, workspaces: Workspaces },
  provides: Sidecars,
  service: () => import('./service.js').then(module => module.SidecarsService),
}).surface({
  kinds: [AgentSoulKind, AgentHeartbeatKind],
  events: [SidecarChanged, SoulRefreshed],
  errors: [SidecarErrors],
  settings: [SoulSetting, HeartbeatSetting],
  tables: [
    { id: '001-revision', sql: revisionTable },
    { id: '002-refresh', sql: refreshTable },
  ],
  commands: [
    ...commandsOf('soul', 'persona', 'SOUL.md'),
    ...commandsOf('heartbeat', 'heartbeat policy', 'HEARTBEAT.md'),
    {
      path: 'session soul refresh',
      summary: 'Give a session the persona of its agent as it is now, with its next prompt',
      args: [{ name: 'session_id', summary: 'id of a session of which no turn runs' }],
      options: [digest],
      load: () => import('./commands.js').then(module => ({ run: module.soulRefresh })),
    },
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/agents/{name}/heartbeat',
      area: 'Agents',
      summary: 'The heartbeat policy of an agent; 422 is one that is not valid',
      query: SidecarQuery,
      replies: { 200: Heartbeat, 422: Heartbeat },
      errors: [400, 403, 404, 410, 500],
      handle: (self, { params, query }) => self.readHeartbeat(params.name, query.workspace_id),
    }),
    route({
      method: 'PUT',
      path: '/api/agents/{name}/heartbeat',
      area: heartbeatArea,
      summary: 'Writes HEARTBEAT.md; expected_digest is that of the policy as it is, empty for none',
      body: WriteSidecarBody,
      headers,
      replies: { 200: HeartbeatChangeReply, 422: Heartbeat },
      errors: [400, 403, 404, 409, 410, 500, 503],
      handle: (self, { params, body, actor, headers }) => self.writeHeartbeat(params.name, body, actor, headers),
    }),
    route({
      method: 'DELETE',
      path: '/api/agents/{name}/heartbeat',
      area: 'Agents',
      summary: 'Removes HEARTBEAT.md; the history keeps it',
      body: DeleteSidecarBody,
      headers,
      essential: true,
      replies: { 200: HeartbeatChangeReply },
      errors: [400, 403, 404, 409, 410, 422, 500, 503],
      handle: async (self, { params, body, actor, headers }) =>
        ok(await self.deleteHeartbeat(params.name, body, actor, headers)),
    }),
    route({
      method: 'POST',
      path: '/api/agents/{name}/heartbeat/validate',
      area: heartbeatArea,
      summary: 'What a HEARTBEAT.md text would be; nothing is saved',
      body: ValidateHeartbeatBody,
      replies: { 200: Heartbeat, 422: Heartbeat },
      errors: [400, 403, 404, 410, 500],
      handle: (self, { params, body }) => self.validateHeartbeat(params.name, body),
    }),
    route({
      method: 'GET',
      path: '/api/agents/{name}/heartbeat/history',
      area: heartbeatArea,
      summary: 'Changes of HEARTBEAT.md, the newest first',
      query: SidecarHistoryQuery,
      replies: { 200: HeartbeatHistoryReply },
      errors: [400, 403, 404, 410, 422, 500],
      handle: async (self, { params, query }) => ok(await self.heartbeatHistory(params.name, query)),
    }),
    route({
      method: 'POST',
      path: '/api/agents/{name}/heartbeat/rollback',
      area: heartbeatArea,
      summary: 'Writes HEARTBEAT.md as it was after an earlier change',
      body: RollbackHeartbeatBody,
      headers,
      replies: { 200: HeartbeatChangeReply, 422: Heartbeat },
      errors: [400, 403, 404, 409, 410, 500, 503],
      handle: (self, { params, body, actor, headers }) => self.rollbackHeartbeat(params.name, body, actor, headers),
    }),
    route({
      method: 'GET',
      path: '/api/agents/{name}/soul',
      area: soulArea,
      summary: 'The persona of an agent, valid or not',
      query: SidecarQuery,
      replies: { 200: Soul },
      errors: [400, 403, 404, 410, 422, 500],
      handle: async (self, { params, query }) => ok(await self.readSoul(params.name, query.workspace_id)),
    }),
    route({
      method: 'PUT',
      path: '/api/agents/{name}/soul',
      area: soulArea,
      summary: 'Writes SOUL.md; expected_digest is that of the persona as it is, empty for none',
      body: WriteSidecarBody,
      headers,
      replies: { 200: SoulChangeReply, 422: Soul },
      errors: [400, 403, 404, 409, 410, 500, 503],
      handle: (self, { params, body, actor, headers }) => self.writeSoul(params.name, body, actor, headers),
    }),
    route({
      method: 'DELETE',
      path: '/api/agents/{name}/soul',
      area: soulArea,
      summary: 'Removes SOUL.md; the history keeps it',
      body: DeleteSidecarBody,
      headers,
      essential: true,
      replies: { 200: SoulChangeReply },
      errors: [400, 403, 404, 409, 410, 422, 500, 503],
      handle: async (self, { params, body, actor, headers }) =>
        ok(await self.deleteSoul(params.name, body, actor, headers)),
    }),
    route({
      method: 'POST',
      path: '/api/agents/{name}/soul/validate',
      area: soulArea,
      summary: 'What a SOUL.md text would be, or what the stored one is; nothing is saved',
      body: ValidateSoulBody,
      replies: { 200: Soul, 422: Soul },
      errors: [400, 403, 404, 410, 500],
      handle: (self, { params, body }) => self.validateSoul(params.name, body),
    }),
    route({
      method: 'GET',
      path: '/api/agents/{name}/soul/history',
      area: soulArea,
      summary: 'Changes of SOUL.md, the newest first',
      query: SidecarHistoryQuery,
      replies: { 200: SoulHistoryReply },
      errors: [400, 403, 404, 410, 422, 500],
      handle: async (self, { params, query }) => ok(await self.soulHistory(params.name, query)),
    }),
    route({
      method: 'POST',
      path: '/api/agents/{name}/soul/rollback',
      area: soulArea,
      summary: 'Writes SOUL.md as it was after an earlier change',
      body: RollbackSoulBody,
      headers,
      replies: { 200: SoulChangeReply, 422: Soul },
      errors: [400, 403, 404, 409, 410, 500, 503],
      handle: (self, { params, body, actor, headers }) => self.rollbackSoul(params.name, body, actor, headers),
    }),
    route({
      method: 'POST',
      path: '/api/workspaces/{workspace_id}/sessions/{session_id}/soul/refresh',
      area: 'Sessions',
      summary:
        'Gives a session the persona of its agent as it is now; expected_digest is that of the persona, empty for none',
      body: RefreshSoulBody,
      replies: { 200: Soul, 422: Soul },
      errors: [400, 403, 404, 409, 410, 500, 503],
      handle: (self, { params, body, actor }) => self.refresh(params, body, actor),
    }),
  ],
  registries: [
    contribute(Checks, self => [{ id: 'sidecars', category: 'agents', run: () => self.check() }]),
    contribute(SessionBriefings, self => [self.persona]),
    contribute(HealthTimings, self => [
      {
        staleAfterMs: () => self.heartbeatConfig.session_health_stale_after,
        tellEveryMs: () => self.heartbeatConfig.session_health_hook_min_interval,
      },
    ]),
  ],
})
