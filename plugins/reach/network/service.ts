import path from 'node:path'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Actor, messageOf, type Tx } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import type {
  ChannelDetail,
  CreateChannelBody,
  PeerReply,
  UpdateChannelBody,
} from '../../../schemas/network/channels.js'
import type {
  Direct,
  Envelope,
  ListContainersQuery,
  ResolveDirectBody,
  SendMessageBody,
  SentMessage,
} from '../../../schemas/network/messages.js'
import type { NetworkStatus } from '../../../schemas/network.js'
import { agentSessionOf, namedActor } from '../../access/identity/api.js'
import { finding } from '../../desk/daemon/api.js'
import { isElsewhere, type Workspace, WorkspaceErrors } from '../../desk/workspaces/api.js'
import { isRestartable, SessionErrors, type SessionInfo } from '../../work/sessions/api.js'
import { AgentChannels } from './agent/agent-channels.js'
import { Feeds } from './agent/feeds.js'
import { Following } from './agent/following.js'
import {
  type NetworkApi,
  NetworkErrors,
  type OutgoingMessage,
  points,
  type RemoteEnvelope,
  type RemotePeer,
} from './api.js'
import { Channels } from './channels/channels.js'
import { cardOf, Peers } from './channels/peers.js'
import { Subscriptions } from './channels/subscriptions.js'
import { NOTICE } from './conversations/notice.js'
import { Promoting } from './conversations/promoting.js'
import { noConversation, Reading } from './conversations/reading.js'
import { Sending } from './conversations/sending.js'
import { Coordination } from './coordination/coordination.js'
import { Happenings } from './happenings.js'
import type { K } from './needs.js'
import { Participation } from './participation/participation.js'
import { NetworkEnabled } from './settings.js'
import { type ContainerRow, messages, peers } from './tables.js'
import { Guarding } from './wakes/guarding.js'
import { refusalOf, type WantedCall } from './wakes/restraint.js'
import { Sweep } from './wakes/retention.js'
import { Usage } from './wakes/usage.js'
import { Wakes } from './wakes/wakes.js'

/** Agents that talk to each other; each part has its own folder. */
export class NetworkService implements NetworkApi {
  readonly persisted
  readonly preResolve
  readonly resolved
  readonly messagePersisted
  readonly threadOpened
  readonly directOpened
  readonly peerJoined
  readonly peerLeft
  readonly workOpened
  readonly workTransitioned
  readonly workClosed
  readonly coordination: Coordination
  readonly participation: Participation
  readonly peers: Peers
  readonly channels: Channels
  readonly subscriptions: Subscriptions
  readonly reading: Reading
  readonly sending: Sending
  readonly promoting: Promoting
  readonly wakes: Wakes
  readonly usage: Usage
  readonly retention: Sweep
  readonly feeds: Feeds
  readonly following: Following
  readonly agentChannels: AgentChannels
  readonly guarding: Guarding

  constructor(readonly kernel: K) {
    const own = kernel.hooks.of(points)
    const { persisted } = own
    this.persisted = persisted
    this.preResolve = own.preResolve
    this.resolved = own.resolved
    this.messagePersisted = own.messagePersisted
    this.threadOpened = own.threadOpened
    this.directOpened = own.directOpened
    this.peerJoined = own.peerJoined
    this.peerLeft = own.peerLeft
    this.workOpened = own.workOpened
    this.workTransitioned = own.workTransitioned
    this.workClosed = own.workClosed
    const happenings = new Happenings(kernel, own)
    this.peers = new Peers(kernel, happenings)
    this.channels = new Channels(kernel, this.peers)
    this.coordination = new Coordination(kernel)
    this.participation = new Participation(kernel, this.channels, this.peers, this.coordination, own)
    this.subscriptions = new Subscriptions(kernel, this.channels)
    const boundsOf = this.participation.budgetOf
    this.wakes = new Wakes(kernel, boundsOf)
    this.usage = new Usage(kernel, this.wakes.ledger, boundsOf)
    this.retention = new Sweep(kernel)
    this.promoting = new Promoting(kernel)
    this.reading = new Reading(kernel, this.usage)
    this.feeds = new Feeds(kernel, this.reading)
    this.following = new Following(kernel, this.feeds, (workspaceId, runId) =>
      this.usage.read(workspaceId, { run_id: runId }),
    )
    this.agentChannels = new AgentChannels(this)
    this.guarding = new Guarding(kernel)
    const stored = (seq: number) => {
      this.feeds.stored(seq)
      void persisted.call(seq)
    }
    this.sending = new Sending(kernel, this.channels, this.peers, this.wakes, stored, happenings)
  }

