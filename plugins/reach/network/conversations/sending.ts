import { createHash } from 'node:crypto'
import { canonicalJson as canonical } from '../../../../kernel/kit/canonical.js'
import { cut } from '../../../../kernel/kit/text.js'
import type { Fault, Tx } from '../../../../kernel/plugin.js'
import type { Envelope, MessageKind, SendMessageBody, SentMessage } from '../../../../schemas/network/messages.js'
import { MessageRefused, MessageStored, REFUSED } from '../api.js'
import type { Channels } from '../channels/channels.js'
import type { Peers } from '../channels/peers.js'
import { EVERYONE, judge, MAX_BYTES, PROTOCOL, type Reason, type Refusal } from '../envelope.js'
import type { K } from '../needs.js'
import { deliveries, type MessageRow, messages, type PeerRow, peers as peerTable } from '../tables.js'
import type { Recipient, Wakes } from '../wakes/wakes.js'
import { Tally } from './tally.js'
import { Threads } from './threads.js'
import { Works } from './works.js'

const PREVIEW = 160

/** Who sends a message. */
export interface Sender {
  readonly peer: PeerRow
  /** A person allows it to wake more than 3 sessions. */
  readonly confirmed: boolean
  /** An agent sends it, which cannot allow that. */
  readonly isAgent: boolean
}

/** Thrown inside of the transaction, so that nothing of a message that is refused is stored. */
class RefusedError extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.message)
  }
}
const refuse = (reason: Reason, message: string): never => {
  throw new RefusedError({ reason, message })
}

/** Stores messages: of sessions of this daemon, and those that come from others. */
export class Sending {
  readonly threads: Threads
  readonly works: Works
  readonly tally: Tally

  constructor(
    private readonly kernel: K,
    private readonly channels: Channels,
    private readonly peers: Peers,
    private readonly wakes: Wakes,
    /** Called when messages are durable. */
    private readonly stored: (seq: number) => void,
  ) {
    this.threads = new Threads(kernel)
    this.works = new Works(kernel)
    this.tally = new Tally(kernel)
  }

  /**
   * Sends a message of a session; resolves when it is stored, with what each recipient's disposition is, and the wakes. The same id with
   * the same content is stored once.
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
    return sentOf(envelope, body.session_id)
  }

  /** Stores a message of another daemon. */
  receive(t: Tx, workspaceId: string, envelope: Envelope, daemon: string): 'stored' | 'duplicate' | Refusal {
    const { channel, from, kind } = envelope
    try {
      return this.#store(t, workspaceId, { ...envelope, workspace_id: workspaceId }, { daemon })
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
    const { session_id, confirm_wakes, id: given, surface, thread_id, direct_id, ...rest } = body
    const id = given ?? this.kernel.ids.id('msg')
    const place = this.#placeOf(workspaceId, body, id)
    return {
      ...rest,
      ...place,
      protocol: PROTOCOL,
      id,
      from: peerId,
      workspace_id: workspaceId,
      ts: Math.floor(this.kernel.clock.now() / 1000),
    }
  }

  /** Where a message belongs: where it says so, where the message is that it answers, else in a thread of its own. */
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

  #store(
    t: Tx,
    workspaceId: string,
    envelope: Envelope,
    { sender, daemon }: { readonly sender?: Sender; readonly daemon?: string },
  ): 'stored' | 'duplicate' {
    const { clock } = this.kernel
    const now = clock.now()
    const refusal = judge(envelope, now)
    if (refusal) throw new RefusedError(refusal)
    const text = JSON.stringify(envelope)
    const size = Buffer.byteLength(text)
    if (size > MAX_BYTES) refuse('malformed', `it has ${size} bytes, and ${MAX_BYTES} are allowed`)
    const { id, channel, from, to } = envelope
    const kind = envelope.kind as MessageKind
    const digest = digestOf(envelope)
    const known = messages.get(t, { workspaceId, id })
    if (known && known.digest === digest) return 'duplicate'
    if (known) refuse('duplicate', `there is another message ${id}`)
    this.channels.found(workspaceId, channel, t)
    const author = this.peers.get(workspaceId, channel, from, t)
    if (daemon !== undefined && author?.sessionId !== undefined)
      refuse('verification_failed', `${from} is a peer of this daemon`)
    const target = to ? this.#target(t, workspaceId, channel, to) : undefined
    const mentioned = this.#mentioned(t, workspaceId, envelope)
    const container = this.threads.place(t, workspaceId, envelope, author, target, now)
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
    messages.insert(t, message)
    const seq = t.get<{ seq: number }>('SELECT last_insert_rowid() AS seq')?.seq as number
    const whole: MessageRow = { ...message, seq }
    if (kind === 'greet' && author) {
      const { peer_card: card } = envelope.body as { readonly peer_card: unknown }
      peerTable.update(t, { workspaceId, channel, peerId: from }, { card })
    }
    if (container) this.threads.said(t, container, whole)
    work?.()
    t.run(
      'UPDATE network_channel SET messages = messages + 1, last_at = ?, preview = ? WHERE workspace_id = ? AND channel = ?',
      [now, whole.preview, workspaceId, channel],
    )
    this.#deliver(t, whole, { envelope, mentioned, sender })
    this.tally.add(t, workspaceId, from, kind, daemon === undefined ? 'sent' : 'received', size)
    this.kernel.needs.events.emit(t, MessageStored, {
      ...{ workspace_id: workspaceId, channel, message_id: id, kind, from },
      ...(to && { to }),
      ...(container && { surface: container.surface, container_id: container.id }),
      ...(envelope.work_id && { work_id: envelope.work_id }),
    })
    this.kernel.db.onDurable(t, () => this.stored(seq))
    return 'stored'
  }

