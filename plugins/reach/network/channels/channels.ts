import { iso, type Reads, type Tx } from '../../../../kernel/plugin.js'
import type {
  Channel,
  ChannelDetail,
  ChannelRecent,
  CreateChannelBody,
  UpdateChannelBody,
} from '../../../../schemas/network/channels.js'
import { NetworkErrors } from '../api.js'
import type { K } from '../needs.js'
import { type ChannelRow, channels, containers } from '../tables.js'
import type { Peers } from './peers.js'

const MAX_CHANNELS = 1000

/** Channels, where the peers of a workspace talk. */
export class Channels {
  constructor(
    private readonly kernel: K,
    private readonly peers: Peers,
  ) {}

  /** @throws Fault `channel_exists` */
  create(t: Tx, workspaceId: string, body: CreateChannelBody, by: string): ChannelRow {
    const { channel, purpose, fanout_policy: fanoutPolicy = 'all_members', coordinator_peer_id: coordinator } = body
    this.checkFree(workspaceId, channel, t)
    const made = this.#insert(t, { workspaceId, channel, purpose, fanoutPolicy, coordinator, createdBy: by })
    return made
  }

  /** @throws Fault `channel_exists` */
  checkFree(workspaceId: string, channel: string, reads: Reads = this.kernel.db): void {
    if (channels.get(reads, { workspaceId, channel }))
      throw NetworkErrors.channel_exists(`the channel ${channel} already exists`)
  }

  /** Returns the channel of an execution that takes part in it. Creates the channel if needed. */
  ensure(t: Tx, workspaceId: string, channel: string, by: string, purpose?: string): ChannelRow {
    const known = channels.get(t, { workspaceId, channel })
    return known ?? this.#insert(t, { workspaceId, channel, purpose, fanoutPolicy: 'all_members', createdBy: by })
  }

  #insert(t: Tx, row: Omit<ChannelRow, 'createdAt' | 'messages'>): ChannelRow {
    const whole = { ...row, createdAt: this.kernel.clock.now(), messages: 0 }
    channels.insert(t, whole)
    return whole
  }

  /** @throws Fault `channel_not_found` */
  found(workspaceId: string, channel: string, reads: Reads = this.kernel.db): ChannelRow {
    const row = channels.get(reads, { workspaceId, channel })
    if (!row)
      throw NetworkErrors.channel_not_found(`workspace ${workspaceId} has no channel ${JSON.stringify(channel)}`)
    return row
  }

  /** @throws Fault `channel_not_found`, `peer_not_found` */
  update(t: Tx, workspaceId: string, channel: string, body: UpdateChannelBody): void {
    this.found(workspaceId, channel, t)
    const { coordinator_peer_id: coordinator, fanout_policy: policy, purpose } = body
    if (coordinator && !this.peers.get(workspaceId, channel, coordinator, t))
      throw NetworkErrors.peer_not_found(`${coordinator} does not take part in ${channel}`)
    channels.update(
      t,
      { workspaceId, channel },
      {
        ...(coordinator !== undefined && { coordinator: coordinator ?? undefined }),
        ...(policy !== undefined && { fanoutPolicy: policy ?? 'all_members' }),
        ...(purpose !== undefined && { purpose: purpose ?? undefined }),
      },
    )
  }

  list(workspaceId: string): Channel[] {
    const rows = channels.all(this.kernel.db, { workspaceId }, `ORDER BY channel LIMIT ${MAX_CHANNELS}`)
    return rows.map(row => this.wire(row))
  }

  /**
   * Lists the conversations in all channels of a workspace, most recent message first.
   * @param sessionId session of the agent that asks, which sees only its own direct rooms. Absent: a person asks
   */
  recents(workspaceId: string, limit: number, sessionId?: string): ChannelRecent[] {
    const visibility = sessionId === undefined ? '' : "AND (surface = 'thread' OR session_a = ? OR session_b = ?)"
    const own = sessionId === undefined ? [] : [sessionId, sessionId]
    const where = `WHERE workspace_id = ? ${visibility} ORDER BY last_at DESC, id LIMIT +?`
    const rows = containers.query(this.kernel.db, where, [workspaceId, ...own, limit])
    return rows.map(row => ({
      channel: row.channel,
      container_id: row.id,
      surface: row.surface,
      last_activity_at: iso(row.lastAt),
      participant_count: this.#count(
        'network_participant',
        row.workspaceId,
        row.channel,
        'AND container_id = ?',
        row.id,
      ),
      ...(row.preview !== undefined && { last_message_preview: row.preview }),
      ...(row.sessionA !== undefined && { session_a: row.sessionA }),
      ...(row.sessionB !== undefined && { session_b: row.sessionB }),
      ...(row.title && { title: row.title }),
    }))
  }

  wire(row: ChannelRow): Channel {
    const { workspaceId, channel } = row
    const present = this.peers.present(workspaceId, channel)
    const local = present.filter(({ sessionId }) => sessionId !== undefined)
    return {
      channel,
      created_at: iso(row.createdAt),
      created_by: row.createdBy,
      fanout_policy: row.fanoutPolicy,
      historical_participant_count: this.#count('network_peer', workspaceId, channel),
      last_activity_at: row.lastAt === undefined ? null : iso(row.lastAt),
      last_presence_at: row.presenceAt === undefined ? null : iso(row.presenceAt),
      local_peer_count: local.length,
      message_count: row.messages,
      peer_count: present.length,
      presence_count: present.length,
      session_count: new Set(local.map(({ sessionId }) => sessionId)).size,
      workspace_id: workspaceId,
      ...(row.coordinator !== undefined && { coordinator_peer_id: row.coordinator }),
      ...(row.preview !== undefined && { last_message_preview: row.preview }),
      ...(row.purpose !== undefined && { purpose: row.purpose }),
    }
  }

  detail(workspaceId: string, channel: string): ChannelDetail {
    const sql = `SELECT kind, count(*) AS count FROM network_message WHERE workspace_id = ? AND channel = ? GROUP BY kind ORDER BY kind`
    const present = this.peers.present(workspaceId, channel)
    return {
      ...this.wire(this.found(workspaceId, channel)),
      kind_counts: this.kernel.db.all<{ kind: string; count: number }>(sql, [workspaceId, channel]),
      peers: present.map(row => this.peers.wire(row)),
      sessions: present.flatMap(({ sessionId }) => {
        const session = sessionId === undefined ? undefined : this.kernel.needs.sessions.shown(sessionId)
        return session ? [session] : []
      }),
    }
  }

  #count(table: string, workspaceId: string, channel: string, more = '', ...params: string[]): number {
    const sql = `SELECT count(*) AS n FROM ${table} WHERE workspace_id = ? AND channel = ? ${more}`
    return this.kernel.db.get<{ n: number }>(sql, [workspaceId, channel, ...params])?.n ?? 0
  }
}
