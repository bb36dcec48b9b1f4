import { createHmac, timingSafeEqual } from 'node:crypto'
import type { WebhookScheme } from '../../../schemas/automation.js'
import { AutomationErrors } from '../api.js'

/** Headers as Node provides them: names in lower case. */
export type Headers = Readonly<Record<string, string | undefined>>

/** How far the time of a delivery may lie from now. */
export const FRESH_MS = 5 * 60_000
/** How long a delivery without a time of its own is remembered. */
const REMEMBERED_MS = 30 * 24 * 60 * 60_000

/** What the headers of a delivery say; nothing of it is believed before {@link isSigned}. */
export interface Signed {
  /** Signatures in the form of {@link Signed.expected}; one has to fit. */
  readonly given: readonly string[]
  /** The right signature under a secret. */
  readonly expected: (secret: string) => string
  /** Epoch milliseconds; undefined: the scheme has no time. */
  readonly at?: number
  /** What the delivery is known by, so that it is taken once: no other may have one of them. */
  readonly keys: readonly [string, ...string[]]
  /** Epoch milliseconds: from then on it is refused by its time, or forgotten. */
  readonly until: number
  /** What the scheme adds to the data. */
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
      // The id is not signed: whoever repeats a delivery could make up another one.
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
      // Its delivery id is not signed, so that whoever repeats a delivery could make one up.
      keys: [boundedKey(signature)],
      until: now + REMEMBERED_MS,
      data: { github_event: headers['x-github-event']?.slice(0, 200) ?? '' },
    }
  },
}

/** Is one of the signatures right? Takes as long for a wrong one as for a right one. */
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
 * Secrets of Standard Webhooks are base64 behind a prefix; any other text is the key itself. Throws 400 `webhook_secret_missing`
 * for what is not base64: Node drops such characters, and the key could be empty.
 */
function standardKey(secret: string): Buffer | string {
  if (!secret.startsWith('whsec_')) return secret
  const encoded = secret.slice('whsec_'.length)
  if (!/^[A-Za-z0-9+/_-]{2,}={0,2}$/.test(encoded)) throw AutomationErrors.webhook_secret_missing()
  return Buffer.from(encoded, 'base64')
}

/** A signature in hex has one form here: it is what a delivery is known by. */
const hexSignature = (headers: Headers, name: string) => required(headers, name).toLowerCase()

function required(headers: Headers, name: string): string {
  const value = headers[name.toLowerCase()]?.trim()
  if (!value) throw AutomationErrors.webhook_headers_invalid(`the header ${name} is missing`)
  return value
}

function boundedKey(key: string): string {
  if (key === '' || key.length > 256)
    throw AutomationErrors.webhook_headers_invalid('the id of a delivery has 1 to 256 characters')
  return key
}

/** Of RFC 3339: without a zone it would be another time on another machine. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i

/** Unix seconds, or a time of RFC 3339. */
function secondsOf(text: string): number {
  const seconds = /^\d{1,12}$/.test(text)
    ? Number(text)
    : TIME.test(text)
      ? Math.floor(Date.parse(text) / 1000)
      : Number.NaN
  if (!Number.isSafeInteger(seconds))
    throw AutomationErrors.webhook_headers_invalid('the time of a delivery is in Unix seconds or RFC 3339')
  return seconds
}
