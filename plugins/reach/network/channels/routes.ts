import {
  cli,
  columnsOf,
  describe,
  runsCode,
  show,
  throws,
  tool,
  withTable,
} from '../../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../../kernel/kit/collection.js'
import { noContent, ok, type Route, routeOf } from '../../../../kernel/plugin.js'
import {
  ChannelReply,
  CreateChannelBody,
  DeleteSubscriptionQuery,
  ListChannelsQuery,
  ListChannelsReply,
  ListPeersQuery,
  ListPeersReply,
  ListSubscriptionsQuery,
  ListSubscriptionsReply,
  PeerReply,
  PutSubscriptionBody,
  SubscriptionReply,
  UpdateChannelBody,
} from '../../../../schemas/network/channels.js'
import { agentSessionOf } from '../../../access/identity/api.js'
import { AgentErrors } from '../../../agents/agents/api.js'
import { undo } from '../../../desk/changes/api.js'
import { DaemonErrors } from '../../../desk/daemon/api.js'
import { REFERENCE_ERRORS } from '../../../desk/workspaces/api.js'
import { SessionErrors } from '../../../work/sessions/api.js'
import { NetworkErrors } from '../api.js'
import type { NetworkService } from '../service.js'

const about = describe('Network')
const route = routeOf<NetworkService>(about, runsCode(false))
const origins = ['agent_session']
const base = '/api/workspaces/{workspace_id}/network'
const inWorkspace = { workspace: 'workspace_id' } as const
const NAME = { name: 'channel', summary: 'name of a channel' } as const

const channel = collectionOf<NetworkService>(about)({
  path: '/api/workspaces/{workspace_id}/network/channels',
  key: 'channel',
  noun: 'network channels',
  one: [ChannelReply, 'channel'],
  many: [ListChannelsReply, 'channels'],
  show: [
    'channel',
    { of: 'local_peer_count', header: 'Peers' },
    { of: 'message_count', header: 'Messages' },
    { of: 'last_activity_at~ago', header: 'Active' },
    { of: 'last_message_preview', header: 'Newest message' },
  ],
  fields: [
    'channel',
    'purpose',
    'fanout_policy',
    'coordinator_peer_id',
    { of: 'peer_count', header: 'Peers' },
    { of: 'message_count', header: 'Messages' },
    'created_at~time',
    'last_activity_at~ago',
  ],
  argument: { summary: 'name of a channel' },
  missing: NetworkErrors.channel_not_found,
})

const peerColumns = columnsOf<PeerReply['peer']>()([
  { of: 'peer_id', header: 'Peer' },
  { of: 'session_id', header: 'Session' },
  { of: 'presence_state', header: 'Presence' },
  { of: 'joined_at~ago', header: 'Joined' },
])

/** Errors of creating a session. */
const STARTING = [
  AgentErrors.agent_not_found,
  AgentErrors.agent_invalid,
  AgentErrors.agent_not_runnable,
  AgentErrors.agent_untrusted,
  DaemonErrors.draining,
  SessionErrors.hook_denied,
  SessionErrors.sandbox_unavailable,
  SessionErrors.session_briefing_failed,
  SessionErrors.session_limit,
]

