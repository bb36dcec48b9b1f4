import * as v from 'valibot'
import { clip } from '../../../../kernel/kit/text.js'
import type { Reads } from '../../../../kernel/plugin.js'
import { Integer } from '../../../../schemas/kernel/common.js'
import type { Refusal } from '../../network/api.js'
import { isProof, parsed } from '../inbound.js'
import { type Identity, isSigned, PROOF, signed } from '../proof.js'
import { type PeerRow, peers } from '../tables.js'

/** Bytes of a message about offers: a brief or result of 64 KiB, up to six times as long in JSON, plus the signature. */
const MAX_BYTES = 448 * 1024
const OfferId = v.pipe(v.string(), v.regex(/^offer_[0-9a-f]{16}$/))
const Daemon = v.pipe(v.string(), v.regex(/^[0-9a-f]{16}$/))
const attempt = v.pipe(Integer, v.minValue(1), v.maxValue(1_000_000))
const number = v.pipe(Integer, v.minValue(1))
const about = { offer: OfferId, attempt, to: Daemon, number }
const MAX_TEXT = 64 * 1024

/** Messages between daemons about offers. */
const Contents = {
  /** In the stream, for all daemons of the realm. */
  'svc-offer/v1': v.object({
    protocol: v.literal('svc-offer/v1'),
    offer: OfferId,
    attempt,
    title: v.pipe(v.string(), v.minLength(1), v.maxLength(500)),
    brief: v.pipe(v.string(), v.maxLength(MAX_TEXT)),
    expires_at: Integer,
  }),
  /** From a worker to the origin. The first `working` requests the attempt. */
  'svc-offer-receipt/v1': v.object({
    protocol: v.literal('svc-offer-receipt/v1'),
    ...about,
    status: v.picklist(['working', 'completed', 'failed']),
    result: v.optional(v.unknown()),
    error: v.optional(v.pipe(v.string(), v.maxLength(MAX_TEXT))),
  }),
  /** From the origin to a worker, with the number of the receipt. */
  'svc-offer-answer/v1': v.object({
    protocol: v.literal('svc-offer-answer/v1'),
    ...about,
    answer: v.picklist(['held', 'busy', 'done', 'closed']),
    lease_ms: v.optional(v.pipe(Integer, v.minValue(1), v.maxValue(24 * 60 * 60_000))),
    message: v.optional(v.pipe(v.string(), v.maxLength(1000))),
  }),
} as const
export type Protocol = keyof typeof Contents
export type Content<P extends Protocol> = v.InferOutput<(typeof Contents)[P]>
export type OfferContent = Content<'svc-offer/v1'>
export type Receipt = Content<'svc-offer-receipt/v1'>
export type Answer = Content<'svc-offer-answer/v1'>

/** The key and realm of a signature. */
export interface Signer {
  readonly identity: Identity
  readonly realm: string
}

/** Bytes of a signed message. @param now epoch milliseconds */
export function sealed({ identity, realm }: Signer, content: OfferContent | Receipt | Answer, now: number): Uint8Array {
  // Serialized first, to drop undefined members.
  const plain = JSON.parse(JSON.stringify(content))
  return Buffer.from(JSON.stringify(signed(plain, identity, { realm, at: Math.floor(now / 1000), attempt: 0 })))
}

/** Result of checking a received message. */
export type Opened<P extends Protocol> =
  | { readonly state: 'ok'; readonly content: Content<P>; readonly peer: PeerRow }
  /** Signed with this daemon's key. */
  | { readonly state: 'own' }
  /** `stranger`: the key is unknown here, but other daemons may know it. */
  | { readonly state: 'refused' | 'stranger'; readonly peer: string; readonly refusal: Refusal }

/** Checks a received message: its size, key, signature, receiver and format, in this order. */
export function opened<P extends Protocol>(
  reads: Reads,
  { identity, realm }: Signer,
  protocols: readonly P[],
  daemon: string,
  data: Uint8Array,
): Opened<P> {
  const named = peers.get(reads, { daemon })
  const peer = named?.name ?? clip(daemon, 64)
  const refused = (reason: Refusal['reason'], message: string, state: 'refused' | 'stranger' = 'refused') => ({
    ...{ state, peer },
    refusal: { reason, message },
  })
  if (data.length > MAX_BYTES) return refused('malformed', `it has ${data.length} bytes, and ${MAX_BYTES} are allowed`)
  const content = parsed(data)
  if (!content) return refused('malformed', 'it is not a JSON object')
  const { proof } = content
  if (!isProof(proof)) return refused('verification_failed', 'it has no signature')
  if (proof.version !== PROOF) return refused('unsupported_profile', `proof.version: expected ${PROOF}`)
  if (daemon === identity.daemon && proof.key === identity.fingerprint) return { state: 'own' }
  if (!named || named.fingerprint !== proof.key)
    return refused('verification_failed', `the key ${clip(proof.key, 60)} does not belong to a peer`, 'stranger')
  if (named.revokedAt !== undefined) return refused('verification_failed', `the key of ${peer} is revoked`, 'stranger')
  if (proof.realm !== realm) return refused('verification_failed', 'it was signed for another subject')
  if (!isSigned(content, proof, named.publicKey))
    return refused('verification_failed', 'the signature does not match its key')
  const { protocol } = content
  if (!protocols.includes(protocol as P))
    return refused('unsupported_profile', `protocol: expected ${protocols.join(', ')}`)
  const read = v.safeParse(Contents[protocol as P], content)
  if (!read.success) return refused('malformed', `${v.getDotPath(read.issues[0]) ?? 'envelope'}: not valid`)
  const known = read.output as Content<P>
  if ('to' in known && known.to !== identity.daemon) return refused('not_target', 'it is for another daemon')
  return { state: 'ok', content: known, peer: named }
}
