import type * as v from 'valibot'
import { describe, runsCode, throws, tool } from '../../../kernel/kit/annotations/index.js'
import { ok, type Route, routeOf } from '../../../kernel/plugin.js'
import {
  DeleteSidecarBody,
  Heartbeat,
  HeartbeatChangeReply,
  HeartbeatHistoryReply,
  RefreshSoulBody,
  type RollbackHeartbeatBody as RollbackBody,
  RollbackHeartbeatBody,
  RollbackSoulBody,
  SidecarHistoryQuery,
  SidecarQuery,
  SidecarTextReply,
  Soul,
  SoulChangeReply,
  SoulHistoryReply,
  ValidateHeartbeatBody,
  ValidateSoulBody,
  WriteSidecarBody,
} from '../../../schemas/agents/sidecars.js'
import { pick, type Undo, undo } from '../../desk/changes/api.js'
import { REFERENCE_ERRORS } from '../../desk/workspaces/api.js'
import { SessionErrors } from '../../work/sessions/api.js'
import { AgentErrors } from '../agents/api.js'
import { SidecarErrors } from './api.js'
import type { SidecarDesk } from './desk.js'
import { SIDECARS, type Which } from './locations.js'
import type { SidecarsService } from './service.js'

const route = routeOf<SidecarsService>()

/** Path of a sidecar in the path of a request that changes it, which may end in `/rollback`. */
const sidecarAt = (path: string) => path.replace(/\/rollback$/, '')

/** Undo of a sidecar change: restores the revision from its history. */
function wayBack(which: Which): Undo {
  const inWorkspace = (body: unknown) => pick(body, ['workspace_id'])
  return {
    by: 'custom',
    reads: ({ path, body }) => {
      const query = new URLSearchParams(inWorkspace(body) as Record<string, string>).toString()
      return [`${sidecarAt(path)}${query && `?${query}`}`]
    },
    request: ({ path: changed, body, before, after }) => {
      const path = sidecarAt(changed)
      const [was, is] = [Object(before), Object(after)] as {
        present?: boolean
        digest?: string
        revision_id?: string
      }[]
      const condition = { expected_digest: is?.digest ?? '', ...inWorkspace(body) }
      if (!was?.present) return { method: 'DELETE', path, body: condition }
      if (which === 'soul' && was.revision_id === undefined) return 'the replaced persona is not in the history'
      const target = which === 'soul' ? { revision_id: was.revision_id } : { target_digest: was.digest }
      return { method: 'POST', path: `${path}/rollback`, body: { ...target, ...condition } }
    },
  }
}

const ofAgent = [AgentErrors.agent_not_found, AgentErrors.agent_invalid, ...REFERENCE_ERRORS]
const ofChange = [
  SidecarErrors.heartbeat_if_match_header_unsupported,
  SidecarErrors.sidecar_changed,
  SidecarErrors.sidecar_read_only,
  SidecarErrors.sidecar_unwritable,
  SidecarErrors.sidecar_idempotency_conflict,
  ...ofAgent,
]

/** Refused, so that clients do not rely on a check that does not happen. */
const headers = { 'If-Match': { required: false } }

/** Differences between the routes of the two sidecars. */
interface Differences<S, C, R> {
  readonly desk: (service: SidecarsService) => SidecarDesk<S & (Soul | Heartbeat), C, R>
  /** Name in summaries. */
  readonly title: string
  readonly area: string
  readonly areaOfRemoval: string
  readonly snapshot: v.GenericSchema<S>
  readonly change: v.GenericSchema<C>
  readonly history: v.GenericSchema<{ revisions: R[]; next_cursor?: string | undefined }>
  readonly validateBody: v.GenericSchema<unknown, ValidateSoulBody>
  readonly validates: string
  readonly rollbackBody: v.GenericSchema<unknown, RollbackBody>
}

