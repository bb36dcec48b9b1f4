import { cli, columnsOf, describe, runsCode, show, throws, withTable } from '../../../kernel/kit/annotations/index.js'
import { collectionOf } from '../../../kernel/kit/collection.js'
import { definePlugin, ok, routeOf, type Setting, Settings, surfaceOf } from '../../../kernel/plugin.js'
import {
  AddRemotePeerBody,
  JoinRemoteBody,
  ListRemoteChannelsReply,
  ListRemotePeersReply,
  RemoteChannelReply,
  RemoteIdentityReply,
  RemotePeerReply,
  type RemoteStatus,
  RemoteStatusReply,
  ShareRemoteChannelBody,
} from '../../../schemas/network/remote.js'
import { VaultErrors } from '../../access/vault/api.js'
import { undo } from '../../desk/changes/api.js'
import { Checks } from '../../desk/daemon/api.js'
import { REFERENCE_ERRORS, Workspaces } from '../../desk/workspaces/api.js'
import { ConfigErrors } from '../../platform/configuration/api.js'
import { Network, NetworkErrors } from '../network/api.js'
import { RemoteErrors, RemoteRefused } from './api.js'
import { needs } from './needs.js'
import { offerRoutes } from './offers/routes.js'
import { offerSettings } from './offers/settings.js'
import type { RemoteService } from './service.js'
import { natsSettings } from './settings.js'
import { migrations } from './tables.js'

const about = describe('Network')
// Agents of other daemons wake local ones, so whatever connects them can cause code to run.
const route = routeOf<RemoteService>(about)
const { contribute, tap } = surfaceOf<RemoteService>()
const KEY = [VaultErrors.vault_secret_damaged, VaultErrors.vault_key_missing, VaultErrors.vault_key_wrong]
const WRITING = [ConfigErrors.config_changed, ConfigErrors.config_file_invalid, ConfigErrors.setting_invalid]

const peer = collectionOf<RemoteService>(about)({
  path: '/api/network/remote/peers',
  key: 'name',
  noun: 'network peer',
  one: [RemotePeerReply, 'peer'],
  many: [ListRemotePeersReply, 'peers'],
  show: ['name', 'status', 'fingerprint', 'seen_at~ago', { of: 'clock_skew_ms', header: 'Clock (ms)' }, 'refused'],
  argument: { summary: 'name of the daemon' },
  missing: RemoteErrors.remote_peer_not_found,
})
const channel = collectionOf<RemoteService>(about)({
  path: '/api/network/remote/channels',
  key: 'channel',
  noun: 'network shared',
  one: [RemoteChannelReply, 'channel'],
  many: [ListRemoteChannelsReply, 'channels'],
  show: ['channel', { of: 'workspace_id', header: 'Workspace' }, 'shared_at~ago'],
  argument: { summary: 'name of a channel' },
  missing: RemoteErrors.remote_channel_not_found,
})
const status = withTable(
  show(RemoteStatusReply, 'remote', [
    'state',
    'realm',
    { of: 'servers~list', header: 'Servers' },
    'server',
    'error',
    { of: 'accepts.agent', header: 'Offers go to' },
  ]),
  'refusals',
  columnsOf<RemoteStatus['refusals'][number]>()([
    { of: 'peer', header: 'Refused' },
    { of: 'reason_code', header: 'Reason' },
    'count',
    { of: 'last_at~ago', header: 'Last' },
    { of: 'message', header: 'Why', below: true },
  ]),
)