  /** Removes sessions from their channels that ended while no daemon ran. */
  async start(): Promise<void> {
    const { db, needs } = this.kernel
    const over = this.peers.sessions().filter(id => {
      const session = needs.sessions.get(id)
      return !session || (session.state === 'stopped' && !isRestartable(session.state, session.stopReason))
    })
    if (over.length > 0) await db.tx(t => over.flatMap(id => this.peers.leave(t, id)))
  }

  get enabled(): boolean {
    return this.kernel.config.get(NetworkEnabled)
  }

  /** The workspace of a request. @throws Fault `workspace_not_found` */
  async workspaceOf(reference: string, actor: Actor): Promise<Workspace> {
    const workspace = await this.kernel.needs.workspaces.find(reference)
    if (isElsewhere(actor, { kind: 'workspace', id: workspace.id }))
      throw WorkspaceErrors.workspace_not_found(`there is no workspace ${JSON.stringify(reference)}`)
    return workspace
  }

  /** The session that a caller speaks for. @throws Fault `session_not_found`, `session_not_yours` */
  speaker(id: string, workspaceId: string, actor: Actor): SessionInfo {
    const own = agentSessionOf(actor)
    if (own !== undefined && own !== id) throw NetworkErrors.session_not_yours(`the caller is the session ${own}`)
    const session = this.kernel.needs.sessions.get(id)
    if (session?.workspaceId !== workspaceId)
      throw SessionErrors.session_not_found(`the workspace has no session ${JSON.stringify(id)}`)
    return session
  }

  /** @throws Fault `network_disabled`, `channel_exists`, and errors of creating a session */
  async createChannel(workspace: Workspace, body: CreateChannelBody, actor: Actor): Promise<ChannelDetail> {
    this.checkEnabled()
    const { channel, agent_names: names = [] } = body
    const { db, needs } = this.kernel
    this.channels.checkFree(workspace.id, channel)
    const sessions: SessionInfo[] = []
    try {
      for (const agentName of new Set(names))
        sessions.push(await needs.sessions.create({ workspaceId: workspace.id, agentName, actor, cause: actor.cause }))
      await db.tx(t => {
        this.channels.create(t, workspace.id, body, namedActor(actor).ref)
        for (const session of sessions) this.peers.join(t, channel, session)
      })
    } catch (error) {
      // All or nothing: the sessions created for the channel are stopped.
      for (const { id } of sessions) await needs.sessions.stop(id, { reason: 'user_canceled' })
      throw error
    }
    return this.channels.detail(workspace.id, channel)
  }

  async updateChannel(workspaceId: string, channel: string, body: UpdateChannelBody): Promise<ChannelDetail> {
    await this.kernel.db.tx(t => this.channels.update(t, workspaceId, channel, body))
    return this.channels.detail(workspaceId, channel)
  }

  /** @throws Fault of {@link Sending.send}, `network_disabled`, `peer_absent`, `session_not_yours` */
  async send(workspaceId: string, body: SendMessageBody, actor: Actor): Promise<SentMessage> {
    this.checkEnabled()
    const { session_id: sessionId, channel, confirm_wakes: confirmed = false } = body
    const session = this.speaker(sessionId, workspaceId, actor)
    this.channels.found(workspaceId, channel)
    const peer = this.peers.ofSession(channel, session.id)
    if (!peer) throw NetworkErrors.peer_absent(`the session ${session.id} does not take part in ${channel}`)
    const isAgent = agentSessionOf(actor) !== undefined
    return this.sending.send(workspaceId, { peer, isAgent, confirmed: confirmed && !isAgent }, body)
  }

