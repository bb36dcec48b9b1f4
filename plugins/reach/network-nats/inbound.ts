import { clip, parseJson } from '../../../kernel/kit/text.js'
import { messageOf, type Tx } from '../../../kernel/plugin.js'
import type { Refusal, RemoteEnvelope, RemotePeer } from '../network/api.js'
import type { K } from './needs.js'
import { type Identity, isSigned, PROOF, type Proof } from './proof.js'
import { noteRefusal } from './refusing.js'
import { type PeerRow, peers, type ShareRow } from './tables.js'

/** Type of the messages that announce a daemon's peers in a channel. */
export const PRESENCE = 'svc-presence/v1'
/** Bytes of an envelope, plus those of its proof. */
export const MAX_BYTES = 1024 * 1024 + 1024
const MAX_PEERS = 1000
const PEER = /^[a-z0-9][a-z0-9._-]{0,127}$/
const ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/
/** Reasons to refuse an envelope whose peer has not been announced yet. */
const PASSING: ReadonlySet<string> = new Set(['not_found', 'busy'])

/** A message delivered by the server. */
export interface Delivered {
  /** The daemon in the subject; servers can limit each daemon to its own. */
  readonly daemon: string
  /** Whether it came by this daemon's own subject, as in direct rooms, instead of the shared subject of the channel. */
  readonly isDirect: boolean
  readonly data: Uint8Array
  /** Unique name of the message on the server. */
  readonly messageId: string
  /** Time of storage, epoch milliseconds of the server's clock. */
  readonly storedAt: number
  /** Whether this is the last delivery attempt. */
  readonly isLast: boolean
}

/** Outcome of a message: it is settled, or has to be delivered again. */
export type Outcome = 'stored' | 'own' | 'duplicate' | 'refused' | 'again'

type Judged =
  | {
      readonly state: 'ok'
      readonly content: Readonly<Record<string, unknown>>
      readonly proof: Proof
      readonly peer: PeerRow
    }
  | { readonly state: 'own' }
  | { readonly state: 'refused'; readonly peer: string; readonly refusal: Refusal }

/** Thrown to roll back the transaction of a message that will be delivered again. */
class AgainError extends Error {}

/** Precision in milliseconds of a peer's last contact and clock offset. */
const HEARD_MS = 1000
/** Limits for own messages that may be delivered back: their number and the bytes kept for comparison. */
const EXPECTED = { most: 1024, bytes: 16 * 1024 }

/** Validates and stores messages of other daemons. */
export class Inbound {
  /** Own clock minus the server's, known after an own message was delivered back. */
  #offset = 0
  /** Published messages that were not delivered back yet: for equal bytes the signature need not be verified. */
  readonly #expected = new Map<string, { readonly data: Uint8Array; readonly at: number }>()

  /** The newest stored state of each peer. */
  readonly #heard = new Map<string, { readonly seenAt: number; readonly skewMs: number }>()

  constructor(
    private readonly kernel: K,
    private readonly identity: Identity,
    private readonly realm: string,
  ) {}

