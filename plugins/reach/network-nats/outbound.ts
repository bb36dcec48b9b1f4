import type { OutgoingMessage } from '../network/api.js'
import type { Inbound } from './inbound.js'
import { PRESENCE } from './inbound.js'
import type { K } from './needs.js'
import { type Identity, signed } from './proof.js'
import { marks, peers, type ShareRow, seen, shares } from './tables.js'

/** How long an envelope is valid that does not say so itself, in seconds. */
const VALID_S = 24 * 60 * 60
/** How long the stream keeps messages. */
export const KEPT_MS = 7 * 24 * 60 * 60_000
const BATCH = 64
const MARK_MS = 10 * 60_000

/** Stores one message at the server; resolves when the server has acknowledged it. */
export type Publish = (
  subject: string,
  data: Uint8Array,
  id: string,
) => Promise<{ readonly seq: number; readonly duplicate: boolean }>

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

/** Publishes what sessions of this daemon said in shared channels, in the order of commits. */
export class Outbound {
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

  /** Publishes all that waits. @returns false when an acknowledgement says that the stream begins anew */
  async flush(channel: string, line: Line): Promise<boolean> {
    for (;;) {
      const share = shares.get(this.kernel.db, { channel })
      if (!share) return true
      await this.#announce(share, line)
      const batch = this.kernel.needs.network.sent(share.workspaceId, channel, share.cursor, BATCH)
      if (batch.length === 0) return true
      if (!(await this.#publish(share, batch, line))) return false
    }
  }

  async #publish(share: ShareRow, batch: readonly OutgoingMessage[], line: Line): Promise<boolean> {
    const { db, clock } = this.kernel
    const { channel, attempt } = share
    const out: {
      readonly id: string
      readonly expiresAt: number
      readonly data: Uint8Array
      readonly subject: string
    }[] = []
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
      // A header of the server's counts as well.
      const size = data.length + messageId(this.identity, share, envelope.id).length + 64
      if (size > line.limit) {
        const message = `${envelope.id} has ${size} bytes with its headers, and the server takes ${line.limit}`
        await this.inbound.refuseOwn(channel, { reason: 'malformed', message })
        continue
      }
      out.push({ id: envelope.id, expiresAt: expires * 1000, data, subject: line.subject(channel, receiver?.daemon) })
    }
    if (out.length > 0)
      await db.tx(t => {
        for (const { id, expiresAt } of out) seen.replace(t, { daemon: this.identity.daemon, channel, id, expiresAt })
      })
    const published = await Promise.allSettled(
      out.map(({ id, data, subject }) => line.publish(subject, data, messageId(this.identity, share, id))),
    )
    const acks = published.map(one => {
      if (one.status === 'rejected') throw one.reason
      return one.value
    })
    const fresh = acks.filter(({ duplicate }) => !duplicate).map(({ seq }) => seq)
    const lowest = Math.min(...fresh)
    if (fresh.length > 0 && lowest <= share.acked) return false
    await db.tx(t => {
      const acked = Math.max(share.acked, ...acks.map(({ seq }) => seq))
      shares.update(t, { channel, sharedAt: share.sharedAt }, { cursor: batch.at(-1)?.seq ?? share.cursor, acked })
      const first = acks[0]?.seq
      const [newest] = marks.query(t, 'WHERE channel = ? ORDER BY seq DESC LIMIT 1', [channel])
      if (first === undefined || (newest && now - newest.at < MARK_MS)) return
      marks.replace(t, { channel, seq: share.cursor, streamSeq: first, at: now })
      t.run('DELETE FROM network_nats_mark WHERE channel = ? AND at < ?', [channel, now - KEPT_MS])
    })
    return true
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
    // Members that are undefined are in no JSON.
    const plain = JSON.parse(JSON.stringify(content))
    return Buffer.from(JSON.stringify(signed(plain, this.identity, { realm: this.realm, at, attempt })))
  }
}

/** What the server knows a message by: message and attempt, so that what is published anew is not dropped by its window. */
const messageId = ({ daemon }: Identity, { channel, attempt }: ShareRow, id: string): string =>
  `${daemon}:${channel}:${id}:${attempt}`
