import { createHash } from 'node:crypto'
import { canonicalJson as canonical } from '../../../../kernel/kit/canonical.js'
import { cut } from '../../../../kernel/kit/text.js'
import type { Fault, Tx } from '../../../../kernel/plugin.js'
import type { Envelope, MessageKind, SendMessageBody, SentMessage } from '../../../../schemas/network/messages.js'
import { MessageRefused, MessageStored, PairStopped, REFUSED, type RemoteEnvelope } from '../api.js'
import type { Channels } from '../channels/channels.js'
import type { Peers } from '../channels/peers.js'
import { EVERYONE, judge, MAX_BYTES, PROTOCOL, type Reason, type Refusal } from '../envelope.js'
import type { Happenings } from '../happenings.js'
import type { K } from '../needs.js'
import { MaxReplayAge } from '../participation/bounds.js'
import { type ContainerRow, type MessageRow, messages, type PeerRow, peers as peerTable } from '../tables.js'
import { addressing } from '../wakes/addressing.js'
import type { Decided, Recipient, WakingSender } from '../wakes/admission.js'
import type { Paced } from '../wakes/pairs.js'
import type { Wakes } from '../wakes/wakes.js'
import { notWokenOf } from './not-woken.js'
import { NOTICE, noticeOf } from './notice.js'
import { Tally } from './tally.js'
import { Threads } from './threads.js'
import { Works } from './works.js'

const PREVIEW = 160

/** The sender of a message. */
export interface Sender {
  readonly peer: PeerRow
  /** Whether a person allows it to wake more than 3 sessions. */
  readonly confirmed: boolean
  /** Whether an agent sends it, which cannot allow that. */
  readonly isAgent: boolean
}

/** The origin of a message: a session of this daemon, or another daemon. */
interface Origin {
  readonly sender?: Sender
  readonly daemon?: string
  readonly direct?: { readonly room: ContainerRow; readonly open: () => void }
}

/** Thrown to roll back the transaction of a refused message. */
class RefusedError extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.message)
  }
}
const refuse = (reason: Reason, message: string): never => {
  throw new RefusedError({ reason, message })
}

/** Stores messages from sessions of this daemon and from other daemons. */
export class Sending {
  readonly threads: Threads
  readonly works: Works
  readonly tally: Tally

  constructor(
    private readonly kernel: K,
    private readonly channels: Channels,
    private readonly peers: Peers,
    private readonly wakes: Wakes,
    /** Called when a message is durable. */
    private readonly stored: (seq: number) => void,
    private readonly happenings: Happenings,
  ) {
    this.threads = new Threads(kernel, happenings)
    this.works = new Works(kernel, happenings)
    this.tally = new Tally(kernel)
  }

  /**
   * Sends a session's message; resolves when the message, the disposition of each recipient and the wakes are stored. A
   * repetition with the same id and content is stored once.
   * @throws Fault `message_…` by the reason, `wake_confirmation_required`, `channel_not_found`
   */
  async send(workspaceId: string, sender: Sender, body: SendMessageBody): Promise<SentMessage> {
    const envelope = this.#envelopeOf(workspaceId, sender.peer, body)
    try {
      await this.kernel.db.tx(t => this.#store(t, workspaceId, envelope, { sender }))
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error
      await this.kernel.db.tx(t =>
        this.tally.add(t, workspaceId, sender.peer.peerId, envelope.kind, 'rejected', sizeOf(envelope)),
      )
      throw faultOfRefusal(error.refusal)
    }
    const { db } = this.kernel
    return {
      ...sentOf(envelope, body.session_id),
      ...notWokenOf(db, messages.get(db, { workspaceId, id: envelope.id })),
    }
  }

  /** Stores a message of another daemon. */
  receive(t: Tx, workspaceId: string, envelope: RemoteEnvelope, daemon: string): 'stored' | 'duplicate' | Refusal {
    const { channel, from, kind } = envelope
    try {
      const { direct_peers: _, ...own } = { ...envelope, workspace_id: workspaceId }
      if (envelope.surface !== 'direct') return this.#store(t, workspaceId, own, { daemon })
      const peerOf = (peerId: string) => this.peers.get(workspaceId, `${channel}`, peerId, t)
      const found = this.threads.remoteRoom(t, workspaceId, envelope, daemon, peerOf)
      if ('reason' in found) throw new RefusedError(found)
      return this.#store(t, workspaceId, { ...own, direct_id: found.room.id }, { daemon, direct: found })
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error
      const { reason, message } = error.refusal
      this.tally.add(t, workspaceId, `${from}`, `${kind}`, 'rejected', sizeOf(envelope))
      this.kernel.needs.events.emit(t, MessageRefused, {
        ...{ workspace_id: workspaceId, channel: `${channel}`, from: `${from}`, daemon },
        ...{ reason_code: reason, message },
      })
      return error.refusal
    }
  }

  #envelopeOf(workspaceId: string, { peerId }: PeerRow, body: SendMessageBody): Envelope {
    const { session_id, confirm_wakes, id: requestedId, surface, thread_id, direct_id, ...rest } = body
    const id = requestedId ?? this.kernel.ids.id('msg')
    const conversation = this.#placeOf(workspaceId, body, id)
    return {
      ...rest,
      ...conversation,
      protocol: PROTOCOL,
      id,
      from: peerId,
      workspace_id: workspaceId,
      ts: Math.floor(this.kernel.clock.now() / 1000),
    }
  }

