import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { type Actor, Fault, iso, KernelErrors } from '../../../../kernel/plugin.js'
import {
  type AgentReceiveQuery,
  type AgentReplyBody,
  type AgentSendBody,
  type CoordinationAbout,
  CoordinationKind,
  type CoordinationMessage,
  CoordinationMetadata,
} from '../../../../schemas/network/agent.js'
import type { Envelope, SendMessageBody, SentMessage } from '../../../../schemas/network/messages.js'
import type { CoordinationChannel } from '../../../../schemas/tasks/run.js'
import type { TaskRun } from '../../../../schemas/tasks.js'
import { agentSessionOf } from '../../../access/identity/api.js'
import { activeRunOf, SessionErrors, type SessionInfo } from '../../../work/sessions/api.js'
import { NetworkErrors } from '../api.js'
import type { Channels } from '../channels/channels.js'
import { cardOf, type Peers, sideOf } from '../channels/peers.js'
import { notWokenOf } from '../conversations/not-woken.js'
import type { K } from '../needs.js'
import { type ChannelRow, type MessageRow, messages, type PeerRow } from '../tables.js'
import type { Wakes } from '../wakes/wakes.js'
import type { Feeds } from './feeds.js'

const LIMIT = 20
/** Bytes of messages per reply, unless the first one alone is larger. */
const MAX_BYTES = 1024 * 1024
/** Maximum wait for a message, shorter than the usual timeouts of proxies and clients. */
export const WAIT_MS = 25_000
/** Tool for answers of agents. */
const REPLY_TOOL = 'service__channel_reply'
/** Member of an envelope's `ext`. */
const EXT = 'coordination'

type Headers = Readonly<Record<string, string | undefined>>

/** Dependencies from the other parts. */
export interface Rooms {
  readonly kernel: K
  readonly channels: Channels
  readonly peers: Peers
  readonly wakes: Wakes
  readonly feeds: Feeds
  checkEnabled(): void
  send(workspaceId: string, body: SendMessageBody, actor: Actor): Promise<SentMessage>
}

/** Sending and receiving by agents in the channels of their own sessions: messages of kind `say` with metadata. */
export class AgentChannels {
  constructor(private readonly rooms: Rooms) {}

  /**
   * The calling session: that of the socket or token, or the one an operator speaks for. @throws Fault
   * `identity_required`
   */
  caller(actor: Actor, headers: Headers): SessionInfo {
    const id = agentSessionOf(actor) ?? headers['x-service-session-id']
    if (id === undefined)
      throw KernelErrors.identity_required('only the agent of a session has channels; the caller is the operator', {
        next: 'run it inside a session, where SVC_SOCKET is set',
      })
    const session = this.rooms.kernel.needs.sessions.get(id)
    if (!session) throw SessionErrors.session_not_found(`no session ${id}`)
    return session
  }

  /** Channels of a session. */
  list(session: SessionInfo): CoordinationChannel[] {
    const run = this.#runOf(session)
    return this.rooms.peers.channelsOf(session.id).map(({ workspaceId, channel }) => {
      const row = this.rooms.channels.found(workspaceId, channel)
      return wireChannel(row, run)
    })
  }

  /** @throws Fault `channel_not_found`, `peer_absent`, `coordination_invalid`, `network_disabled`, `message_…` */
  async send(session: SessionInfo, channel: string, body: AgentSendBody, actor: Actor): Promise<CoordinationMessage> {
    this.rooms.checkEnabled()
    this.#member(session, channel)
    return this.#say(session, channel, body, actor)
  }

