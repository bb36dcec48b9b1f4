import { createHmac, timingSafeEqual } from 'node:crypto'
import type { WebhookScheme } from '../../../../schemas/automation.js'
import { AutomationErrors } from '../api.js'

/** Headers as Node provides them: names in lower case. */
export type Headers = Readonly<Record<string, string | undefined>>

/** Maximum difference between the delivery timestamp and the current time. */
export const FRESH_MS = 5 * 60_000
/** How long a delivery without a timestamp is remembered for replay protection. */
const REMEMBERED_MS = 30 * 24 * 60 * 60_000

/** Parsed headers of a delivery. Untrusted until {@link isSigned} passed. */
export interface Signed {
  /** Signatures in the form of {@link Signed.expected}; one must match. */
  readonly given: readonly string[]
  /** The expected signature for a secret. */
  readonly expected: (secret: string) => string
  /** Epoch milliseconds; undefined when the scheme has no timestamp. */
  readonly at?: number
  /** Keys for replay protection: a delivery that shares any of them is a duplicate. */
  readonly keys: readonly [string, ...string[]]
  /** Epoch milliseconds until which the keys are remembered. */
  readonly until: number
  /** Members that the scheme adds to the event data. */
  readonly data: Readonly<Record<string, string>>
}

type Reader = (headers: Headers, body: Buffer, now: number) => Signed

/** Reads the headers of each scheme. Throws 400 `webhook_headers_invalid`. */
export const schemes: Readonly<Record<WebhookScheme, Reader>> = {
  service: (headers, body) => {
    const signature = hexSignature(headers, 'X-Service-Webhook-Signature')
    const seconds = secondsOf(required(headers, 'X-Service-Webhook-Timestamp'))
    const id = headers['x-service-webhook-delivery-id']
    const at = seconds * 1000
    return {
      given: [signature],
      expected: secret => `sha256=${hmac(secret, [`${seconds}.`, body]).toString('hex')}`,
      at,
      // The delivery id is not signed, so a replay could change it: the signature is a key as well.
      keys: [boundedKey(signature), ...(id === undefined ? [] : [`id ${boundedKey(id)}`])],
      until: at + FRESH_MS,
      data: {},
    }
  },
  standard: (headers, body) => {
    const id = boundedKey(required(headers, 'Webhook-Id'))
    const seconds = secondsOf(required(headers, 'Webhook-Timestamp'))
    const at = seconds * 1000
    return {
      given: required(headers, 'Webhook-Signature').split(' ').slice(0, 10),
      expected: secret => `v1,${hmac(standardKey(secret), [`${id}.${seconds}.`, body]).toString('base64')}`,
      at,
      keys: [id],
      until: at + FRESH_MS,
      data: {},
    }
  },
  github: (headers, body, now) => {
    const signature = hexSignature(headers, 'X-Hub-Signature-256')
    return {
      given: [signature],
      expected: secret => `sha256=${hmac(secret, [body]).toString('hex')}`,
      // The delivery id of GitHub is not signed, so a replay could change it: the signature is the key.
      keys: [boundedKey(signature)],
      until: now + REMEMBERED_MS,
      data: { github_event: headers['x-github-event']?.slice(0, 200) ?? '' },
    }
  },
}

/** Whether one of the signatures is valid. Compares in constant time. */
export function isSigned({ given, expected }: Signed, secret: string): boolean {
  const wanted = Buffer.from(expected(secret))
  return given.map(text => Buffer.from(text)).some(one => one.length === wanted.length && timingSafeEqual(one, wanted))
}

function hmac(secret: string | Buffer, parts: readonly (string | Buffer)[]): Buffer {
  const mac = createHmac('sha256', secret)
  for (const part of parts) mac.update(part)
  return mac.digest()
}

/**
 * A Standard Webhooks secret is `whsec_` and base64; any other text is the key itself. Throws 400 `webhook_secret_missing` for
 * invalid base64: Node skips invalid characters, which could leave an empty key.
 */
function standardKey(secret: string): Buffer | string {
  if (!secret.startsWith('whsec_')) return secret
  const encoded = secret.slice('whsec_'.length)
  if (!/^[A-Za-z0-9+/_-]{2,}={0,2}$/.test(encoded)) throw AutomationErrors.webhook_secret_missing()
  return Buffer.from(encoded, 'base64')
}

/** A hex signature in lower case, since the replay guard keys on it. */
const hexSignature = (headers: Headers, name: string) => required(headers, name).toLowerCase()

function required(headers: Headers, name: string): string {
  const value = headers[name.toLowerCase()]?.trim()
  if (!value) throw AutomationErrors.webhook_headers_invalid(`missing header: ${name}`)
  return value
}

function boundedKey(key: string): string {
  if (key === '' || key.length > 256)
    throw AutomationErrors.webhook_headers_invalid('the delivery id must have 1 to 256 characters')
  return key
}

/** RFC 3339 with a zone: without one the time would depend on the machine. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i

/** Unix seconds or an RFC 3339 time, as Unix seconds. */
function secondsOf(text: string): number {
  const seconds = /^\d{1,12}$/.test(text)
    ? Number(text)
    : TIME.test(text)
      ? Math.floor(Date.parse(text) / 1000)
      : Number.NaN
  if (!Number.isSafeInteger(seconds))
    throw AutomationErrors.webhook_headers_invalid('the delivery timestamp must be in Unix seconds or RFC 3339')
  return seconds
}
