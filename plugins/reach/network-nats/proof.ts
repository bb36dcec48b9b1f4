import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'
import { canonicalize } from './canonical.js'

/** The version of signatures; others are refused as `unsupported_profile`. */
export const PROOF = 'svc-proof/v1'

/** What stands before the 32 bytes of an Ed25519 key in DER, RFC 8410. */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex')
const PUBLIC = /^ed25519:([A-Za-z0-9+/]{43}=)$/

/** What a key is known by. */
export interface KeyName {
  /** `ed25519:` and 32 bytes in base64. */
  readonly publicKey: string
  /** `SHA256:` and base64, as people compare it. */
  readonly fingerprint: string
  /** The id of the daemon that has it: 16 hex digits, a token of subjects. */
  readonly daemon: string
}

/** A key of this daemon. */
export interface Identity extends KeyName {
  readonly secret: KeyObject
}

/** What a signature says beside the envelope. */
export interface Proof {
  readonly version: string
  readonly key: string
  /** Realm that it was signed for: an envelope of one realm proves nothing in another. */
  readonly realm: string
  /** Unix seconds of the signature. */
  readonly at: number
  /** How often the message was published anew because a stream was lost. */
  readonly attempt: number
  readonly signature: string
}

/** @returns undefined for a text that is no key */
export function keyNameOf(publicKey: string): KeyName | undefined {
  const [, base64 = ''] = PUBLIC.exec(publicKey) ?? []
  const bytes = Buffer.from(base64, 'base64')
  if (bytes.length !== 32 || bytes.toString('base64') !== base64) return undefined
  const digest = createHash('sha256').update(bytes).digest()
  return {
    publicKey,
    fingerprint: `SHA256:${digest.toString('base64').replace(/=+$/, '')}`,
    daemon: digest.toString('hex').slice(0, 16),
  }
}

/** A new private key, PKCS #8 in base64. */
export function newSecret(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')
}

/** @throws Error for a text that is no private key */
export function identityOf(secretText: string): Identity {
  const secret = createPrivateKey({ key: Buffer.from(secretText, 'base64'), format: 'der', type: 'pkcs8' })
  const spki = createPublicKey(secret).export({ format: 'der', type: 'spki' })
  const isEd25519 = spki.subarray(0, SPKI.length).equals(SPKI)
  const name = isEd25519 ? keyNameOf(`ed25519:${spki.subarray(SPKI.length).toString('base64')}`) : undefined
  if (!name) throw new Error('the key of the daemon is no Ed25519 key')
  return { ...name, secret }
}

type Signed = Readonly<Record<string, unknown>>

/** Adds a proof to what is sent. */
export function signed(
  content: Signed,
  identity: Identity,
  proof: Omit<Proof, 'version' | 'key' | 'signature'>,
): Signed {
  const unsigned = { version: PROOF, key: identity.fingerprint, ...proof }
  const text = canonicalize({ ...content, proof: unsigned })
  return {
    ...content,
    proof: { ...unsigned, signature: sign(null, Buffer.from(text), identity.secret).toString('base64') },
  }
}

/** Whether the signature of what was sent is that of the key. */
export function isSigned(content: Signed, proof: Proof, publicKey: string): boolean {
  const { signature, ...unsigned } = proof
  try {
    const key = keyOf(publicKey)
    const text = canonicalize({ ...content, proof: unsigned })
    return verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64'))
  } catch {
    // Nesting deeper than the stack, half surrogates: nothing that we would have signed.
    return false
  }
}

/** Keys as OpenSSL has them: to read one takes as long as to verify a signature. */
const keys = new Map<string, KeyObject>()
const MAX_KEYS = 1000

function keyOf(publicKey: string): KeyObject {
  const known = keys.get(publicKey)
  if (known) return known
  const bytes = Buffer.from(publicKey.slice('ed25519:'.length), 'base64')
  const key = createPublicKey({ key: Buffer.concat([SPKI, bytes]), format: 'der', type: 'spki' })
  if (keys.size >= MAX_KEYS) keys.clear()
  keys.set(publicKey, key)
  return key
}