/** Agents of several daemons in one channel: signed envelopes over NATS JetStream. Off until `network.nats.servers` names a server. */
export default definePlugin({
  name: 'network-nats',
  version: '0.1.0',
  requires: needs,
  service: () => import('./service.js').then(module => module.RemoteService),
}).surface({
  tables: migrations,
  errors: [RemoteErrors],
  events: [RemoteRefused],
  settings: [...natsSettings, ...offerSettings],
  owned: [{ by: Workspaces, table: 'network_nats_share', column: 'workspace_id' }],
  registries: [
    contribute(Checks, service => [{ id: 'network.remote', category: 'network', run: async () => service.check() }]),
  ],
  services: [
    { name: 'link', run: (service, signal) => service.run(signal) },
    { name: 'offers', run: (service, signal) => service.runOffers(signal) },
  ],
  taps: [
    tap(
      Network,
      network => network.persisted,
      service => () => service.wake(),
    ),
    // Peers joining or leaving are announced immediately.
    tap(
      Network,
      network => network.peerJoined,
      service => () => service.wake(),
    ),
    tap(
      Network,
      network => network.peerLeft,
      service => () => service.wake(),
    ),
    ...natsSettings.map(setting =>
      tap(
        Settings,
        settings => settings.of<unknown>(setting as Setting<unknown>),
        service => () => service.configured(),
      ),
    ),
    ...offerSettings.map(setting =>
      tap(
        Settings,
        settings => settings.of<unknown>(setting as Setting<unknown>),
        service => () => service.accepting(),
      ),
    ),
  ],
  routes: [
    route({
      method: 'GET',
      path: '/api/network/remote',
      summary: 'Show the connection to other daemons, their keys, shared channels and refused messages',
      replies: { 200: RemoteStatusReply },
      with: [cli('network remote', { view: status })],
      handle: service => ok({ remote: service.status() }),
    }),
    route({
      method: 'GET',
      path: '/api/network/remote/identity',
      summary: 'Show the public key of this daemon; it is created on first use',
      replies: { 200: RemoteIdentityReply },
      with: [
        throws(...KEY),
        cli('network identity', {
          view: show(RemoteIdentityReply, 'identity', ['public_key', 'fingerprint', 'daemon']),
        }),
      ],
      handle: async service => ok({ identity: await service.shownIdentity() }),
    }),
    route({
      method: 'POST',
      path: '/api/network/remote/join',
      summary: 'Connect to the daemons of a realm through a NATS server',
      body: JoinRemoteBody,
      replies: { 200: RemoteStatusReply },
      with: [
        undo({ by: 'never', why: 'exchanged messages are kept; end the connection: svc network leave' }),
        throws(...KEY, ...WRITING),
        cli('network join', { args: [{ name: 'url', in: 'body', summary: 'server, nats://host:port' }], view: status }),
      ],
      handle: async (service, { body, actor }) => ok({ remote: await service.join(body, actor) }),
    }),
    route({
      method: 'POST',
      path: '/api/network/remote/leave',
      summary: 'End the connection to other daemons; peers and shared channels are kept',
      replies: { 200: RemoteStatusReply },
      with: [
        undo({ by: 'never', why: 'the secret of the connection is not kept; connect again: svc network join' }),
        runsCode(false),
        throws(...WRITING),
        cli('network leave', { view: status }),
      ],
      handle: async (service, { actor }) => ok({ remote: await service.leave(actor) }),
    }),
    peer.list({
      summary: 'List the daemons whose keys are pinned',
      command: 'network peer keys',
      empty: 'no daemons; add one: svc network peer add <name> <public key> --fingerprint <fingerprint>',
      handle: service => ({ peers: service.listPeers() }),
    }),
    peer.create({
      summary: 'Pin the key of another daemon',
      command: 'network peer add',
      with: [undo({ by: 'never', why: 'messages that it sent are kept; revoke the key: svc network peer remove' })],
      cli: {
        args: [
          { name: 'name', in: 'body', summary: 'name of the daemon' },
          { name: 'public_key', in: 'body', summary: 'its public key' },
        ],
      },
      throws: [
        ...KEY,
        RemoteErrors.remote_key_invalid,
        RemoteErrors.remote_fingerprint_mismatch,
        RemoteErrors.remote_peer_exists,
      ],
      body: AddRemotePeerBody,
      handle: async (service, { body }) => ({ peer: await service.addPeer(body) }),
    }),
    peer.delete({
      summary: 'Revoke the key of another daemon',
      command: 'network peer remove',
      with: [
        runsCode(false),
        undo({ by: 'never', why: 'only a person can trust a revoked key again; pin it: svc network peer add' }),
      ],
      done: 'revoked the key of {name}; its messages are refused',
      handle: (service, { params }) => service.removePeer(params.name),
    }),
    channel.list({
      summary: 'List the channels that are shared with other daemons',
      empty: 'no channels are shared; share one: svc network share <channel>',
      handle: service => ({ channels: service.listShares() }),
    }),
    channel.create({
      summary: 'Share a channel with the daemons of the realm',
      command: 'network share',
      with: [
        undo({
          by: 'never',
          why: 'messages already read by others are not withdrawn; stop sharing it: svc network unshare',
        }),
      ],
      cli: { workspace: 'workspace', args: [{ name: 'channel', in: 'body', summary: 'name of a channel' }] },
      throws: [...REFERENCE_ERRORS, NetworkErrors.channel_not_found, RemoteErrors.remote_channel_taken],
      body: ShareRemoteChannelBody,
      handle: async (service, { body }) => ({ channel: await service.share(body.channel, body.workspace) }),
    }),
    channel.delete({
      summary: 'Stop sharing a channel',
      command: 'network unshare',
      with: [runsCode(false), undo({ by: 'never', why: 'share it again: svc network share' })],
      done: '{channel} is not shared any more',
      handle: (service, { params }) => service.unshare(params.channel),
    }),
    ...offerRoutes,
  ],
})
