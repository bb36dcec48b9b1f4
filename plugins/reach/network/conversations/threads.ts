import { cut } from '../../../../kernel/kit/text.js'
import type { Reads, Tx } from '../../../../kernel/plugin.js'
import type { Envelope } from '../../../../schemas/network/messages.js'
import type { Happening, RemoteEnvelope } from '../api.js'
import { sideOf } from '../channels/peers.js'
import { directIdOf, type Refusal } from '../envelope.js'
import type { Happenings } from '../happenings.js'
import type { K } from '../needs.js'
import { type ContainerRow, containers, type MessageRow, type PeerRow } from '../tables.js'

const MAX_TITLE = 120
/** Kinds that open a thread; others continue one. */
const OPENING: ReadonlySet<string> = new Set(['say', 'capability'])

/** Threads and direct rooms. */
export class Threads {
  constructor(
    private readonly kernel: K,
    private readonly happenings: Happenings,
  ) {}

  /** The conversation of a message, not yet stored if the message opens it; undefined if it has none. */
  conversationOf(
    t: Tx,
    workspaceId: string,
    envelope: Envelope,
    author: PeerRow | undefined,
    target: PeerRow | undefined,
    now: number,
    /** Direct room of a message from another daemon, possibly not stored yet. */
    remote?: ContainerRow,
  ): ContainerRow | undefined | 'conversation_not_found' | 'not_target' {
    const { channel, surface, thread_id: thread, direct_id: direct, kind } = envelope
    if (surface === 'direct') {
      const room = remote ?? containers.get(t, { workspaceId, channel, id: `${direct}` })
      if (room?.surface !== 'direct') return 'conversation_not_found'
      const sides = [room.sessionA, room.sessionB]
      const isOf = (peer: PeerRow | undefined) => peer === undefined || sides.includes(sideOf(peer))
      return author !== undefined && isOf(author) && isOf(target) ? room : 'not_target'
    }
    if (surface !== 'thread') return undefined
    const known = containers.get(t, { workspaceId, channel, id: `${thread}` })
    if (known) return known.surface === 'thread' ? known : 'conversation_not_found'
    if (!OPENING.has(kind)) return 'conversation_not_found'
    return {
      ...{ workspaceId, channel, id: `${thread}`, surface: 'thread' },
      title: titleOf(envelope),
      rootId: envelope.id,
      openedBy: envelope.from,
      openedSession: author?.sessionId,
      ...{ openedAt: now, lastAt: now, messages: 0 },
    }
  }

  /** The room of two peers in a channel, created on first use. */
  resolve(t: Tx, workspaceId: string, channel: string, one: PeerRow, other: PeerRow): ContainerRow {
    const { room, isNew } = this.#roomOf(t, workspaceId, channel, one, other)
    if (!isNew) return room
    containers.insert(t, room)
    this.happenings.tell(t, 'directOpened', () => aboutContainer(room))
    for (const peer of [one, other]) this.#participates(t, room, peer.peerId, peer.sessionId)
    return room
  }

