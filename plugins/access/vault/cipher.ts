import { createCipheriv, createDecipheriv, createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'

export const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const FORM = 'aes-gcm:'

/** A key with the fingerprint that records store for it. */
export interface VaultKey {
  /** 16 hex digits that reveal nothing about the key. */
  readonly id: string
  readonly secret: KeyObject
}

/** The reference and version that a value is bound to: it cannot be opened under others. */
export interface Bound {
  readonly ref: string
  readonly version: number
}

export function vaultKey(bytes: Buffer): VaultKey {
  const id = createHmac('sha256', bytes).update('fingerprint of a key of the vault').digest('hex').slice(0, 16)
  return { id, secret: createSecretKey(bytes) }
}

/** A new key: 32 random bytes in base64, the stored form of a key. */
export const newKeyText = (): string => randomBytes(KEY_BYTES).toString('base64')

/** A key in its stored form. */
export const textOfKey = ({ secret }: VaultKey): string => secret.export().toString('base64')

/** Parses a key in its stored form; undefined for any other text. */
export function keyOfText(text: string): VaultKey | undefined {
  const trimmed = text.trim()
  const bytes = Buffer.from(trimmed, 'base64')
  const isOne = bytes.length === KEY_BYTES && bytes.toString('base64').replace(/=+$/, '') === trimmed.replace(/=+$/, '')
  return isOne ? vaultKey(bytes) : undefined
}

/** Seals a value: `aes-gcm:` and base64 of nonce, ciphertext and tag. */
export function seal({ secret }: VaultKey, bound: Bound, value: string): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', secret, nonce)
  cipher.setAAD(associated(bound))
  const sealed = Buffer.concat([nonce, cipher.update(value, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return FORM + sealed.toString('base64')
}

/** Opens a sealed value; undefined if the value or its binding was modified. */
export function open({ secret }: VaultKey, bound: Bound, text: string): string | undefined {
  if (!text.startsWith(FORM)) return undefined
  const sealed = Buffer.from(text.slice(FORM.length), 'base64')
  if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined
  // Decoding ignores invalid characters and unused trailing bits, so the text must equal its canonical encoding.
  if (FORM + sealed.toString('base64') !== text) return undefined
  const cipher = createDecipheriv('aes-256-gcm', secret, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
  cipher.setAAD(associated(bound))
  cipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  try {
    return cipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + cipher.final('utf8')
  } catch {
    return undefined
  }
}

/** A reference contains no line break, so different pairs have different texts. */
const associated = ({ ref, version }: Bound): Buffer => Buffer.from(`${ref}\n${version}`)