  /** The room of a session and another peer. @throws Fault `network_disabled`, `peer_absent`, `peer_not_found` */
  async resolveDirect(workspaceId: string, channel: string, body: ResolveDirectBody, actor: Actor): Promise<Direct> {
    this.checkEnabled()
    const session = this.speaker(body.session_id, workspaceId, actor)
    const row = await this.kernel.db.tx(t => {
      this.channels.found(workspaceId, channel, t)
      const own = this.peers.ofSession(channel, session.id, t)
      if (!own) throw NetworkErrors.peer_absent(`the session ${session.id} does not take part in ${channel}`)
      const other = this.peers.get(workspaceId, channel, body.peer_id, t)
      if (!other || other.peerId === own.peerId)
        throw NetworkErrors.peer_not_found(`${channel} has no other peer ${JSON.stringify(body.peer_id)}`)
      return this.sending.threads.resolve(t, workspaceId, channel, own, other)
    })
    return this.reading.direct(row)
  }

  /** A direct room; agents see only their own. @throws Fault `conversation_not_found` */
  room(workspaceId: string, channel: string, id: string, actor: Actor): ContainerRow {
    const row = this.reading.container(workspaceId, channel, id, 'direct')
    const own = agentSessionOf(actor)
    if (own === undefined || row.sessionA === own || row.sessionB === own) return row
    throw noConversation(channel, id, 'direct')
  }

  /** Limits a query to the direct rooms that a caller may see: for an agent, those of its session. */
  visible(query: ListContainersQuery, actor: Actor): ListContainersQuery {
    const own = agentSessionOf(actor)
    return own === undefined ? query : { ...query, session_id: own }
  }

  /** @throws Fault `peer_not_found` */
  peer(workspaceId: string, peerId: string): PeerReply['peer'] {
    const row = peers.all(this.kernel.db, { workspaceId, peerId, leftAt: null }, 'ORDER BY joined_at LIMIT 1')[0]
    if (!row) throw NetworkErrors.peer_not_found(`there is no peer ${JSON.stringify(peerId)}`)
    return { ...this.peers.wire(row), peer_card: cardOf(row), metrics: this.sending.tally.ofPeer(workspaceId, peerId) }
  }

