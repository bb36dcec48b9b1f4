import { messageOf, type Tx } from '../../../kernel/plugin.js'
import type { OutgoingMessage } from '../network/api.js'
import type { Inbound } from './inbound.js'
import { PRESENCE } from './inbound.js'
import type { K } from './needs.js'
import { type Identity, signed } from './proof.js'
import { marks, peers, type ShareRow, shares } from './tables.js'

/** Seconds for which an envelope without its own expiry is valid. */
const VALID_S = 24 * 60 * 60
/** Milliseconds for which the stream keeps messages. */
export const KEPT_MS = 7 * 24 * 60 * 60_000
const BATCH = 64
/** Batches published before the first one is acknowledged. */
const BATCHES = 4
/** Milliseconds between two writes of the published position, one row for all messages in between. */
const SAVE_MS = 100
const MARK_MS = 10 * 60_000

/** The server's acknowledgement of a stored message. */
interface Ack {
  readonly seq: number
  readonly duplicate: boolean
}

/** Stores one message on the server; resolves with the acknowledgement. */
export type Publish = (subject: string, data: Uint8Array, id: string) => Promise<Ack>

/** Functions and limits of a connection. */
export interface Line {
  readonly publish: Publish
  /** Maximum bytes of a message on the server. */
  readonly limit: number
  /** @param only the receiving daemon; absent: all that share the channel */
  readonly subject: (channel: string, only?: string) => string
}

/** State of a stream. */
export interface StreamView {
  readonly created: string
  readonly firstSeq: number
  readonly lastSeq: number
  /** Whether it loses old messages only by age. */
  readonly isWhole: boolean
}

/** Published messages of a channel beyond its stored position. */
interface Ahead {
  readonly sharedAt: number
  /** Position in commit order. */
  readonly cursor: number
  readonly acked: number
  /** Stream position of the first message after the stored cursor. */
  readonly first?: { readonly seq: number; readonly streamSeq: number } | undefined
}

/** A message ready for publication. */
interface Outgoing {
  readonly id: string
  readonly data: Uint8Array
  readonly subject: string
}

/** Publishes the messages of this daemon's sessions in shared channels, in commit order. */
export class Outbound {
  /**
   * Positions by channel. A row is written only now and then: a restarted daemon republishes the messages since then
   * with the same ids, which the server and the receivers recognize.
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
   * Compares a stream with its acknowledgements. A recreated stream, or one that lost messages before their age, gets
   * the possibly lost messages again; receivers drop known ones.
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

  /**
   * Publishes all waiting messages; batches are sent before earlier ones are acknowledged. @returns false if an
   * acknowledgement shows that the stream was recreated
   */
  async flush(channel: string, line: Line): Promise<boolean> {
    const { db, needs } = this.kernel
    const row = shares.get(db, { channel })
    if (!row) return true
    await this.#announce(row, line)
    const share = this.#current(row)
    /** Unacknowledged batches, oldest first; each settles after the one before it. */
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
        // The result is awaited below; until then a rejection must not be unhandled.
        settled.catch(() => {})
        underWay.push(settled)
        if (underWay.length >= BATCHES && !(await underWay.shift())) return false
      }
      return (await Promise.all(underWay)).every(Boolean)
    } finally {
      await Promise.allSettled(underWay)
    }
  }

  /** Stores the published positions. */
  async save(): Promise<void> {
    this.#saving?.cancel()
    this.#saving = undefined
    if (this.#ahead.size > 0) await this.kernel.db.tx(t => this.#write(t))
  }

  /** A share with its current position. */
  #current(row: ShareRow): ShareRow {
    const ahead = this.#ahead.get(row.channel)
    return ahead?.sharedAt === row.sharedAt ? { ...row, cursor: ahead.cursor, acked: ahead.acked } : row
  }

  /** The signed messages of a batch. Messages that no server would accept are refused. */
  async #prepared(share: ShareRow, batch: readonly OutgoingMessage[], line: Line): Promise<Outgoing[]> {
    const { db, clock } = this.kernel
    const { channel, attempt } = share
    const out: Outgoing[] = []
    const now = clock.now()
    for (const { envelope, only } of batch) {
      // A direct room within this daemon concerns no others.
      if (only === null) continue
      const receiver = only === undefined ? undefined : peers.get(db, { name: only, revokedAt: null })
      if (only !== undefined && !receiver) {
        await this.inbound.refuseOwn(channel, {
          reason: 'not_found',
          message: `${envelope.id}: ${only} is not a trusted daemon`,
        })
        continue
      }
      const expires = envelope.expires_at ?? envelope.ts + VALID_S
      if (expires * 1000 <= now) continue
      const data = this.#signed({ ...envelope, expires_at: expires }, attempt)
      const id = messageId(this.identity, share, envelope.id)
      // The server's headers count as well.
      const size = data.length + id.length + 64
      if (size > line.limit) {
        const message = `${envelope.id} has ${size} bytes with its headers, and the server takes ${line.limit}`
        await this.inbound.refuseOwn(channel, { reason: 'malformed', message })
        continue
      }
      out.push({ id, data, subject: line.subject(channel, receiver?.daemon) })
    }
    // Messages must be durable here before others get them.
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

  /** Records that the server stored a batch. @returns false if the stream was recreated */
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
      this.save().catch(error =>
        this.kernel.log.warn('published messages could not be recorded', { error: messageOf(error) }),
      )
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

  /** Announces this daemon's peers in a channel if they changed. */
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

/** Message id on the server, from message and attempt, so that a republished message is not dropped as a duplicate. */
const messageId = ({ daemon }: Identity, { channel, attempt }: ShareRow, id: string): string =>
  `${daemon}:${channel}:${id}:${attempt}`
