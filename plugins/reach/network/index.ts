import { cli, describe, show, tool } from '../../../kernel/kit/annotations/index.js'
import { definePlugin, ok, routeOf, surfaceOf } from '../../../kernel/plugin.js'
import { NetworkStatusReply } from '../../../schemas/network.js'
import { Company } from '../../agents/self-service/api.js'
import { Checks, StatusMembers } from '../../desk/daemon/api.js'
import { Workspaces } from '../../desk/workspaces/api.js'
import { Events } from '../../platform/events/api.js'
import { SessionParticipation, Sessions } from '../../work/sessions/api.js'
import { TaskEvents } from '../../work/tasks/api.js'
import { ToolAllowances } from '../../work/tools/api.js'
import { agentCommands } from './agent/command-list.js'
import { agentRoutes } from './agent/routes.js'
import { agentMigrations } from './agent/table.js'
import { MessageRefused, MessageStored, Network, NetworkErrors, PairStopped } from './api.js'
import { channelRoutes } from './channels/routes.js'
import { commands } from './command-list.js'
import { conversationRoutes } from './conversations/routes.js'
import { coordinationRoutes } from './coordination/routes.js'
import { coordinationTables } from './coordination/table.js'
import { needs } from './needs.js'
import { ParticipationSettings } from './participation/bounds.js'
import { participationTables } from './participation/table.js'
import type { NetworkService } from './service.js'
import { NetworkEnabled } from './settings.js'
import { migrations } from './tables.js'
import { wakeRoutes } from './wakes/routes.js'
import { SOURCE } from './wakes/source.js'
import { wakeMigrations } from './wakes/table.js'

const { contribute, tap } = surfaceOf<NetworkService>()
const route = routeOf<NetworkService>(describe('Network'))

const ofWorkspaces = [
  ...['channel', 'peer', 'container', 'participant', 'message', 'work', 'subscription', 'tally'],
  ...['wake', 'participation', 'coordination', 'task_link'],
]
const ofSessions = ['peer', 'delivery', 'subscription']

/** Events that can end a run and thus the stream of its conversation. */
const RUN_ENDS = [
  TaskEvents['task.run_completed'],
  TaskEvents['task.run_failed'],
  TaskEvents['task.run_canceled'],
  TaskEvents['task.run_operator_forced_fail'],
]

/**
 * The network: agents that talk to each other in channels. Each subfolder exports its routes and tables, and this
 * surface lists them.
 */
export default definePlugin({
  name: 'network',
  version: '0.1.0',
  requires: needs,
  provides: Network,
  service: () => import('./service.js').then(module => module.NetworkService),
}).surface({
  tables: [...migrations, ...wakeMigrations, ...participationTables, ...coordinationTables, ...agentMigrations],
  errors: [NetworkErrors],
  events: [MessageStored, MessageRefused, PairStopped],
  settings: [NetworkEnabled, ...ParticipationSettings],
  owned: [
    ...ofWorkspaces.map(name => ({ by: Workspaces, table: `network_${name}`, column: 'workspace_id' })),
    ...ofSessions.map(name => ({ by: Sessions, table: `network_${name}`, column: 'session_id' })),
  ],
  services: [
    { name: 'wakes', run: (service, signal) => service.wakes.run(signal) },
    { name: 'retention', run: (service, signal) => service.retention.run(signal) },
  ],
  registries: [
    contribute(Company, service => [
      {
        channels: session => service.agentChannels.list(session),
        inbox: (session, limit) => service.agentChannels.summary(session, limit),
        peers: (session, limit) => service.agentChannels.roster(session, limit),
      },
    ]),
    contribute(SessionParticipation, service => [service.participation]),
    contribute(ToolAllowances, service => [{ allows: (...call) => service.agentChannels.isAnswer(...call) }]),
    contribute(StatusMembers, service => [{ path: 'daemon.network', read: () => service.status() }]),
    contribute(Checks, service => [{ id: 'network', category: 'network', run: async () => service.check() }]),
  ],
  taps: [
    tap(
      Sessions,
      sessions => sessions.prepare,
      service => (start, session) => service.participation.prepared(start, session),
    ),
    tap(
      Sessions,
      sessions => sessions.stopped,
      service => session => service.sessionStopped(session),
    ),
    tap(
      Sessions,
      sessions => sessions.permission,
      service =>
        ({ sessionId, toolKind: kind, command, argv, allow }) => {
          if (!service.wakes.isWoken(sessionId)) return undefined
          const refusal = service.restraint(sessionId, { kind, command, argv })
          if (refusal !== undefined) return NetworkErrors.network_turn_restrained(refusal)
          // Commands for answers of agents need no approval.
          if (kind === 'execute') allow()
          return undefined
        },
    ),
    tap(
      Sessions,
      sessions => sessions.points.agentPreStart,
      service => (line, session) =>
        service.takesPart(session.id) ? { ...line, isGuardable: true as const } : undefined,
    ),
    tap(
      Sessions,
      sessions => sessions.points.promptPostAssemble,
      service =>
        ({ source }, { id }) =>
          service.guarding.before(id, source === SOURCE),
    ),
    tap(
      Sessions,
      sessions => sessions.points.toolPreCall,
      service => (call, session) => {
        const deny = service.restraint(session.id, call)
        return deny === undefined ? undefined : { ...call, deny }
      },
    ),
    ...RUN_ENDS.map(type =>
      tap(
        Events,
        events => events.of(type),
        service =>
          ({ payload }) =>
            service.following.runEnded(payload.run_id ?? ''),
      ),
    ),
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/network/status',
      summary: 'Show whether agents can talk to each other, and how much they do',
      replies: { 200: NetworkStatusReply },
      with: [
        tool('network_status', ['network'], { visibility: 'operator' }),
        cli('network status', {
          view: show(NetworkStatusReply, 'network', [
            'status',
            'channels',
            { of: 'local_peers', header: 'Peers' },
            { of: 'open_threads', header: 'Threads' },
            { of: 'open_direct_rooms', header: 'Direct rooms' },
            { of: 'open_work_items', header: 'Open work' },
            { of: 'messages_sent', header: 'Sent' },
            { of: 'messages_delivered', header: 'Delivered' },
            { of: 'messages_rejected', header: 'Rejected' },
          ]),
        }),
      ],
      handle: service => ok({ network: service.status() }),
    }),
    ...channelRoutes,
    ...conversationRoutes,
    ...wakeRoutes,
    ...coordinationRoutes,
    ...agentRoutes,
  ],
  commands: [...commands, ...agentCommands],
})