/** Routes of channels, peers and subscriptions. */
export const channelRoutes: readonly Route<NetworkService>[] = [
  channel.list({
    summary: 'List the channels of a workspace',
    cli: { ...inWorkspace, args: [] },
    query: ListChannelsQuery,
    with: [tool('network_channels', ['network'])],
    origins,
    throws: REFERENCE_ERRORS,
    empty: 'no channels; create one: svc network channels create <name> --agent-names <agent>',
    handle: async (service, { params, query, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      const { recent_limit: limit = 0 } = query
      return {
        channels: service.channels.list(id),
        ...(limit > 0 && { recents: service.channels.recents(id, limit, agentSessionOf(actor)) }),
      }
    },
  }),
  channel.create({
    summary: 'Create a channel, and start a session of each agent that takes part',
    cli: { ...inWorkspace, args: [{ ...NAME, in: 'body' }] },
    with: [
      undo({ by: 'never', why: 'the effects of its sessions are not undone; archive it: svc network channels' }),
      tool('network_channel_create', ['network'], { visibility: 'operator' }),
    ],
    body: CreateChannelBody,
    throws: [...REFERENCE_ERRORS, ...STARTING, NetworkErrors.channel_exists, NetworkErrors.network_disabled],
    handle: async (service, { params, body, actor }) => ({
      channel: await service.createChannel(await service.workspaceOf(params.workspace_id, actor), body, actor),
    }),
  }),
  channel.get({
    summary: 'Show a channel with its peers',
    cli: { ...inWorkspace, args: [NAME], view: withTable(channel.view, 'peers', peerColumns) },
    with: [tool('network_channel_get', ['network'])],
    origins,
    throws: REFERENCE_ERRORS,
    handle: async (service, { params, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      return { channel: service.channels.detail(id, params.channel) }
    },
  }),
  channel.update({
    summary: 'Change purpose, fan-out or coordinator of a channel',
    cli: { ...inWorkspace, args: [NAME] },
    with: [
      undo({ by: 'patch', of: 'channel' }),
      runsCode(false),
      tool('network_channel_update', ['network'], { visibility: 'operator' }),
    ],
    body: UpdateChannelBody,
    throws: [...REFERENCE_ERRORS, NetworkErrors.peer_not_found],
    handle: async (service, { params, body, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      return { channel: await service.updateChannel(id, params.channel, body) }
    },
  }),
  route({
    method: 'GET',
    path: `${base}/peers`,
    summary: 'List the peers of a workspace that take part in channels',
    query: ListPeersQuery,
    replies: { 200: ListPeersReply },
    origins,
    with: [
      throws(...REFERENCE_ERRORS, NetworkErrors.channel_not_found),
      tool('network_peers', ['network']),
      cli('network peers list', {
        ...inWorkspace,
        args: [],
        view: show(
          ListPeersReply,
          'peers',
          [
            { of: 'peer_id', header: 'Peer' },
            'channel',
            { of: 'presence_state', header: 'Presence' },
            { of: 'joined_at~ago', header: 'Joined' },
          ],
          { empty: 'no peers: no session takes part in a channel' },
        ),
      }),
    ],
    handle: async (service, { params, query, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      if (query.channel !== undefined) service.channels.found(id, query.channel)
      return ok({ peers: service.peers.present(id, query.channel).map(row => service.peers.wire(row)) })
    },
  }),
  route({
    method: 'GET',
    path: `${base}/peers/{peer_id}`,
    summary: 'Show a peer with its self-description and message counts',
    replies: { 200: PeerReply },
    origins,
    with: [
      throws(...REFERENCE_ERRORS, NetworkErrors.peer_not_found),
      tool('network_peer', ['network']),
      cli('network peers show', {
        ...inWorkspace,
        args: [{ name: 'peer_id', summary: 'id of a peer' }],
        view: show(PeerReply, 'peer', [
          { of: 'peer_id', header: 'Peer' },
          'channel',
          'display_name',
          { of: 'presence_state', header: 'Presence' },
          { of: 'joined_at~time', header: 'Joined' },
          { of: 'metrics.sent', header: 'Sent' },
          { of: 'metrics.delivered', header: 'Delivered' },
          { of: 'metrics.rejected', header: 'Rejected' },
        ]),
      }),
    ],
    handle: async (service, { params, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      return ok({ peer: service.peer(id, params.peer_id) })
    },
  }),
  route({
    method: 'GET',
    path: `${base}/channels/{channel}/subscriptions`,
    summary: 'List the subscriptions of sessions to a channel',
    query: ListSubscriptionsQuery,
    replies: { 200: ListSubscriptionsReply },
    origins,
    with: [
      throws(...REFERENCE_ERRORS, NetworkErrors.channel_not_found),
      tool('network_subscriptions', ['network']),
      cli('network subscriptions', {
        ...inWorkspace,
        args: [NAME],
        options: { session_id: 'session' },
        view: show(
          ListSubscriptionsReply,
          'subscriptions',
          [{ of: 'session_id', header: 'Session' }, { of: 'thread_id', header: 'Thread' }, 'mode', 'updated_at~ago'],
          { empty: 'no subscriptions: all sessions receive all messages' },
        ),
      }),
    ],
    handle: async (service, { params, query, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      return ok({ subscriptions: service.subscriptions.list(id, params.channel, query) })
    },
  }),
  route({
    method: 'PUT',
    path: `${base}/channels/{channel}/subscriptions`,
    summary: 'Choose which messages of a channel or thread a session receives',
    body: PutSubscriptionBody,
    replies: { 200: SubscriptionReply },
    origins,
    with: [
      undo({ by: 'never', why: 'messages already received are kept; choose again: svc network subscriptions' }),
      throws(...REFERENCE_ERRORS, NetworkErrors.channel_not_found, NetworkErrors.conversation_not_found),
      throws(NetworkErrors.session_not_yours, SessionErrors.session_not_found),
      tool('network_subscribe', ['network']),
      cli('network subscribe', { ...inWorkspace, args: [NAME], options: { session_id: 'session' } }),
    ],
    handle: async (service, { params, body, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      const session = service.speaker(body.session_id, id, actor)
      return ok({ subscription: await service.subscriptions.put(id, params.channel, session.id, body) })
    },
  }),
  route({
    method: 'DELETE',
    path: `${base}/channels/{channel}/subscriptions/{session_id}`,
    summary: 'Let a session receive all messages of a channel or thread again',
    query: DeleteSubscriptionQuery,
    replies: { 204: null },
    origins,
    with: [
      undo({ by: 'never', why: 'messages already received are kept; choose again: svc network subscriptions' }),
      throws(...REFERENCE_ERRORS, NetworkErrors.channel_not_found, NetworkErrors.network_subscription_not_found),
      throws(NetworkErrors.session_not_yours, SessionErrors.session_not_found),
      tool('network_unsubscribe', ['network']),
      cli('network unsubscribe', {
        ...inWorkspace,
        args: [NAME, { name: 'session_id', summary: 'id of a session' }],
      }),
    ],
    handle: async (service, { params, query, actor }) => {
      const { id } = await service.workspaceOf(params.workspace_id, actor)
      const session = service.speaker(params.session_id, id, actor)
      await service.subscriptions.delete(id, params.channel, session.id, query.thread_id ?? '')
      return noContent()
    },
  }),
]
