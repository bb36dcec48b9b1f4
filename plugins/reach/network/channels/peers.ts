import { clip } from '../../../../kernel/kit/text.js'
import type { Reads, Tx } from '../../../../kernel/plugin.js'
import type { Peer, PeerCard } from '../../../../schemas/network/channels.js'
import type { SessionInfo } from '../../../work/sessions/api.js'
import type { RemotePeer } from '../api.js'
import type { Happenings } from '../happenings.js'
import type { K } from '../needs.js'
import { channels, type PeerRow, peers } from '../tables.js'

/** Peer id of a session. */
export function peerIdOf({ agentName, id }: Pick<SessionInfo, 'agentName' | 'id'>): string {
  const agent = agentName
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
  return `${clip(agent, 100) || 'agent'}.${id}`
}

/** The peers of channels. */
export class Peers {
  constructor(
    private readonly kernel: K,
    private readonly happenings: Happenings,
  ) {}

  /** Adds a session to a channel, or returns it if it left before. Returns its row, and whether it is new. */
  join(t: Tx, channel: string, session: SessionInfo): { readonly peer: PeerRow; readonly isNew: boolean } {
    const { workspaceId, id: sessionId, name, agentName } = session
    const peerId = peerIdOf(session)
    const before = peers.get(t, { workspaceId, channel, peerId })
    if (before && before.leftAt === undefined) return { peer: before, isNew: false }
    const now = this.kernel.clock.now()
    const peer: PeerRow = { workspaceId, channel, peerId, sessionId, name: name || agentName, joinedAt: now }
    peers.replace(t, peer)
    channels.update(t, { workspaceId, channel }, { presenceAt: now })
    this.#tell(t, 'peerJoined', peer)
    return { peer, isNew: true }
  }

  /** Removes a session from all channels; returns the left ones. */
  leave(t: Tx, sessionId: string): readonly PeerRow[] {
    const left = peers.all(t, { sessionId, leftAt: null })
    const now = this.kernel.clock.now()
    peers.update(t, { sessionId, leftAt: null }, { leftAt: now })
    for (const peer of left) {
      const { workspaceId, channel } = peer
      channels.update(t, { workspaceId, channel }, { presenceAt: now })
      this.#tell(t, 'peerLeft', peer)
    }
    return left
  }

  /** Sets the complete list of another daemon's peers in a channel. */
  setRemote(t: Tx, workspaceId: string, channel: string, daemon: string, present: readonly RemotePeer[]): void {
    const now = this.kernel.clock.now()
    const ids = new Set(present.map(({ peerId }) => peerId))
    for (const peer of peers.all(t, { workspaceId, channel, daemon, leftAt: null })) {
      if (ids.has(peer.peerId)) continue
      peers.update(t, { workspaceId, channel, peerId: peer.peerId }, { leftAt: now })
      this.#tell(t, 'peerLeft', peer)
    }
    const known = peers.all(t, { workspaceId, channel })
    const others = new Set(known.filter(one => one.daemon !== daemon).map(sideOf))
    for (const { peerId, name } of present) {
      const before = peers.get(t, { workspaceId, channel, peerId })
      // A daemon must not speak for peers of other daemons or of this one, nor use a session id of theirs, because the
      // id of a direct room is derived from the sessions of its two peers.
      if (before && before.daemon !== daemon) continue
      const side = sideOf({ peerId })
      if (others.has(side) || this.kernel.needs.sessions.get(side)) continue
      if (before && before.leftAt === undefined && before.name === name) continue
      const peer: PeerRow = { workspaceId, channel, peerId, daemon, name, joinedAt: now }
      peers.replace(t, peer)
      channels.update(t, { workspaceId, channel }, { presenceAt: now })
      if (!before || before.leftAt !== undefined) this.#tell(t, 'peerJoined', peer)
    }
  }

  /** The present peers of a channel, or of all channels of a workspace. */
  present(workspaceId: string, channel?: string, reads: Reads = this.kernel.db): PeerRow[] {
    const where = channel === undefined ? { workspaceId, leftAt: null } : { workspaceId, channel, leftAt: null }
    return peers.all(reads, where, 'ORDER BY channel, joined_at, peer_id')
  }

  get(workspaceId: string, channel: string, peerId: string, reads: Reads = this.kernel.db): PeerRow | undefined {
    return peers.get(reads, { workspaceId, channel, peerId, leftAt: null })
  }

  /** The peer of a session in a channel; undefined if it does not take part. */
  ofSession(channel: string, sessionId: string, reads: Reads = this.kernel.db): PeerRow | undefined {
    return peers.get(reads, { sessionId, channel, leftAt: null })
  }

  /** Channels of a session. */
  channelsOf(sessionId: string, reads: Reads = this.kernel.db): PeerRow[] {
    return peers.all(reads, { sessionId, leftAt: null }, 'ORDER BY joined_at, channel')
  }

  /** Sessions in any channel. */
  sessions(): string[] {
    const sql = 'SELECT DISTINCT session_id AS id FROM network_peer WHERE left_at IS NULL AND session_id IS NOT NULL'
    return this.kernel.db.all<{ id: string }>(sql).map(({ id }) => id)
  }

  /** Peers of a channel that are sessions of this daemon, without their cards. */
  sessionsIn(workspaceId: string, channel: string, reads: Reads): { peerId: string; sessionId: string }[] {
    return reads.all(
      `SELECT peer_id AS peerId, session_id AS sessionId FROM network_peer
       WHERE workspace_id = ? AND channel = ? AND left_at IS NULL AND session_id IS NOT NULL`,
      [workspaceId, channel],
    )
  }

  /** Ids of a peer's declared capabilities. */
  capabilitiesOf(workspaceId: string, channel: string, peerId: string, reads: Reads): readonly string[] {
    const peer = this.get(workspaceId, channel, peerId, reads)
    return peer ? cardOf(peer).capabilities.map(({ id }) => id) : []
  }

  /** Number of present local peers in all workspaces. */
  countLocal(): number {
    const sql = 'SELECT count(*) AS n FROM network_peer WHERE left_at IS NULL AND session_id IS NOT NULL'
    return this.kernel.db.get<{ n: number }>(sql)?.n ?? 0
  }

  #tell(t: Tx, what: 'peerJoined' | 'peerLeft', { workspaceId, channel, peerId, sessionId }: PeerRow): void {
    this.happenings.tell(t, what, () => ({
      workspace_id: workspaceId,
      channel,
      peer_id: peerId,
      session_id: sessionId,
      presence_state: sessionId === undefined ? 'remote' : 'local',
    }))
  }

  wire(row: PeerRow): Peer {
    return {
      channel: row.channel,
      display_name: row.name,
      joined_at: new Date(row.joinedAt).toISOString(),
      local: row.sessionId !== undefined,
      peer_card: cardOf(row),
      peer_id: row.peerId,
      presence_state: row.sessionId === undefined ? 'remote' : 'local',
      session_id: row.sessionId ?? null,
      workspace_id: row.workspaceId,
    }
  }
}

/** Session of a peer; for a peer of another daemon the suffix of its id. */
export const sideOf = ({ sessionId, peerId }: Pick<PeerRow, 'sessionId' | 'peerId'>): string =>
  sessionId ?? peerId.slice(peerId.lastIndexOf('.') + 1)

/** Card of a peer, or a default one if it declared none. */
export function cardOf({ card, peerId, name }: PeerRow): PeerCard {
  if (card !== undefined) return card as PeerCard
  return {
    peer_id: peerId,
    display_name: name,
    artifacts_supported: [],
    capabilities: [],
    profiles_supported: [],
    trust_modes_supported: [],
  }
}