  /** Registers an own message before its publication; the server will deliver it here as well. */
  expect(messageId: string, data: Uint8Array): void {
    if (data.length > EXPECTED.bytes) return
    const [oldest] = this.#expected.keys()
    if (oldest !== undefined && this.#expected.size >= EXPECTED.most) this.#expected.delete(oldest)
    this.#expected.set(messageId, { data, at: this.kernel.clock.now() })
  }

  /**
   * Validates messages and stores them in order in one transaction; resolves when the outcomes are durable.
   * @param along writes further data in the same transaction
   * @throws the error of the store; the messages are to be delivered again
   */
  async take(
    share: ShareRow,
    messages: readonly Delivered[],
    along: (t: Tx, outcomes: readonly Outcome[]) => void,
  ): Promise<readonly Outcome[]> {
    const { db } = this.kernel
    const known = new Map<string, PeerRow | undefined>()
    const peerOf = (daemon: string) => {
      if (!known.has(daemon)) known.set(daemon, peers.get(db, { daemon }))
      return known.get(daemon)
    }
    const judged = messages.map(message => ({ message, verdict: this.#judge(share, message, peerOf) }))
    if (judged.every(({ verdict }) => verdict.state === 'own')) return judged.map(() => 'own')
    try {
      return await db.tx(t => {
        const outcomes = judged.map(({ message, verdict }) => this.#store(t, share, message, verdict))
        this.#recordContact(t, judged)
        along(t, outcomes)
        return outcomes
      })
    } catch (error) {
      if (!isSingle(error)) throw error
    }
    // If one of them must leave no trace, each gets its own transaction.
    const outcomes = await Promise.all(
      judged.map(async ({ message, verdict }) => {
        try {
          return await db.tx(t => {
            const outcome = this.#store(t, share, message, verdict)
            this.#recordContact(t, [{ message, verdict }])
            return outcome
          })
        } catch (error) {
          if (error instanceof AgainError) return 'again'
          if (!isSingle(error) || verdict.state !== 'ok') throw error
          return this.#refuse(verdict.peer.name, share.channel, { reason: 'not_found', message: messageOf(error) })
        }
      }),
    )
    await db.tx(t => along(t, outcomes))
    return outcomes
  }

  /** Stores the outcome of one message. @throws AgainError, Fault `channel_not_found` */
  #store(t: Tx, share: ShareRow, message: Delivered, verdict: Judged): Outcome {
    if (verdict.state === 'own') return 'own'
    if (verdict.state === 'refused') {
      this.#note(t, verdict.peer, share.channel, verdict.refusal)
      return 'refused'
    }
    const { content, proof, peer } = verdict
    const { network } = this.kernel.needs
    if (content.protocol === PRESENCE) {
      network.remotePeers(t, share.workspaceId, share.channel, peer.name, peersOf(content))
      return 'stored'
    }
    const { id, expires_at: expires } = content as unknown as RemoteEnvelope & { expires_at: number }
    const sql = 'INSERT OR IGNORE INTO network_nats_seen (daemon, channel, id, expires_at) VALUES (?, ?, ?, ?)'
    if (t.run(sql, [peer.daemon, share.channel, id, expires * 1000]).changes === 0) return 'duplicate'
    const { proof: _, ...envelope } = content as unknown as RemoteEnvelope
    const result = network.receive(t, share.workspaceId, { ...envelope, proof: { ...proof } }, peer.name)
    if (typeof result === 'string') return result
    if (PASSING.has(result.reason) && !message.isLast) throw new AgainError()
    this.#note(t, peer.name, share.channel, result)
    return 'refused'
  }

  /** Records the last contact with daemons and the offsets of their clocks. */
  #recordContact(t: Tx, judged: readonly { readonly message: Delivered; readonly verdict: Judged }[]): void {
    const skews = new Map<string, number>()
    for (const { message, verdict } of judged)
      if (verdict.state === 'ok') skews.set(verdict.peer.name, verdict.proof.at * 1000 - message.storedAt)
    const seenAt = this.kernel.clock.now()
    for (const [name, offset] of skews) {
      const skewMs = offset - this.#offset
      const known = this.#heard.get(name)
      // A row per message would dominate the writes, so it is written at most once a second.
      if (known && seenAt - known.seenAt < HEARD_MS && Math.abs(skewMs - known.skewMs) < HEARD_MS) continue
      this.kernel.db.onDurable(t, () => this.#heard.set(name, { seenAt, skewMs }))
      peers.update(t, { name }, { seenAt, skewMs })
    }
  }

  async #refuse(peer: string, channel: string, refusal: Refusal): Promise<'refused'> {
    await this.kernel.db.tx(t => this.#note(t, peer, channel, refusal))
    return 'refused'
  }

  #note(t: Tx, peer: string, channel: string, refusal: Refusal): void {
    noteRefusal(this.kernel, t, peer, channel, refusal)
  }

  /** Records the refusal of an own message that no server would accept. */
  refuseOwn(channel: string, refusal: Refusal): Promise<'refused'> {
    return this.#refuse('self', channel, refusal)
  }

  #judge(
    share: ShareRow,
    { daemon, isDirect, data, messageId, storedAt }: Delivered,
    peerOf: (daemon: string) => PeerRow | undefined,
  ): Judged {
    const expected = this.#expected.get(messageId)
    if (expected && daemon === this.identity.daemon && Buffer.compare(expected.data, data) === 0) {
      this.#expected.delete(messageId)
      this.#offset = expected.at - storedAt
      return { state: 'own' }
    }
    const { channel } = share
    const named = peerOf(daemon)
    const peer = named?.name ?? daemon
    const refused = (reason: Refusal['reason'], message: string): Judged => ({
      state: 'refused',
      peer,
      refusal: { reason, message },
    })
    if (data.length > MAX_BYTES)
      return refused('malformed', `it has ${data.length} bytes, and ${MAX_BYTES} are allowed`)
    const content = parsed(data)
    if (!content) return refused('malformed', 'it is not a JSON object')
    const { proof } = content
    if (!isProof(proof)) return refused('verification_failed', 'it has no signature')
    if (proof.version !== PROOF) return refused('unsupported_profile', `proof.version: expected ${PROOF}`)
    const isOwn = proof.key === this.identity.fingerprint
    if (!isOwn && (!named || named.fingerprint !== proof.key))
      return refused('verification_failed', `the key ${clip(proof.key, 60)} does not belong to a peer`)
    if (named?.revokedAt !== undefined) return refused('verification_failed', `the key of ${peer} is revoked`)
    const key = isOwn ? this.identity.publicKey : (named?.publicKey as string)
    const isElsewhere = content.channel !== channel || (content.surface === 'direct') !== isDirect
    if (proof.realm !== this.realm || isElsewhere || (isOwn && daemon !== this.identity.daemon))
      return refused('verification_failed', 'it was signed for another subject')
    if (!isSigned(content, proof, key)) return refused('verification_failed', 'the signature does not match its key')
    const isPresence = content.protocol === PRESENCE
    const { id, expires_at: expires } = content
    if (!isPresence && (typeof id !== 'string' || !ID.test(id) || !Number.isSafeInteger(expires)))
      return refused('malformed', 'id or expires_at: not valid')
    const isOver = !isPresence && (expires as number) * 1000 <= this.kernel.clock.now()
    if (isOwn) {
      this.#offset = proof.at * 1000 - storedAt
      if (isPresence || isOver || this.kernel.needs.network.isSent(share.workspaceId, channel, `${id}`))
        return { state: 'own' }
      const message = `it contains ${id}, signed with the key of this daemon but not sent by it: another daemon uses the key, or this home was restored`
      return { state: 'refused', peer: 'self', refusal: { reason: 'verification_failed', message } }
    }
    if (isOver) return refused('expired', 'it expired before it arrived')
    return { state: 'ok', content, proof, peer: named as PeerRow }
  }
}

/** Whether an error concerns a single message rather than the store. */
const isSingle = (error: unknown): boolean => error instanceof AgainError || isGone(error)

const isGone = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && (error as { readonly code?: unknown }).code === 'channel_not_found'

/** @returns undefined unless it is a JSON object */
export function parsed(data: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(data))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined
  } catch {
    return undefined
  }
}

/** Whether a value has the form of a proof. */
export function isProof(value: unknown): value is Proof {
  if (typeof value !== 'object' || value === null) return false
  const { version, key, realm, at, attempt, signature } = value as Readonly<Record<string, unknown>>
  const texts = [version, key, realm, signature].every(text => typeof text === 'string' && text.length <= 256)
  return texts && Number.isSafeInteger(at) && Number.isSafeInteger(attempt)
}

/** Valid peers of an announcement; others are left out. */
function peersOf({ peers: named }: Readonly<Record<string, unknown>>): RemotePeer[] {
  if (!Array.isArray(named)) return []
  return named.slice(0, MAX_PEERS).flatMap((one: { readonly peer_id?: unknown; readonly name?: unknown } | null) => {
    const { peer_id: peerId, name } = one ?? {}
    if (typeof peerId !== 'string' || !PEER.test(peerId)) return []
    return [{ peerId, name: typeof name === 'string' ? clip(name, 200) : peerId }]
  })
}
