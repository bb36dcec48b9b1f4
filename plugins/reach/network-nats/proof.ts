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

/** Version of signatures; others are refused as `unsupported_profile`. */
export const PROOF = 'svc-proof/v1'

/** DER prefix of a 32-byte Ed25519 public key, RFC 8410. */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex')
const PUBLIC = /^ed25519:([A-Za-z0-9+/]{43}=)$/

/** Names of a key. */
export interface KeyName {
  /** `ed25519:` and 32 bytes in base64. */
  readonly publicKey: string
  /** `SHA256:` and base64, for comparison by people. */
  readonly fingerprint: string
  /** Id of its daemon: 16 hex digits, used in subjects. */
  readonly daemon: string
}

/** A key of this daemon. */
export interface Identity extends KeyName {
  readonly secret: KeyObject
}

/** Members of a signature. */
export interface Proof {
  readonly version: string
  readonly key: string
  /** Realm of the signature: an envelope of one realm is not valid in another. */
  readonly realm: string
  /** Unix seconds of the signature. */
  readonly at: number
  /** Number of republications after a lost stream. */
  readonly attempt: number
  readonly signature: string
}

/** @returns undefined if the text is not a key */
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

/** @throws Error if the text is not a private key */
export function identityOf(secretText: string): Identity {
  const secret = createPrivateKey({ key: Buffer.from(secretText, 'base64'), format: 'der', type: 'pkcs8' })
  const spki = createPublicKey(secret).export({ format: 'der', type: 'spki' })
  const isEd25519 = spki.subarray(0, SPKI.length).equals(SPKI)
  const name = isEd25519 ? keyNameOf(`ed25519:${spki.subarray(SPKI.length).toString('base64')}`) : undefined
  if (!name) throw new Error('the key of the daemon is not an Ed25519 key')
  return { ...name, secret }
}

type Signed = Readonly<Record<string, unknown>>

/** Adds a proof to a message. */
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

/** Verifies the signature of a message with a key. */
export function isSigned(content: Signed, proof: Proof, publicKey: string): boolean {
  const { signature, ...unsigned } = proof
  try {
    const key = keyOf(publicKey)
    const text = canonicalize({ ...content, proof: unsigned })
    return verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64'))
  } catch {
    // Unserializable content, for example too deeply nested, cannot have a valid signature.
    return false
  }
}

/** Cached OpenSSL keys: parsing one takes as long as verifying a signature. */
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