  /** Answers a message in its own place, which marks it as read. @throws Fault as `send`, `network_message_not_found` */
  async reply(session: SessionInfo, body: AgentReplyBody, actor: Actor): Promise<CoordinationMessage> {
    this.rooms.checkEnabled()
    const { reply_to_message_id: answeredId, ...rest } = body
    const { kernel, wakes } = this.rooms
    const answered = messages.get(kernel.db, { workspaceId: session.workspaceId, id: answeredId })
    const peer = answered && this.rooms.peers.ofSession(answered.channel, session.id)
    // Messages of foreign channels or rooms are reported as not found.
    if (!answered || !peer || !this.#hears(session, answered))
      throw NetworkErrors.network_message_not_found(`there is no message ${JSON.stringify(answeredId)}`)
    const message = await this.#say(session, answered.channel, rest, actor, answered)
    await kernel.db.tx(t => wakes.markDelivered(t, session.id, peer.peerId, [answered]))
    return message
  }

  /**
   * Whether a tool call answers in the channel of the messages that began the session's turn. Such a call needs no
   * approval, like the command for answers.
   */
  isAnswer(toolId: string, input: Readonly<Record<string, unknown>>, sessionId: string): boolean {
    const { kernel, wakes } = this.rooms
    const session = kernel.needs.sessions.get(sessionId)
    const { reply_to_message_id: id } = input
    if (toolId !== REPLY_TOOL || typeof id !== 'string' || !session || !wakes.isWoken(sessionId)) return false
    const wake = wakes.ledger.inFlight(kernel.db, sessionId)
    const answered = messages.get(kernel.db, { workspaceId: session.workspaceId, id })
    if (!wake || !answered || answered.channel !== wake.channel) return false
    return this.rooms.peers.ofSession(answered.channel, sessionId) !== undefined && this.#hears(session, answered)
  }

  /**
   * Waiting messages of a session in a channel, oldest first. They wait until the session acknowledges them by `after`,
   * so that a lost reply loses none.
   * @throws Fault `channel_not_found`, `peer_absent`, `network_message_not_found`
   */
  async receive(
    session: SessionInfo,
    channel: string,
    { wait = false, limit = LIMIT, after }: AgentReceiveQuery,
    signal: AbortSignal,
  ): Promise<CoordinationMessage[]> {
    const peer = this.#member(session, channel)
    if (after !== undefined) await this.#acknowledge(session, peer, after)
    const ask = () => {
      const waiting = this.#waiting(session, channel, limit)
      return waiting.length > 0 ? waiting : undefined
    }
    const followed = { workspaceId: session.workspaceId, channel }
    const found =
      wait && limit > 0 ? await this.rooms.feeds.until(followed, ask, signal, WAIT_MS) : limit > 0 ? ask() : undefined
    return (found ?? []).map(row => this.wire(row))
  }

  /** A message for agents; missing metadata is derived from the message as far as possible. */
  wire(row: MessageRow): CoordinationMessage {
    const { body, ext, reply_to: replyTo } = JSON.parse(row.envelope) as Envelope
    const metadata = v.safeParse(CoordinationMetadata, ext?.[EXT])
    const about = metadata.success
      ? metadata.output
      : { correlation_id: replyTo ?? row.id, message_kind: kindOf(row, body, replyTo), run_id: '', task_id: '' }
    const { peers } = this.rooms
    const side = (peerId: string) => {
      const peer = peers.get(row.workspaceId, row.channel, peerId)
      return peer ? sideOf(peer) : peerId.slice(peerId.lastIndexOf('.') + 1)
    }
    return {
      body: contentOf(row.kind, body),
      channel_id: row.channel,
      from_session_id: row.sessionId ?? side(row.sender),
      message_id: row.id,
      metadata: { ...about, channel_id: row.channel },
      timestamp: iso(row.at),
      ...notWokenOf(this.rooms.kernel.db, row),
      ...(row.receiver !== undefined && { to_session_id: side(row.receiver) }),
    }
  }

  /** The oldest waiting messages of all channels of a session, for its context. */
  summary({ id }: SessionInfo, limit: number) {
    const { rows, count } = this.unread(id, limit)
    return {
      unread_count: count,
      items: rows.map(row => {
        const { channel_id, message_id, metadata, timestamp } = this.wire(row)
        return { channel_id, kind: metadata.message_kind, message_id, metadata, preview: row.preview, timestamp }
      }),
    }
  }

  /** Other peers in the channels of a session. */
  roster({ id, workspaceId }: SessionInfo, limit: number) {
    const { peers } = this.rooms
    const all = peers
      .channelsOf(id)
      .flatMap(({ channel }) => peers.present(workspaceId, channel).filter(({ sessionId }) => sessionId !== id))
    return {
      isTruncated: all.length > limit,
      peers: all.slice(0, limit).map(row => ({
        capabilities: cardOf(row).capabilities.map(({ id }) => id),
        channel_id: row.channel,
        display_name: row.name,
        peer_id: row.peerId,
        ...(row.sessionId !== undefined && { session_id: row.sessionId }),
      })),
    }
  }

  unread(sessionId: string, limit: number): { readonly rows: readonly MessageRow[]; readonly count: number } {
    const { db } = this.rooms.kernel
    const sql = 'SELECT count(*) AS n FROM network_delivery WHERE session_id = ? AND delivered_at IS NULL'
    const where = `WHERE seq IN (SELECT seq FROM network_delivery WHERE session_id = ? AND delivered_at IS NULL ORDER BY seq LIMIT +?)
      ORDER BY seq`
    return {
      rows: messages.query(db, where, [sessionId, limit]),
      count: db.get<{ n: number }>(sql, [sessionId])?.n ?? 0,
    }
  }

  async #say(
    session: SessionInfo,
    channel: string,
    { body, idempotency_key: key, metadata }: AgentSendBody,
    actor: Actor,
    answered?: MessageRow,
  ): Promise<CoordinationMessage> {
    const { kernel } = this.rooms
    const id = key === undefined ? kernel.ids.id('msg') : `msg_${hash(session.id, channel, key)}`
    const about = this.#about(session, channel, metadata, id)
    const to = answered ? answered.sender : this.#receiver(session, channel, metadata)
    const sent: SendMessageBody = {
      ...{ id, channel, kind: 'say', session_id: session.id },
      body: sayOf(body, about.message_kind),
      ext: { [EXT]: about },
      ...(answered
        ? { reply_to: answered.id }
        : { surface: 'thread', thread_id: `thread_${hash(channel, about.correlation_id)}` }),
      ...(to !== undefined && { to }),
    }
    try {
      await this.rooms.send(session.workspaceId, sent, actor)
    } catch (error) {
      throw asAgentFault(error)
    }
    const row = messages.get(kernel.db, { workspaceId: session.workspaceId, id })
    if (!row) throw NetworkErrors.message_internal(`the message ${id} is not there`)
    return this.wire(row)
  }