  /** Conversation of a message: the named one, else that of the answered message, else a new thread. */
  #placeOf(workspaceId: string, body: SendMessageBody, id: string): Partial<Envelope> {
    const { surface, thread_id, direct_id, reply_to: replyTo, kind } = body
    if (thread_id !== undefined || direct_id !== undefined)
      return { surface: surface ?? (thread_id === undefined ? 'direct' : 'thread'), thread_id, direct_id }
    if (kind === 'greet' || kind === 'whois') return surface === undefined ? {} : { surface }
    const answered = replyTo === undefined ? undefined : messages.get(this.kernel.db, { workspaceId, id: replyTo })
    if (answered?.containerId !== undefined && answered.channel === body.channel)
      return answered.surface === 'direct'
        ? { surface: 'direct', direct_id: answered.containerId }
        : { surface: 'thread', thread_id: answered.containerId }
    if (surface === 'direct') return { surface }
    return { surface: 'thread', thread_id: `thread_${createHash('sha256').update(id).digest('hex').slice(0, 32)}` }
  }

  #store(t: Tx, workspaceId: string, envelope: Envelope, { sender, daemon, direct }: Origin): 'stored' | 'duplicate' {
    const { clock } = this.kernel
    const now = clock.now()
    // A message signed by another daemon is valid until its signed expiry.
    const maxAgeMs = daemon === undefined ? this.kernel.config.get(MaxReplayAge) * 1000 : undefined
    const refusal = judge(envelope, now, maxAgeMs)
    if (refusal) throw new RefusedError(refusal)
    const text = JSON.stringify(envelope)
    const size = Buffer.byteLength(text)
    if (size > MAX_BYTES) refuse('malformed', `it has ${size} bytes, and ${MAX_BYTES} are allowed`)
    const { id, channel, from, to } = envelope
    const kind = envelope.kind as MessageKind
    const digest = digestOf(envelope)
    const known = messages.get(t, { workspaceId, id })
    if (known && known.digest === digest) return 'duplicate'
    if (known) refuse('duplicate', `another message has the id ${id}`)
    this.channels.found(workspaceId, channel, t)
    const author = this.peers.get(workspaceId, channel, from, t)
    if (daemon !== undefined && (from === NOTICE || (author && author.daemon !== daemon)))
      refuse('verification_failed', `${from} is a peer of ${author?.daemon ?? 'this daemon'}`)
    const target = to ? this.#target(t, workspaceId, channel, to) : undefined
    this.#checkMentions(t, workspaceId, envelope)
    const container = this.threads.conversationOf(t, workspaceId, envelope, author, target, now, direct?.room)
    if (typeof container === 'string') throw new RefusedError({ reason: container, message: CONTAINER[container] })
    const work = this.works.plan(t, workspaceId, envelope, container, { author, target }, now)
    if (typeof work === 'object') throw new RefusedError(work)
    const lineage = this.wakes.lineage(author?.sessionId) ?? { rootId: id, depth: 0 }
    const message: Omit<MessageRow, 'seq'> = {
      ...{ id, workspaceId, channel, kind, digest, size, daemon, at: now },
      surface: container?.surface,
      containerId: container?.id,
      sender: from,
      sessionId: daemon === undefined ? author?.sessionId : undefined,
      receiver: to ?? undefined,
      workId: envelope.work_id ?? undefined,
      envelope: text,
      preview: previewOf(envelope),
      rootId: lineage.rootId,
      depth: lineage.depth,
    }
    const paced = kind === 'say' ? this.wakes.pairs.said(message, now) : undefined
    const isStopped = paced?.pace === 'stopped'
    // A message of another daemon is stored anyway, to match the other stores; it wakes no session.
    if (isStopped && daemon === undefined)
      refuse('busy', `${paced?.pair.join(' and ')} answer each other too fast: both are blocked for one minute`)
    direct?.open()
    const whole = this.#insert(t, message)
    if (kind === 'greet' && author) {
      const { peer_card: card } = envelope.body as { readonly peer_card: unknown }
      peerTable.update(t, { workspaceId, channel, peerId: from }, { card })
    }
    if (container) this.threads.said(t, container, whole)
    work?.()
    const decided = this.#deliver(t, whole, envelope, {
      isRemote: daemon !== undefined,
      confirmed: sender?.confirmed ?? false,
      isStopped,
    })
    if (paced?.pace === 'first') this.#tellStopped(t, whole, paced)
    this.tally.add(t, workspaceId, from, kind, daemon === undefined ? 'sent' : 'received', size)
    const about = {
      ...{ workspace_id: workspaceId, channel, message_id: id, kind, from },
      ...(to && { to }),
      ...(container && { surface: container.surface, container_id: container.id }),
      ...(envelope.work_id && { work_id: envelope.work_id }),
    }
    this.kernel.needs.events.emit(t, MessageStored, { ...about, ...dispositionsOf(decided) })
    const direction = daemon === undefined ? 'sent' : 'received'
    this.happenings.tell(t, 'messagePersisted', () => ({ ...about, direction }))
    this.kernel.db.onDurable(t, () => this.stored(whole.seq))
    return 'stored'
  }

  #insert(t: Tx, message: Omit<MessageRow, 'seq'>): MessageRow {
    messages.insert(t, message)
    const seq = t.get<{ seq: number }>('SELECT last_insert_rowid() AS seq')?.seq as number
    t.run(
      // The preview of a direct room's message is not shown in the channel, which all peers see.
      `UPDATE network_channel SET messages = messages + 1, last_at = ?, preview = coalesce(?, preview)
       WHERE workspace_id = ? AND channel = ?`,
      [message.at, message.surface === 'direct' ? null : message.preview, message.workspaceId, message.channel],
    )
    return { ...message, seq }
  }

  /** Adds a notice to the conversation of two stopped peers, once; it wakes neither. */
  #tellStopped(t: Tx, { seq, ...message }: MessageRow, { pair }: Paced): void {
    const { id, envelope } = noticeOf(message, pair, this.kernel.ids.id('msg'))
    const text = JSON.stringify(envelope)
    const notice = this.#insert(t, {
      ...{ ...message, id, envelope: text, size: Buffer.byteLength(text), digest: digestOf(envelope) },
      ...{ kind: 'say', preview: previewOf(envelope), sender: NOTICE, rootId: id, depth: 0 },
      ...{ sessionId: undefined, receiver: undefined, workId: undefined, daemon: undefined },
    })
    const { workspaceId, channel } = message
    this.threads.noted(t, notice)
    for (const peerId of pair) {
      const sessionId = this.peers.get(workspaceId, channel, peerId, t)?.sessionId
      if (sessionId !== undefined)
        this.#write(t, notice, [{ sessionId, decision: 'skip', reason: 'not_addressed', isHeard: true }])
    }
    this.kernel.needs.events.emit(t, PairStopped, { workspace_id: workspaceId, channel, peers: [...pair] })
    this.kernel.db.onDurable(t, () => this.stored(notice.seq))
  }

  #target(t: Tx, workspaceId: string, channel: string, to: string): PeerRow {
    return this.peers.get(workspaceId, channel, to, t) ?? refuse('not_found', `${to} does not take part in ${channel}`)
  }

  /** @throws RefusedError for a mentioned peer that does not take part */
  #checkMentions(t: Tx, workspaceId: string, { mentions = [], channel }: Envelope): void {
    for (const name of mentions)
      if (name !== EVERYONE && !this.peers.get(workspaceId, channel, name, t))
        refuse('not_found', `${name} is mentioned and does not take part in ${channel}`)
  }

  /** Stores one row per receiving session: whether it wakes, and if not, why. */
  #deliver(t: Tx, message: MessageRow, envelope: Envelope, sender: WakingSender): readonly Decided[] {
    const { workspaceId, channel } = message
    const { coordinator, fanoutPolicy: policy } = this.channels.found(workspaceId, channel, t)
    const room = message.surface === 'direct' ? this.threads.sessionsOf(t, message) : undefined
    const addressedBy = addressing(envelope, { policy, coordinator }, room !== undefined, peerId =>
      this.peers.capabilitiesOf(workspaceId, channel, peerId, t),
    )
    const recipients: Recipient[] = []
    for (const { peerId, sessionId } of this.peers.sessionsIn(workspaceId, channel, t)) {
      if (peerId === message.sender || (room && !room.includes(sessionId))) continue
      recipients.push({ peerId, sessionId, by: addressedBy(peerId) })
    }
    const decided = this.wakes.decide(t, message, recipients, sender)
    this.#write(t, message, decided)
    return decided
  }

  /** A single statement for any number of sessions. */
  #write(t: Tx, { seq, at }: MessageRow, decided: readonly Decided[]): void {
    if (decided.length === 0) return
    const rows = decided.map(one => [one.sessionId, one.decision, one.reason, one.wakeId, one.isHeard ? null : at])
    t.run(
      `INSERT INTO network_delivery (session_id, seq, decision, reason, wake_id, delivered_at)
       SELECT value ->> 0, ?, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?)`,
      [seq, JSON.stringify(rows)],
    )
  }
}