/** The common routes of a sidecar; the route for reading differs between the two. */
function routesOf<S extends Soul | Heartbeat, C, R>(which: Which, its: Differences<S, C, R>): Route<SidecarsService>[] {
  const { desk, area, snapshot, change, title } = its
  const { file } = SIDECARS[which]
  const path = `/api/agents/{name}/${which}` as const
  const asTool = (verb: string) => tool(`agent_${which}_${verb}`, ['authored_context'])
  return [
    route({
      method: 'PUT',
      path,
      with: [undo(wayBack(which)), describe(area), throws(...ofChange), asTool('write')],
      summary: `Write ${file}; expected_digest is the digest of the current ${title}, empty for none`,
      body: WriteSidecarBody,
      headers,
      replies: { 200: change, 422: snapshot },
      handle: (service, { params, body, actor, headers }) => desk(service).write(params.name, body, actor, headers),
    }),
    route({
      method: 'DELETE',
      path,
      with: [
        undo(wayBack(which)),
        describe(its.areaOfRemoval),
        throws(SidecarErrors.sidecar_missing, ...ofChange),
        asTool('delete'),
      ],
      summary: `Remove ${file}; the history keeps it`,
      body: DeleteSidecarBody,
      headers,
      essential: true,
      replies: { 200: change },
      handle: (service, { params, body, actor, headers }) => desk(service).remove(params.name, body, actor, headers),
    }),
    route({
      method: 'POST',
      path: `${path}/validate`,
      audited: false,
      with: [describe(area), throws(...ofAgent), runsCode(false)],
      summary: `Check a ${file} text${its.validates}`,
      body: its.validateBody,
      replies: { 200: snapshot, 422: snapshot },
      handle: (service, { params, body }) => desk(service).validate(params.name, body),
    }),
    route({
      method: 'GET',
      path: `${path}/text`,
      with: [describe(area), throws(...ofAgent)],
      summary: `Show the text of ${file}, valid or not`,
      query: SidecarQuery,
      replies: { 200: SidecarTextReply },
      handle: (service, { params, query }) => desk(service).text(params.name, query),
    }),
    route({
      method: 'GET',
      path: `${path}/history`,
      with: [describe(area), throws(SidecarErrors.sidecar_cursor_invalid, ...ofAgent), asTool('history')],
      summary: `List changes of ${file}, the newest first`,
      query: SidecarHistoryQuery,
      replies: { 200: its.history },
      handle: (service, { params, query, actor }) => desk(service).history(params.name, actor, query),
    }),
    route({
      method: 'POST',
      path: `${path}/rollback`,
      with: [
        undo(wayBack(which)),
        describe(area),
        throws(
          SidecarErrors.sidecar_revision_not_found,
          SidecarErrors.sidecar_revision_empty,
          SidecarErrors.sidecar_revision_unnamed,
          ...ofChange,
        ),
        asTool('rollback'),
      ],
      summary: `Write ${file} as of an earlier revision`,
      body: its.rollbackBody,
      headers,
      replies: { 200: change, 422: snapshot },
      handle: (service, { params, body, actor, headers }) => desk(service).rollback(params.name, body, actor, headers),
    }),
  ]
}

export const sidecarRoutes: readonly Route<SidecarsService>[] = [
  route({
    method: 'GET',
    path: '/api/agents/{name}/heartbeat',
    with: [describe('Agents'), throws(...ofAgent), tool('agent_heartbeat_info', ['authored_context'])],
    summary: 'Show the heartbeat policy of an agent; 422 means that it is not valid',
    query: SidecarQuery,
    replies: { 200: Heartbeat, 422: Heartbeat },
    handle: (service, { params, query }) => service.readHeartbeat(params.name, query.workspace_id),
  }),
  ...routesOf('heartbeat', {
    desk: service => service.heartbeatDesk,
    title: 'policy',
    area: 'Agent heartbeat',
    areaOfRemoval: 'Agents',
    snapshot: Heartbeat,
    change: HeartbeatChangeReply,
    history: HeartbeatHistoryReply,
    validateBody: ValidateHeartbeatBody,
    validates: '',
    rollbackBody: RollbackHeartbeatBody,
  }),
  route({
    method: 'GET',
    path: '/api/agents/{name}/soul',
    with: [describe('Agent persona (soul)'), throws(...ofAgent), tool('agent_soul_info', ['authored_context'])],
    summary: 'Show the persona of an agent, valid or not',
    query: SidecarQuery,
    replies: { 200: Soul },
    handle: async (service, { params, query }) => ok(await service.readSoul(params.name, query.workspace_id)),
  }),
  ...routesOf('soul', {
    desk: service => service.soulDesk,
    title: 'persona',
    area: 'Agent persona (soul)',
    areaOfRemoval: 'Agent persona (soul)',
    snapshot: Soul,
    change: SoulChangeReply,
    history: SoulHistoryReply,
    validateBody: ValidateSoulBody,
    validates: ', or the stored one',
    rollbackBody: RollbackSoulBody,
  }),
  route({
    method: 'POST',
    path: '/api/workspaces/{workspace_id}/sessions/{session_id}/soul/refresh',
    audited: false,
    with: [
      describe('Sessions'),
      throws(
        SessionErrors.session_not_found,
        SessionErrors.session_busy,
        SessionErrors.session_stopped,
        SidecarErrors.sidecar_changed,
        SidecarErrors.sidecar_idempotency_conflict,
        ...ofAgent,
      ),
    ],
    summary:
      'Give a session the current persona of its agent; expected_digest is the digest of that persona, empty for none',
    body: RefreshSoulBody,
    replies: { 200: Soul, 422: Soul },
    handle: (service, { params, body, actor }) => service.refresh(params, body, actor),
  }),
]