  #target(t: Tx, workspaceId: string, channel: string, to: string): PeerRow {
    return this.peers.get(workspaceId, channel, to, t) ?? refuse('not_found', `${to} takes no part in ${channel}`)
  }

  /** Peers that a message mentions, by their ids. */
  #mentioned(t: Tx, workspaceId: string, { mentions = [], channel }: Envelope): ReadonlySet<string> {
    for (const name of mentions)
      if (name !== EVERYONE && !this.peers.get(workspaceId, channel, name, t))
        refuse('not_found', `${name} is mentioned and takes no part in ${channel}`)
    return new Set(mentions)
  }

  /** One row for each session that is to hear of a message: whether it wakes, and if not, why. */
  #deliver(
    t: Tx,
    message: MessageRow,
    {
      envelope,
      mentioned,
      sender,
    }: { readonly envelope: Envelope; readonly mentioned: ReadonlySet<string>; readonly sender: Sender | undefined },
  ): void {
    const { workspaceId, channel, seq } = message
    const { coordinator, fanoutPolicy } = this.channels.found(workspaceId, channel, t)
    const inRoom = message.surface === 'direct' ? this.threads.sessionsOf(t, message) : undefined
    const recipients: Recipient[] = []
    for (const peer of this.peers.present(workspaceId, channel, t)) {
      const { sessionId, peerId } = peer
      if (sessionId === undefined || peerId === message.sender) continue
      if (inRoom && !inRoom.includes(sessionId)) continue
      const byName = envelope.to === peerId || mentioned.has(peerId)
      const asMember = mentioned.has(EVERYONE) && (fanoutPolicy !== 'coordinator' || coordinator === peerId)
      recipients.push({ peer, sessionId, isAddressed: byName || asMember || inRoom !== undefined })
    }
    const decided = this.wakes.decide(t, message, recipients, {
      isAgent: sender?.isAgent ?? true,
      confirmed: sender?.confirmed ?? false,
    })
    for (const { sessionId, decision, reason, wakeId, isHeard } of decided) {
      const deliveredAt = isHeard ? undefined : message.at
      deliveries.insert(t, { sessionId, seq, decision, reason, wakeId, deliveredAt })
    }
  }
}

const CONTAINER = {
  conversation_not_found: 'there is no such thread or direct room in this channel',
  not_target: 'the direct room is of two sessions, and the sender or the receiver is none of them',
} as const

function faultOfRefusal({ reason, message }: Refusal): Fault {
  return REFUSED[reason](message, { details: { reason_code: reason } })
}

const sizeOf = (envelope: Envelope): number => Buffer.byteLength(JSON.stringify(envelope))

/** What of an envelope says what it is; times and proofs differ between two sendings of the same message. */
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
