/** Connections to other daemons. */
import * as v from 'valibot'
import { Integer, maybeTimestamp, Timestamp } from '../kernel/common.js'
import { OfferAcceptance } from './offers.js'

/** The key that identifies this daemon to others. */
export const RemoteIdentity = v.object({ daemon: v.string(), public_key: v.string(), fingerprint: v.string() })
export type RemoteIdentity = v.InferOutput<typeof RemoteIdentity>
export const RemoteIdentityReply = v.object({ identity: RemoteIdentity })

/** A daemon with a key pinned by the operator. */
export const RemotePeer = v.object({
  name: v.string(),
  daemon: v.string(),
  fingerprint: v.string(),
  status: v.picklist(['trusted', 'revoked']),
  added_at: Timestamp,
  seen_at: maybeTimestamp,
  clock_skew_ms: v.nullish(Integer),
  clock_is_off: v.boolean(),
  refused: Integer,
})
export type RemotePeer = v.InferOutput<typeof RemotePeer>
export const RemotePeerReply = v.object({ peer: RemotePeer })
export const ListRemotePeersReply = v.object({ peers: v.array(RemotePeer) })

/** A channel shared with the daemons of the realm. */
export const RemoteChannel = v.object({ channel: v.string(), workspace_id: v.string(), shared_at: Timestamp })
export type RemoteChannel = v.InferOutput<typeof RemoteChannel>
export const RemoteChannelReply = v.object({ channel: RemoteChannel })
export const ListRemoteChannelsReply = v.object({ channels: v.array(RemoteChannel) })

/** Refused requests, by daemon and reason. */
export const RemoteRefusal = v.object({
  peer: v.string(),
  reason_code: v.string(),
  count: Integer,
  last_at: Timestamp,
  channel: v.string(),
  message: v.string(),
})

export const RemoteStatus = v.object({
  state: v.picklist(['off', 'connecting', 'connected', 'full', 'away']),
  realm: v.nullish(v.string()),
  servers: v.array(v.string()),
  server: v.optional(v.string()),
  error: v.optional(v.string()),
  peers: v.array(RemotePeer),
  channels: v.array(RemoteChannel),
  refusals: v.array(RemoteRefusal),
  /** The agent that works on tasks offered by peers; absent: offers are refused. */
  accepts: v.nullish(OfferAcceptance),
})
export type RemoteStatus = v.InferOutput<typeof RemoteStatus>
export const RemoteStatusReply = v.object({ remote: RemoteStatus })

export const AddRemotePeerBody = v.strictObject({
  name: v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'Expected a name like host-2')),
  public_key: v.pipe(v.string(), v.maxLength(100), v.description('public key, as svc network identity shows it there')),
  fingerprint: v.pipe(
    v.string(),
    v.maxLength(100),
    v.description('fingerprint of the key, as the other side shows it'),
  ),
})
export type AddRemotePeerBody = v.InferOutput<typeof AddRemotePeerBody>

export const ShareRemoteChannelBody = v.strictObject({
  channel: v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'Expected a channel like team-1')),
  workspace: v.pipe(v.string(), v.maxLength(4096), v.description('id, name or path of the workspace that has it here')),
})

export const JoinRemoteBody = v.strictObject({
  url: v.pipe(v.string(), v.maxLength(512), v.description('server, nats://host:port or tls://host:port')),
  realm: v.pipe(v.string(), v.description('name shared by the daemons that talk to each other')),
  credentials_ref: v.optional(
    v.pipe(v.string(), v.description('reference to the credentials, vault:network/… or env:NAME')),
  ),
  ca: v.optional(
    v.pipe(v.string(), v.maxLength(4096), v.description('PEM file with the CA certificates for the server')),
  ),
})
export type JoinRemoteBody = v.InferOutput<typeof JoinRemoteBody>