  /** Validated metadata of a message, as stored. @throws Fault `coordination_invalid` */
  #about(session: SessionInfo, channel: string, about: CoordinationAbout, id: string): CoordinationMetadata {
    const { channel_id: named = channel, run_id: runId, task_id: taskId, correlation_id: correlation = id } = about
    const refuse = (text: string) => NetworkErrors.coordination_invalid(text)
    if (named !== channel)
      throw refuse(`metadata.channel_id is ${JSON.stringify(named)}, and the channel is ${channel}`)
    const { current: tasks } = this.rooms.kernel.needs.tasks
    const own = this.#runOf(session)
    const run = runId === undefined ? own : runId === '' ? undefined : tasks?.run(runId)
    if (runId && !run) throw refuse(`metadata.run_id: there is no run ${JSON.stringify(runId)}`)
    const task = taskId ?? run?.task_id ?? ''
    if (run && task !== run.task_id) throw refuse(`metadata.task_id: the run ${run.id} is of the task ${run.task_id}`)
    if (task !== '' && tasks?.workspaceOf(task) !== session.workspaceId)
      throw refuse(`metadata.task_id: the workspace has no task ${JSON.stringify(task)}`)
    const { ext, workflow_id: workflow, message_kind: kind } = about
    return {
      ...{ channel_id: channel, correlation_id: correlation, message_kind: kind },
      ...{ run_id: run?.id ?? '', task_id: task },
      ...(ext !== undefined && { ext }),
      ...(workflow !== undefined && { workflow_id: workflow }),
    }
  }

  /** The receiving peer of a message. @throws Fault `peer_not_found` */
  #receiver({ workspaceId }: SessionInfo, channel: string, { ext }: CoordinationAbout): string | undefined {
    const sessionId = ext?.to_session_id
    if (sessionId === undefined) return undefined
    const { peers } = this.rooms
    const peer = peers.present(workspaceId, channel).find(one => sideOf(one) === sessionId || one.peerId === sessionId)
    if (!peer) throw NetworkErrors.peer_not_found(`${JSON.stringify(sessionId)} does not take part in ${channel}`)
    return peer.peerId
  }

  /** @throws Fault `channel_not_found`, `peer_absent` */
  #member(session: SessionInfo, channel: string): PeerRow {
    this.rooms.channels.found(session.workspaceId, channel)
    const peer = this.rooms.peers.ofSession(channel, session.id)
    if (!peer) throw NetworkErrors.peer_absent(`the session ${session.id} does not take part in ${channel}`)
    return peer
  }

  /** Whether a message was for the whole channel, or for a room of the session. */
  #hears(session: SessionInfo, { surface, channel, containerId, workspaceId }: MessageRow): boolean {
    if (surface !== 'direct') return true
    const sql = `SELECT 1 AS n FROM network_container WHERE workspace_id = ? AND channel = ? AND id = ? AND ? IN (session_a, session_b)`
    return this.rooms.kernel.db.get(sql, [workspaceId, channel, containerId ?? '', session.id]) !== undefined
  }

  #waiting({ id }: SessionInfo, channel: string, limit: number): MessageRow[] {
    const { db } = this.rooms.kernel
    const sizes = db.all<{ seq: number; size: number }>(
      `SELECT m.seq, m.size FROM network_delivery d JOIN network_message m ON m.seq = d.seq
       WHERE d.session_id = ? AND d.delivered_at IS NULL AND m.channel = ? ORDER BY d.seq LIMIT +?`,
      [id, channel, limit],
    )
    let bytes = 0
    return sizes.flatMap(({ seq, size }, at) => {
      bytes += size
      if (at > 0 && bytes > MAX_BYTES) return []
      const row = messages.get(db, { seq })
      return row ? [row] : []
    })
  }

  /** Marks all messages of the channel up to this one as received. @throws Fault `network_message_not_found` */
  async #acknowledge({ id, workspaceId }: SessionInfo, { channel, peerId }: PeerRow, after: string): Promise<void> {
    const { kernel, wakes } = this.rooms
    await kernel.db.tx(t => {
      const last = messages.get(t, { workspaceId, id: after })
      const sql = 'SELECT 1 AS n FROM network_delivery WHERE session_id = ? AND seq = ?'
      if (last?.channel !== channel || !t.get(sql, [id, last.seq]))
        throw NetworkErrors.network_message_not_found(
          `the session has no message ${JSON.stringify(after)} in ${channel}`,
        )
      const read = messages.query(
        t,
        `WHERE channel = ? AND seq IN (SELECT seq FROM network_delivery WHERE session_id = ? AND delivered_at IS NULL AND seq <= ?)
         ORDER BY seq`,
        [channel, id, last.seq],
      )
      wakes.markDelivered(t, id, peerId, read)
    })
  }

  #runOf({ id }: SessionInfo): TaskRun | undefined {
    return activeRunOf(this.rooms.kernel, id) ?? undefined
  }
}

