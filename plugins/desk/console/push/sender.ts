import { createECDH, createHash } from 'node:crypto'
import type { Clock } from '../../../../kernel/plugin.js'
import { DownloadError, type DownloadReply, exchange } from '../../../delivery/extensions/api.js'
import type { PushPayload } from './message.js'
import type { SubscriptionRow } from './subscriptions.js'

/**
 * A placeholder for an address that the operator named. A browser names the push service's address, so private addresses are
 * refused.
 */
const NAMED = new URL('https://push-service.invalid')
const MOST_REPLY_BYTES = 64 * 1024
const TIMEOUT_MS = 10_000
/** Seconds for which the push service keeps a message for an offline browser. */
const TTL_S = 4 * 3600

/** The key pair that identifies this daemon to the push service, base64url. */
export interface ServerKey {
  readonly publicKey: string
  readonly privateKey: string
}

const pairOf = (ecdh: ReturnType<typeof createECDH>, privateKey: string): ServerKey => ({
  publicKey: ecdh.getPublicKey('base64url', 'uncompressed'),
  privateKey,
})

export function keyOf(privateKey: string): ServerKey {
  const ecdh = createECDH('prime256v1')
  ecdh.setPrivateKey(privateKey, 'base64url')
  return pairOf(ecdh, privateKey)
}

export function newKey(): ServerKey {
  const ecdh = createECDH('prime256v1')
  // One key in 256 begins with a zero byte, which Node omits; `web-push` accepts only keys of 32 bytes.
  do ecdh.generateKeys()
  while (ecdh.getPrivateKey().length < 32)
  return pairOf(ecdh, ecdh.getPrivateKey('base64url'))
}

/** The outcome of a message. `gone`: the browser is no longer subscribed. `later`: another attempt may succeed. */
export type Sent =
  | { readonly is: 'sent' }
  | { readonly is: 'gone' }
  | { readonly is: 'later'; readonly why: string }
  | { readonly is: 'refused'; readonly why: string }

export interface SendOptions {
  readonly clock: Clock
  readonly key: ServerKey
  /** Address by which the push service reaches the operator. */
  readonly contact: string
  /** An address of this machine, for tests. */
  readonly named?: URL
}

/** Encrypts a message for a browser and hands it to its push service. */
export async function send(
  { endpoint, p256dh, auth }: Pick<SubscriptionRow, 'endpoint' | 'p256dh' | 'auth'>,
  payload: PushPayload,
  { clock, key, contact, named = NAMED }: SendOptions,
): Promise<Sent> {
  const [{ default: encryption }, { default: vapid }] = await Promise.all([
    import('web-push/src/encryption-helper.js'),
    import('web-push/src/vapid-helper.js'),
  ])
  const url = new URL(endpoint)
  const { cipherText } = encryption.encrypt(p256dh, auth, JSON.stringify(payload), 'aes128gcm')
  const { Authorization } = vapid.getVapidHeaders(url.origin, contact, key.publicKey, key.privateKey, 'aes128gcm')
  const headers = {
    authorization: Authorization,
    'content-type': 'application/octet-stream',
    'content-encoding': 'aes128gcm',
    ttl: String(TTL_S),
    urgency: 'high',
    // For an offline browser, a push service keeps only the newest message of a topic.
    topic: createHash('sha256').update(payload.tag).digest('base64url').slice(0, 32),
  }
  const init = { method: 'POST', headers, body: new Uint8Array(cipherText) }
  const rules = { clock, named, maxBytes: MOST_REPLY_BYTES, timeoutMs: TIMEOUT_MS }
  try {
    return outcomeOf(url, await exchange(url, init, rules))
  } catch (error) {
    if (!(error instanceof DownloadError)) throw error
    const mayHelp = error.problem === 'timeout' || error.problem === 'unreachable'
    return mayHelp ? { is: 'later', why: error.message } : { is: 'refused', why: error.message }
  }
}

function outcomeOf({ host }: URL, { status }: DownloadReply): Sent {
  if (status >= 200 && status < 300) return { is: 'sent' }
  if (status === 404 || status === 410) return { is: 'gone' }
  const why = `${host} answers ${status}`
  return status === 429 || status >= 500 ? { is: 'later', why } : { is: 'refused', why }
}