  /** The room of two peers, stored or not. */
  #roomOf(reads: Reads, workspaceId: string, channel: string, one: PeerRow, other: PeerRow) {
    const [sessionA, sessionB] = [sideOf(one), sideOf(other)].sort() as [string, string]
    const id = directIdOf(workspaceId, channel, sessionA, sessionB)
    const known = containers.get(reads, { workspaceId, channel, id })
    if (known) return { room: known, isNew: false }
    const now = this.kernel.clock.now()
    const room: ContainerRow = {
      ...{ workspaceId, channel, id, surface: 'direct', title: '', sessionA, sessionB },
      ...{ openedBy: one.peerId, openedSession: one.sessionId },
      ...{ openedAt: now, lastAt: now, messages: 0 },
    }
    return { room, isNew: true }
  }

  /**
   * The room of a message from another daemon, with a function that opens it after the message is stored: the sender
   * must be a peer of that daemon, the other peer a session of this one.
   */
  remoteRoom(
    t: Tx,
    workspaceId: string,
    { channel, from, direct_id: id, direct_peers: pair }: RemoteEnvelope,
    daemon: string,
    peerOf: (peerId: string) => PeerRow | undefined,
  ): { readonly room: ContainerRow; readonly open: () => void } | Refusal {
    const isPair = Array.isArray(pair) && pair.length === 2 && [channel, from, ...pair].every(isText)
    if (!isPair || (id ?? undefined) !== undefined)
      return { reason: 'malformed', message: 'direct_peers: expected the two peers of the room, and no direct_id' }
    const other = pair.find(peerId => peerId !== from)
    if (other === undefined || !pair.includes(from))
      return { reason: 'not_target', message: `${from} is not one of the two peers of the room` }
    const [author, target] = [peerOf(from), peerOf(other)]
    if (author && author.daemon !== daemon)
      return { reason: 'verification_failed', message: `${from} is a peer of ${author.daemon ?? 'this daemon'}` }
    if (!author || target?.sessionId === undefined)
      return { reason: 'not_found', message: `${author ? other : from} does not take part in ${channel}` }
    return {
      room: this.#roomOf(t, workspaceId, channel, author, target).room,
      open: () => void this.resolve(t, workspaceId, channel, author, target),
    }
  }

  /** The other peer of a direct room. */
  otherOf(reads: Reads, { workspaceId, channel, containerId = '', sender }: MessageRow): string | undefined {
    const sql = `SELECT peer_id AS peerId FROM network_participant
       WHERE workspace_id = ? AND channel = ? AND container_id = ? AND peer_id <> ? LIMIT 1`
    return reads.get<{ peerId: string }>(sql, [workspaceId, channel, containerId, sender])?.peerId
  }

  /** Updates the conversation of a stored message; the first message creates it. */
  said(t: Tx, container: ContainerRow, message: MessageRow): void {
    const { sender, sessionId } = message
    const { workspaceId, channel, id: containerId } = container
    if (container.surface === 'thread' && container.messages === 0) {
      containers.insert(t, container)
      this.happenings.tell(t, 'threadOpened', () => aboutContainer(container))
    }
    this.noted(t, message)
    this.#participates(t, { workspaceId, channel, id: containerId }, sender, sessionId)
  }

  /** Updates the conversation of a message whose sender does not take part in it. */
  noted(t: Tx, { workspaceId, channel, containerId, preview, at }: MessageRow): void {
    if (containerId === undefined) return
    t.run(
      'UPDATE network_container SET messages = messages + 1, last_at = ?, preview = ? WHERE workspace_id = ? AND channel = ? AND id = ?',
      [at, preview, workspaceId, channel, containerId],
    )
  }

  /** The two sessions of a direct room. */
  sessionsOf(reads: Reads, { workspaceId, channel, containerId = '' }: MessageRow): readonly string[] {
    const room = containers.get(reads, { workspaceId, channel, id: containerId })
    return [room?.sessionA, room?.sessionB].filter(id => id !== undefined)
  }

  #participates(
    t: Tx,
    { workspaceId, channel, id }: Pick<ContainerRow, 'workspaceId' | 'channel' | 'id'>,
    peerId: string,
    sessionId: string | undefined,
  ): void {
    t.run(
      `INSERT INTO network_participant (workspace_id, channel, container_id, peer_id, session_id) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO NOTHING`,
      [workspaceId, channel, id, peerId, sessionId ?? null],
    )
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'

/** A conversation in the form for hook programs. */
const aboutContainer = ({ workspaceId, channel, surface, id, openedBy }: ContainerRow): Happening => ({
  workspace_id: workspaceId,
  ...{ channel, surface, [surface === 'thread' ? 'thread_id' : 'direct_id']: id },
  opened_by: openedBy,
})

function titleOf({ body, kind }: Envelope): string {
  const { text, summary } = body as { readonly text?: unknown; readonly summary?: unknown }
  const [first = ''] = `${text ?? summary ?? kind}`.trim().split('\n')
  return cut(first, MAX_TITLE)
}
