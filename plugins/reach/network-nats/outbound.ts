import { messageOf, type Tx } from '../../../kernel/plugin.js'
import type { OutgoingMessage } from '../network/api.js'
import type { Inbound } from './inbound.js'
import { PRESENCE } from './inbound.js'
import type { K } from './needs.js'
import { type Identity, signed } from './proof.js'
import { marks, peers, type ShareRow, shares } from './tables.js'

/** How long an envelope is valid that does not say so itself, in seconds. */
const VALID_S = 24 * 60 * 60
/** How long the stream keeps messages. */
export const KEPT_MS = 7 * 24 * 60 * 60_000
const BATCH = 64
/** Batches that are published before the first of them is acknowledged. */
const BATCHES = 4
/** Milliseconds between two writes of the published sequence: one row for all messages in between. */
const SAVE_MS = 100
const MARK_MS = 10 * 60_000

/** What the server says of a message that it has stored. */
interface Ack {
  readonly seq: number
  readonly duplicate: boolean
}

/** Stores one message at the server; resolves when the server has acknowledged it. */
export type Publish = (subject: string, data: Uint8Array, id: string) => Promise<Ack>

/** Where a connection stands. */
export interface Line {
  readonly publish: Publish
  /** Bytes that the server takes of one message. */
  readonly limit: number
  /** @param only the daemon that a message is for; absent: all that share the channel */
  readonly subject: (channel: string, only?: string) => string
}

/** What a stream is found to be. */
export interface StreamView {
  readonly created: string
  readonly firstSeq: number
  readonly lastSeq: number
  /** It loses old messages only by their age. */
  readonly isWhole: boolean
}

/** Published messages of a channel that its row does not count yet. */
interface Ahead {
  readonly sharedAt: number
  /** Place in the order of commits. */
  readonly cursor: number
  readonly acked: number
  /** Where the stream has the first message behind the cursor of the row. */
  readonly first?: { readonly seq: number; readonly streamSeq: number } | undefined
}

/** A message that is ready to be published. */
interface Outgoing {
  readonly id: string
  readonly data: Uint8Array
  readonly subject: string
}

/** Publishes what sessions of this daemon said in shared channels, in the order of commits. */
export class Outbound {
  /**
   * By channel. A row is written once for all that was published in a while: a daemon that is killed meanwhile publishes that again, by
   * the same ids, which the server and the receivers know.
   */
  readonly #ahead = new Map<string, Ahead>()
  #saving: { cancel(): void } | undefined

  constructor(
    private readonly kernel: K,
    private readonly identity: Identity,
    private readonly realm: string,
    private readonly inbound: Inbound,
  ) {}

  /**
   * Compares a stream with what it acknowledged. One that was made anew, or lost messages before their age, gets again what it may have
   * lost; the receivers know what they have.
   */
  async compare(channel: string, stream: StreamView): Promise<void> {
    const { db, clock } = this.kernel
    await db.tx(t => {
      this.#write(t)
      const share = shares.get(t, { channel })
      if (!share) return
      if (share.incarnation === undefined) {
        shares.update(t, { channel }, { incarnation: stream.created })
        return
      }
      const isNew = share.incarnation !== stream.created || stream.lastSeq < share.acked
      const young = marks.query(t, 'WHERE channel = ? AND at > ? ORDER BY seq', [channel, clock.now() - KEPT_MS * 0.9])
      const lost = isNew
        ? young[0]
        : stream.isWhole
          ? young.find(({ streamSeq }) => streamSeq < stream.firstSeq)
          : undefined
      if (!isNew && !lost) return
      shares.update(
        t,
        { channel },
        {
          incarnation: stream.created,
          acked: 0,
          shownPeers: undefined,
          ...(isNew && { received: 0 }),
          ...(lost && { cursor: lost.seq, attempt: share.attempt + 1 }),
        },
      )
      if (lost) t.run('DELETE FROM network_nats_mark WHERE channel = ? AND seq >= ?', [channel, lost.seq])
    })
  }

  /** Publishes all that waits; batches follow each other before the server has acknowledged them. @returns false when an acknowledgement says that the stream begins anew */
  async flush(channel: string, line: Line): Promise<boolean> {
    const { db, needs } = this.kernel
    const row = shares.get(db, { channel })
    if (!row) return true
    await this.#announce(row, line)
    const share = this.#current(row)
    /** Batches that are not acknowledged, the oldest first; each settles after the one before it. */
    const underWay: Promise<boolean>[] = []
    try {
      for (let after = share.cursor; ; ) {
        const batch = needs.network.sent(share.workspaceId, channel, after, BATCH)
        if (batch.length === 0) break
        const from = after
        after = batch.at(-1)?.seq ?? after
        const out = await this.#prepared(share, batch, line)
        const acks = this.#publish(out, line)
        const before = underWay.at(-1)
        const settled = (async () => {
          const found = await acks
          return (await (before ?? true)) && this.#acknowledged(share, { from, to: after }, found)
        })()
        // One that fails while another is awaited is awaited below.
        settled.catch(() => {})
        underWay.push(settled)
        if (underWay.length >= BATCHES && !(await underWay.shift())) return false
      }
      return (await Promise.all(underWay)).every(Boolean)
    } finally {
      await Promise.allSettled(underWay)
    }
  }

