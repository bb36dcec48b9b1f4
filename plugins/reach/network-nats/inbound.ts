import { parseJson } from '../../../kernel/kit/json.js'
import { messageOf, type Tx } from '../../../kernel/plugin.js'
import type { Refusal, RemoteEnvelope, RemotePeer } from '../network/api.js'
import type { K } from './needs.js'
import { type Identity, isSigned, PROOF, type Proof } from './proof.js'
import { noteRefusal } from './refusing.js'
import { type PeerRow, peers, type ShareRow, seen } from './tables.js'

/** What announces the peers of a daemon in a channel. */
export const PRESENCE = 'svc-presence/v1'
/** Bytes of an envelope; those of the proof come on top. */
export const MAX_BYTES = 1024 * 1024 + 1024
const MAX_PEERS = 1000
const PEER = /^[a-z0-9][a-z0-9._-]{0,127}$/
const ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/
/** What an envelope is refused for when the peer that it names has not been announced yet. */
const PASSING: ReadonlySet<string> = new Set(['not_found', 'busy'])

/** A message as a server delivers it. */
export interface Delivered {
  /** The daemon that the subject names; servers can hold each daemon to its own. */
  readonly daemon: string
  /** It came by the subject of this daemon, as messages of direct rooms do, and not by that of all who share the channel. */
  readonly isDirect: boolean
  readonly data: Uint8Array
  /** When the server stored it, epoch milliseconds by its clock. */
  readonly storedAt: number
  /** The server will deliver it no more often. */
  readonly isLast: boolean
}

/** What becomes of a message: it is done with, or is to be delivered again. */
export type Outcome = 'stored' | 'own' | 'duplicate' | 'refused' | 'again'

type Judged =
  | {
      readonly state: 'ok'
      readonly content: Readonly<Record<string, unknown>>
      readonly proof: Proof
      readonly peer?: PeerRow
    }
  | { readonly state: 'refused'; readonly peer: string; readonly refusal: Refusal }

/** Thrown inside of a transaction, so that nothing of a message is kept that will come again. */
class AgainError extends Error {}

/** Judges and stores what other daemons sent. */
export class Inbound {
  /** Our clock less that of the server, known when something of ours came back. */
  #offset = 0

  constructor(
    private readonly kernel: K,
    private readonly identity: Identity,
    private readonly realm: string,
  ) {}

  /** Resolves when what becomes of a message is durable. @throws the error of the store; the message is to be delivered again */
  async take(share: ShareRow, message: Delivered): Promise<Outcome> {
    const { db, clock } = this.kernel
    const judged = this.#judge(share, message)
    if (judged.state === 'refused') return this.#refuse(judged.peer, share.channel, judged.refusal)
    const { content, proof, peer } = judged
    const offset = proof.at * 1000 - message.storedAt
    if (!peer) return this.#own(share, content, offset)
    const now = clock.now()
    try {
      return await db.tx(t => {
        peers.update(t, { name: peer.name }, { seenAt: now, skewMs: offset - this.#offset })
        if (content.protocol === PRESENCE) {
          this.kernel.needs.network.remotePeers(t, share.workspaceId, share.channel, peer.name, peersOf(content))
          return 'stored'
        }
        const { id, expires_at: expires } = content as unknown as RemoteEnvelope & { expires_at: number }
        const sql = 'INSERT OR IGNORE INTO network_nats_seen (daemon, channel, id, expires_at) VALUES (?, ?, ?, ?)'
        if (t.run(sql, [peer.daemon, share.channel, id, expires * 1000]).changes === 0) return 'duplicate'
        const { proof: _, ...envelope } = content as unknown as RemoteEnvelope
        const result = this.kernel.needs.network.receive(
          t,
          share.workspaceId,
          { ...envelope, proof: { ...proof } },
          peer.name,
        )
        if (typeof result === 'string') return result
        if (PASSING.has(result.reason) && !message.isLast) throw new AgainError()
        this.#note(t, peer.name, share.channel, result)
        return 'refused'
      })
    } catch (error) {
      if (error instanceof AgainError) return 'again'
      if (!isGone(error)) throw error
      return this.#refuse(peer.name, share.channel, { reason: 'not_found', message: messageOf(error) })
    }
  }

  async #refuse(peer: string, channel: string, refusal: Refusal): Promise<'refused'> {
    await this.kernel.db.tx(t => this.#note(t, peer, channel, refusal))
    return 'refused'
  }

  #note(t: Tx, peer: string, channel: string, refusal: Refusal): void {
    noteRefusal(this.kernel, t, peer, channel, refusal)
  }

  /** Refuses something of ours that no server would take. */
  refuseOwn(channel: string, refusal: Refusal): Promise<'refused'> {
    return this.#refuse('self', channel, refusal)
  }

  #judge({ channel }: ShareRow, { daemon, isDirect, data }: Delivered): Judged {
    const named = peers.get(this.kernel.db, { daemon })
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
      return refused('verification_failed', `the key ${proof.key.slice(0, 60)} is not that of a peer`)
    if (named?.revokedAt !== undefined) return refused('verification_failed', `the key of ${peer} is revoked`)
    const key = isOwn ? this.identity.publicKey : (named?.publicKey as string)
    const isElsewhere = content.channel !== channel || (content.surface === 'direct') !== isDirect
    if (proof.realm !== this.realm || isElsewhere || (isOwn && daemon !== this.identity.daemon))
      return refused('verification_failed', 'it was signed for another place')
    if (!isSigned(content, proof, key)) return refused('verification_failed', 'the signature is not that of its key')
    const ok: Judged = { state: 'ok', content, proof, ...(!isOwn && named && { peer: named }) }
    if (content.protocol === PRESENCE) return ok
    const { id, expires_at: expires } = content
    if (typeof id !== 'string' || !ID.test(id) || !Number.isSafeInteger(expires))
      return refused('malformed', 'id or expires_at: not valid')
    if (!isOwn && (expires as number) * 1000 <= this.kernel.clock.now())
      return refused('expired', 'it expired before it arrived')
    return ok
  }

  /** Something that our own key signed: what we sent, else another daemon has our key. */
  async #own({ channel }: ShareRow, content: Readonly<Record<string, unknown>>, offset: number): Promise<Outcome> {
    this.#offset = offset
    if (content.protocol === PRESENCE) return 'own'
    const { db, clock } = this.kernel
    const { id, expires_at: expires } = content as { readonly id: string; readonly expires_at: number }
    if (expires * 1000 <= clock.now() || seen.get(db, { daemon: this.identity.daemon, channel, id })) return 'own'
    const message = `it signed ${id}, which this daemon did not send: another daemon has the key, or this home was restored`
    return this.#refuse('self', channel, { reason: 'verification_failed', message })
  }
}

const isGone = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && (error as { readonly code?: unknown }).code === 'channel_not_found'

/** @returns undefined for what is no JSON object */
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

/** Peers that an announcement names; others of it are left out. */
function peersOf({ peers: named }: Readonly<Record<string, unknown>>): RemotePeer[] {
  if (!Array.isArray(named)) return []
  return named.slice(0, MAX_PEERS).flatMap((one: { readonly peer_id?: unknown; readonly name?: unknown } | null) => {
    const { peer_id: peerId, name } = one ?? {}
    if (typeof peerId !== 'string' || !PEER.test(peerId)) return []
    return [{ peerId, name: typeof name === 'string' ? name.slice(0, 200) : peerId }]
  })
}