const KINDS = [...CoordinationKind.options]

function wireChannel(row: ChannelRow, run: TaskRun | undefined): CoordinationChannel {
  const part = run?.resolved_network_participation
  const isOfRun = part?.mode === 'live' && part.channel_id === row.channel
  return {
    id: row.channel,
    display_name: row.channel,
    workspace_id: row.workspaceId,
    last_activity_at: row.lastAt === undefined ? null : iso(row.lastAt),
    allowed_message_kinds: KINDS,
    ...(row.purpose !== undefined && { purpose: row.purpose }),
    ...(run && isOfRun && { run_id: run.id, task_id: run.task_id }),
  }
}

const hash = (...parts: readonly string[]): string =>
  createHash('sha256').update(parts.join('\0')).digest('hex').slice(0, 32)

/** The body of a `say`: a text unchanged; any other value as JSON in `text`, and as it is in `content`. */
function sayOf(body: unknown, intent: CoordinationKind): Record<string, unknown> {
  return typeof body === 'string'
    ? { text: body, intent }
    : { text: JSON.stringify(body) ?? '', intent, content: body ?? null }
}

function contentOf(kind: string, body: unknown): unknown {
  if (kind !== 'say') return body
  const { text, content } = body as { readonly text: string; readonly content?: unknown }
  return content === undefined ? text : content
}

/** The kind of a message that was sent by another route. */
function kindOf({ kind, receiver }: MessageRow, body: unknown, replyTo: string | null | undefined): CoordinationKind {
  const { intent, state } = body as { readonly intent?: unknown; readonly state?: unknown }
  if (kind === 'trace') return state === 'needs_input' ? 'blocker' : state === 'working' ? 'status' : 'result'
  if (kind === 'capability') return 'request'
  if (kind !== 'say') return 'status'
  if (v.is(CoordinationKind, intent)) return intent
  return replyTo ? 'reply' : receiver === undefined ? 'status' : 'request'
}

/** On the routes of agents an invalid message is 422; other errors keep their status. */
function asAgentFault(error: unknown): unknown {
  if (!(error instanceof Fault) || error.details?.reason_code === undefined) return error
  if (error.status !== 400 && error.status !== 409) return error
  return NetworkErrors.coordination_invalid(error.message, { details: error.details })
}