  /** Writes down how far all is published. */
  async save(): Promise<void> {
    this.#saving?.cancel()
    this.#saving = undefined
    if (this.#ahead.size > 0) await this.kernel.db.tx(t => this.#write(t))
  }

  /** A channel as far as it is published. */
  #current(row: ShareRow): ShareRow {
    const ahead = this.#ahead.get(row.channel)
    return ahead?.sharedAt === row.sharedAt ? { ...row, cursor: ahead.cursor, acked: ahead.acked } : row
  }

  /** The signed messages of a batch. A message that no server would take is refused. */
  async #prepared(share: ShareRow, batch: readonly OutgoingMessage[], line: Line): Promise<Outgoing[]> {
    const { db, clock } = this.kernel
    const { channel, attempt } = share
    const out: Outgoing[] = []
    const now = clock.now()
    for (const { envelope, only } of batch) {
      // A direct room of two sessions of this daemon is nothing to others.
      if (only === null) continue
      const receiver = only === undefined ? undefined : peers.get(db, { name: only, revokedAt: null })
      if (only !== undefined && !receiver) {
        await this.inbound.refuseOwn(channel, {
          reason: 'not_found',
          message: `${envelope.id}: ${only} is no trusted daemon`,
        })
        continue
      }
      const expires = envelope.expires_at ?? envelope.ts + VALID_S
      if (expires * 1000 <= now) continue
      const data = this.#signed({ ...envelope, expires_at: expires }, attempt)
      const id = messageId(this.identity, share, envelope.id)
      // A header of the server's counts as well.
      const size = data.length + id.length + 64
      if (size > line.limit) {
        const message = `${envelope.id} has ${size} bytes with its headers, and the server takes ${line.limit}`
        await this.inbound.refuseOwn(channel, { reason: 'malformed', message })
        continue
      }
      out.push({ id, data, subject: line.subject(channel, receiver?.daemon) })
    }
    // Others have nothing of this daemon that it could lose itself.
    await db.durable()
    return out
  }

  async #publish(out: readonly Outgoing[], line: Line): Promise<readonly Ack[]> {
    const published = await Promise.allSettled(
      out.map(({ id, data, subject }) => {
        this.inbound.expect(id, data)
        return line.publish(subject, data, id)
      }),
    )
    return published.map(one => {
      if (one.status === 'rejected') throw one.reason
      return one.value
    })
  }

  /** Notes that a batch is at the server. @returns false when the stream begins anew */
  #acknowledged(share: ShareRow, { from, to }: { from: number; to: number }, acks: readonly Ack[]): boolean {
    const { channel, sharedAt } = share
    const known = this.#ahead.get(channel)
    const before = known?.sharedAt === sharedAt ? known : undefined
    const acked = before?.acked ?? share.acked
    if (acks.some(({ seq, duplicate }) => !duplicate && seq <= acked)) return false
    const [first] = acks
    this.#ahead.set(channel, {
      sharedAt,
      cursor: to,
      acked: Math.max(acked, ...acks.map(({ seq }) => seq)),
      first: before?.first ?? (first && { seq: from, streamSeq: first.seq }),
    })
    this.#saving ??= this.kernel.clock.timeout(SAVE_MS, () => {
      this.save().catch(error => this.kernel.log.warn('what is published is not noted', { error: messageOf(error) }))
    })
    return true
  }

  #write(t: Tx): void {
    const now = this.kernel.clock.now()
    for (const [channel, { sharedAt, cursor, acked, first }] of this.#ahead) {
      if (shares.update(t, { channel, sharedAt }, { cursor, acked }) === 0) continue
      const [newest] = marks.query(t, 'WHERE channel = ? ORDER BY seq DESC LIMIT 1', [channel])
      if (first === undefined || (newest && now - newest.at < MARK_MS)) continue
      marks.replace(t, { channel, ...first, at: now })
      t.run('DELETE FROM network_nats_mark WHERE channel = ? AND at < ?', [channel, now - KEPT_MS])
    }
    this.#ahead.clear()
  }

  /** Tells others who of this daemon takes part, when that is not what they know. */
  async #announce({ channel, workspaceId, shownPeers, attempt }: ShareRow, line: Line): Promise<void> {
    const named = this.kernel.needs.network
      .localPeers(workspaceId, channel)
      .map(({ peerId, name }) => ({ peer_id: peerId, name }))
    const shown = JSON.stringify(named)
    if (shown === shownPeers) return
    const data = this.#signed({ protocol: PRESENCE, channel, peers: named }, attempt)
    await line.publish(line.subject(channel), data, this.kernel.ids.uuid())
    await this.kernel.db.tx(t => shares.update(t, { channel, workspaceId }, { shownPeers: shown }))
  }

  #signed(content: object, attempt: number): Uint8Array {
    const at = Math.floor(this.kernel.clock.now() / 1000)
    const whole = signed(content as Readonly<Record<string, unknown>>, this.identity, {
      realm: this.realm,
      at,
      attempt,
    })
    return Buffer.from(JSON.stringify(whole))
  }
}

/** What the server knows a message by: message and attempt, so that what is published anew is not dropped by its window. */
const messageId = ({ daemon }: Identity, { channel, attempt }: ShareRow, id: string): string =>
  `${daemon}:${channel}:${id}:${attempt}`