/** The woken sessions, and the number of others by reason. */
function dispositionsOf(decided: readonly Decided[]) {
  const skipped: Record<string, number> = {}
  for (const { reason } of decided) if (reason !== undefined) skipped[reason] = (skipped[reason] ?? 0) + 1
  return { woken: decided.filter(({ decision }) => decision === 'wake').map(({ sessionId }) => sessionId), skipped }
}

const CONTAINER = {
  conversation_not_found: 'there is no such thread or direct room in this channel',
  not_target: 'the direct room belongs to two sessions, but the sender or the receiver is not one of them',
} as const

function faultOfRefusal({ reason, message }: Refusal): Fault {
  return REFUSED[reason](message, { details: { reason_code: reason } })
}

const sizeOf = (envelope: Envelope): number => Buffer.byteLength(JSON.stringify(envelope))

/** Digest of a message's content, without times and proofs, which differ between repetitions. */
function digestOf({ ts, proof, ...content }: Envelope): string {
  return createHash('sha256').update(canonical(content)).digest('hex')
}

function previewOf({ kind, body }: Envelope): string {
  const { text, summary, status, state, message, type } = body as Readonly<Record<string, unknown>>
  const said = text ?? summary ?? message ?? status ?? state ?? type ?? kind
  return cut(`${said}`.replace(/\s+/g, ' ').trim(), PREVIEW)
}

function sentOf(envelope: Envelope, sessionId: string): SentMessage {
  const { protocol, from, ts, proof, body, ...rest } = envelope
  const known = Object.entries(rest).filter(([, value]) => value !== undefined && value !== null)
  return { ...(Object.fromEntries(known) as Omit<typeof rest, never>), session_id: sessionId } as SentMessage
}
