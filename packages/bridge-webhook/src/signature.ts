import { createHmac } from 'node:crypto'
import { isHmac, type WebhookRequest } from '../../bridge-kit/src/index.js'

const ID = /^[\x21-\x7e]{1,128}$/
/** Signatures in one header; a sender may use two while it rotates its secret. */
const MOST_SIGNATURES = 8

/** The bytes of a secret: base64 after `whsec_`, else the text itself. */
export function keyOf(secret: string): Buffer {
  return secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : Buffer.from(secret)
}

/** Headers of a signed request (Standard Webhooks). */
export function signed(key: Buffer, id: string, seconds: number, body: string): Record<string, string> {
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': `v1,${signature}` }
}

/** The verified id of a request, or why it is refused. */
export type Verified = { readonly id: string } | { readonly refused: string }

/** Verifies the signature and age of a request. Repeated ids are left to the daemon, which deduplicates events. */
export function verified(
  key: Buffer,
  { headers, body }: Pick<WebhookRequest, 'headers' | 'body'>,
  nowSeconds: number,
  toleranceSeconds: number,
): Verified {
  const { 'webhook-id': id = '', 'webhook-timestamp': timestamp = '', 'webhook-signature': signatures = '' } = headers
  if (!ID.test(id)) return { refused: 'webhook-id is missing or too long' }
  if (!/^\d{1,12}$/.test(timestamp)) return { refused: 'webhook-timestamp is not a time in seconds' }
  const data = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body])
  const candidates = signatures.split(' ').slice(0, MOST_SIGNATURES)
  const valid = candidates.filter(one => one.startsWith('v1,') && isHmac(key, data, one.slice('v1,'.length), 'base64'))
  if (valid.length === 0) return { refused: 'webhook-signature does not match' }
  if (Math.abs(nowSeconds - Number(timestamp)) > toleranceSeconds)
    return { refused: `webhook-timestamp is more than ${toleranceSeconds} s from the time here` }
  return { id }
}