  /** Why a session may not make a call now; undefined if it may. Turns started by messages must not change anything. */
  restraint(sessionId: string, call: WantedCall): string | undefined {
    return this.wakes.isWoken(sessionId) ? refusalOf({ ...call, program: this.#program }) : undefined
  }

  /** Whether messages may wake a session. */
  takesPart(sessionId: string): boolean {
    return this.participation.ofSession(sessionId) !== undefined || this.peers.channelsOf(sessionId).length > 0
  }

  /** Path of this service's program, as agents know it. */
  get #program(): string | undefined {
    const { SVC_BIN_DIR: bin } = this.kernel.env
    return bin === undefined ? undefined : path.join(bin, 'svc')
  }

  /** @throws Fault `network_disabled` */
  checkEnabled(): void {
    if (!this.enabled) throw NetworkErrors.network_disabled()
  }

  /** Removes a stopped session from its channels if it cannot be restarted. */
  async sessionStopped({ id, state, stopReason }: SessionInfo): Promise<void> {
    this.guarding.forget(id)
    if (isRestartable(state, stopReason) || this.peers.channelsOf(id).length === 0) return
    await this.kernel.db.tx(t => this.peers.leave(t, id))
  }

  status(): NetworkStatus {
    const count = (sql: string) => this.kernel.db.get<{ n: number }>(sql)?.n ?? 0
    const kinds = this.sending.tally.kinds()
    const total = (direction: string) =>
      kinds.filter(sum => sum.direction === direction).reduce((sum, { n }) => sum + n, 0)
    const localPeers = this.peers.countLocal()
    const metrics = new Map<string, Record<string, number>>()
    for (const { kind, direction, n } of kinds) metrics.set(kind, { ...metrics.get(kind), [direction]: n })
    return {
      enabled: this.enabled,
      status: this.enabled ? (localPeers > 0 ? 'active' : 'ready') : 'disabled',
      channels: count('SELECT count(*) AS n FROM network_channel'),
      declared_channels: [...(this.kernel.needs.bundles.current?.declaredChannels() ?? [])],
      conversation_messages: count('SELECT count(*) AS n FROM network_message WHERE container_id IS NOT NULL'),
      kind_metrics: [...metrics].map(([kind, sums]) => ({ kind, ...sums })),
      local_peers: localPeers,
      messages_delivered: total('delivered'),
      messages_received: total('received'),
      messages_rejected: total('rejected'),
      messages_sent: total('sent'),
      open_direct_rooms: count("SELECT count(*) AS n FROM network_container WHERE surface = 'direct'"),
      open_threads: count("SELECT count(*) AS n FROM network_container WHERE surface = 'thread'"),
      open_work_items: count('SELECT count(*) AS n FROM network_work WHERE ended_at IS NULL'),
    }
  }

  /** The doctor's items of the network. */
  check(): DiagnosticItem[] {
    const about = { id: 'network', category: 'network' }
    try {
      const { enabled, local_peers: local = 0, channels = 0 } = this.status()
      const item = enabled
        ? { code: 'network_ready', title: 'The network is on', message: `${channels} channels, ${local} local peers` }
        : {
            code: 'network_disabled',
            title: 'The network is off',
            message: 'no session and no run can take part in a channel, and no message wakes a session',
            suggested_command: command('config set', 'network.enabled', 'true'),
          }
      return [finding({ ...about, severity: enabled ? 'info' : 'warning', ...item })]
    } catch (error) {
      const message = `its tables cannot be read: ${messageOf(error)}`
      const item = { code: 'network_unavailable', title: 'The network does not work', message }
      return [finding({ ...about, severity: 'error', suggested_command: command('logs'), ...item })]
    }
  }

  countSince(at: number, workspaceId?: string): number {
    const where = workspaceId === undefined ? '' : ' AND workspace_id = ?'
    const sql = `SELECT count(*) AS n FROM network_message WHERE at >= ?${where}`
    const params = workspaceId === undefined ? [at] : [at, workspaceId]
    return this.kernel.db.get<{ n: number }>(sql, params)?.n ?? 0
  }

  sent(workspaceId: string, channel: string, after: number, limit: number): OutgoingMessage[] {
    const { db } = this.kernel
    // Notices of the daemon stay in its own conversation.
    const where = `WHERE workspace_id = ? AND channel = ? AND daemon IS NULL AND sender <> '${NOTICE}' AND seq > ? ORDER BY seq LIMIT +?`
    return messages.query(db, where, [workspaceId, channel, after, limit]).map(row => {
      const envelope = JSON.parse(row.envelope) as Envelope
      if (row.surface !== 'direct') return { seq: row.seq, envelope }
      const { direct_id: _, ...rest } = envelope
      const other = this.sending.threads.otherOf(db, row)
      const daemon = other === undefined ? undefined : peers.get(db, { workspaceId, channel, peerId: other })?.daemon
      return { seq: row.seq, envelope: { ...rest, direct_peers: [row.sender, `${other}`] }, only: daemon ?? null }
    })
  }

  isSent(workspaceId: string, channel: string, id: string): boolean {
    const sql = 'SELECT 1 FROM network_message WHERE workspace_id = ? AND id = ? AND channel = ? AND daemon IS NULL'
    return this.kernel.db.row(sql, [workspaceId, id, channel]) !== undefined
  }

  checkChannel(workspaceId: string, channel: string): void {
    this.channels.found(workspaceId, channel)
  }

  localPeers(workspaceId: string, channel: string): RemotePeer[] {
    return this.peers.present(workspaceId, channel).filter(({ sessionId }) => sessionId !== undefined)
  }

  receive(t: Tx, workspaceId: string, envelope: RemoteEnvelope, daemon: string) {
    return this.sending.receive(this.kernel.db.within(t), workspaceId, envelope, daemon)
  }

  remotePeers(t: Tx, workspaceId: string, channel: string, daemon: string, present: readonly RemotePeer[]): void {
    this.peers.setRemote(this.kernel.db.within(t), workspaceId, channel, daemon, present)
  }
}
