import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { clip } from '../../../../kernel/kit/text.js'
import { AutomationErrors } from '../api.js'
import { objectOf } from './body.js'
import type { Scheme } from './scheme-table.js'

/** Headers as Node provides them: names in lower case. */
export type Headers = Readonly<Record<string, string | undefined>>

/** Maximum difference between the delivery timestamp and the current time. */
export const FRESH_MS = 5 * 60_000
/** Replay protection period of a delivery whose timestamp is not signed, or whose sender repeats it with another timestamp. */
const REMEMBERED_MS = 30 * 24 * 60 * 60_000

/** Parsed headers of a delivery. Untrusted until {@link isSigned} passed. */
export interface Signed {
  /** Signatures in the form of {@link Signed.expected}; one must match. */
  readonly signatures: readonly string[]
  /** The expected signature for a secret. */
  readonly expected: (secret: string) => string
  /** Epoch milliseconds; undefined when the scheme has no timestamp. */
  readonly at?: number | undefined
  readonly freshMs: number
  /** Keys for replay protection: a delivery that shares any of them is a duplicate. */
  readonly keys: readonly [string, ...string[]]
  /** Epoch milliseconds until which the keys are remembered. */
  readonly until: number
  /** Members that the scheme adds to the event data. */
  readonly data: Readonly<Record<string, string>>
}

/** The input of a scheme. */
export interface Incoming {
  readonly headers: Headers
  readonly body: Buffer
  /** Members of the body, which few schemes need. */
  readonly members: () => Readonly<Record<string, unknown>>
  readonly now: number
  /** The trigger accepts a repeated body under a new delivery ID. */
  readonly allowRepeat: boolean
}

/** Parses a delivery by its scheme. Throws 400 `webhook_headers_invalid`. */
export function readSigned(scheme: Scheme, incoming: Incoming): Signed {
  const { headers, body, members, now } = incoming
  const headerOf = (name: string | undefined) => (name === undefined ? undefined : headers[name.toLowerCase()]?.trim())
  const data = Object.fromEntries(
    Object.entries(scheme.data ?? {}).map(([member, name]) => [member, clip(headerOf(name) ?? '', 200)]),
  )
  const freshMs = scheme.freshMs ?? FRESH_MS
  const names = scheme.headers.find(({ signature }) => headerOf(signature)) ?? scheme.headers[0]
  if (scheme.token !== undefined && !headerOf(names.signature)) {
    const keys = unsignedKeys(scheme, createHash('sha256').update(body).digest('hex'), incoming)
    const candidates = [digest(required(headers, scheme.token))]
    return { signatures: candidates, expected: digest, freshMs, keys, until: now + REMEMBERED_MS, data }
  }
  const header = required(headers, names.signature)
  const { seconds, signatures } = scheme.form === 'pairs' ? pairsOf(header) : { seconds: undefined, signatures: [] }
  const candidates = (scheme.form === 'pairs' ? signatures : scheme.form === 'list' ? header.split(' ') : [header])
    .slice(0, 10)
    .map(text => (scheme.encoding === 'hex' ? text.toLowerCase() : text))
  const stamp = names.timestamp === undefined ? seconds : secondsOf(required(headers, names.timestamp))
  const own = names.id === undefined ? undefined : scheme.needsId ? required(headers, names.id) : headerOf(names.id)
  const id = own === undefined ? undefined : boundedKey(own, `the header ${names.id}`)
  const at = stamp === undefined ? timeOf(members, scheme.timeMember) : stamp * 1000
  const before = scheme.signed.replace('{id}', () => id ?? '').replace('{timestamp}', () => String(stamp))
  const expected = (secret: string) =>
    scheme.prefix +
    hmac(scheme.secret === 'whsec' ? standardKey(secret) : secret, [before, body]).toString(scheme.encoding)
  // Signatures may be in any order, together with invalid ones, so the signed bytes identify the delivery.
  const signature =
    scheme.form === 'pairs'
      ? createHash('sha256').update(before).update(body).digest('hex')
      : boundedKey(candidates[0] ?? '', `the header ${names.signature}`)
  const repeated = scheme.idMember === undefined ? undefined : members()[scheme.idMember]
  const until = { signature: now + REMEMBERED_MS, timestamp: (at ?? now) + freshMs }
  const base = { signatures: candidates, expected, at, freshMs, data }
  if (scheme.needsId && id !== undefined) return { ...base, keys: [id], until: until.timestamp }
  // The sender signs each attempt anew, so the ID in the signed body identifies the delivery.
  if (typeof repeated === 'string' && repeated !== '')
    return {
      ...base,
      keys: [`member ${boundedKey(repeated, `the member ${scheme.idMember} of the body`)}`],
      until: until.signature,
    }
  // A replay could change an unsigned delivery ID, so the signature is a key as well.
  if (stamp !== undefined)
    return { ...base, keys: [signature, ...(id === undefined ? [] : [`id ${id}`])], until: until.timestamp }
  return { ...base, keys: unsignedKeys(scheme, signature, incoming), until: until.signature }
}

/**
 * Keys of a delivery in which only the body is signed. An attacker could replay it with another delivery ID, so the body is the
 * key, unless the trigger accepts repeated bodies: then body and ID form the key together.
 */
function unsignedKeys({ deliveryId = '' }: Scheme, body: string, { headers, allowRepeat }: Incoming): [string] {
  return [allowRepeat ? `${body} ${boundedKey(required(headers, deliveryId), `the header ${deliveryId}`)}` : body]
}

/** The contents of a delivery. */
export interface Draft {
  readonly secret: string
  readonly body: string
  /** Epoch milliseconds. */
  readonly at: number
  readonly id: string
  /** Values of the members that headers add to the event data. */
  readonly data: Readonly<Record<string, string>>
}

/**
 * The body of a test delivery, with the present time where the scheme reads the time from the body. Throws 400
 * `webhook_headers_invalid` for a body that cannot have it.
 */
export function timedBody({ timeMember }: Scheme, body: string, at: number): string {
  if (timeMember === undefined) return body
  const members = objectOf(body)
  if (members === undefined)
    throw AutomationErrors.webhook_headers_invalid(`the body must be a JSON object, to have the member ${timeMember}`)
  return JSON.stringify({ ...members, [timeMember]: at })
}

/** The headers of a delivery as its sender would sign it. */
export function signedHeaders(scheme: Scheme, { secret, body, at, id, data }: Draft): Readonly<Record<string, string>> {
  const [names] = scheme.headers
  const seconds = String(Math.floor(at / 1000))
  const before = scheme.signed.replace('{id}', () => id).replace('{timestamp}', seconds)
  const key = scheme.secret === 'whsec' ? standardKey(secret) : secret
  const signature = hmac(key, [before, body]).toString(scheme.encoding)
  const text = scheme.form === 'pairs' ? `t=${seconds},v1=${signature}` : scheme.prefix + signature
  const own = Object.entries(scheme.data ?? {}).map(([member, name]) => [name, data[member] ?? 'test'])
  return {
    ...(names.id === undefined ? {} : { [names.id]: id }),
    ...(names.timestamp === undefined ? {} : { [names.timestamp]: seconds }),
    [names.signature]: text,
    ...(scheme.deliveryId === undefined ? {} : { [scheme.deliveryId]: id }),
    ...Object.fromEntries(own),
  }
}

/** Whether one of the signatures is valid. Compares in constant time. */
export function isSigned({ signatures, expected }: Signed, secret: string): boolean {
  const wanted = Buffer.from(expected(secret))
  return signatures
    .map(text => Buffer.from(text))
    .some(one => one.length === wanted.length && timingSafeEqual(one, wanted))
}

/** Whether the body has the member that marks a test or a challenge. */
export const isOf = (of: { readonly member: string; readonly value: string } | undefined, data: object): boolean =>
  of !== undefined && (data as Record<string, unknown>)[of.member] === of.value

/** Digests have equal length, as the constant-time comparison requires. */
const digest = (text: string) => createHash('sha256').update(text).digest('hex')

function hmac(secret: string | Buffer, parts: readonly (string | Buffer)[]): Buffer {
  const mac = createHmac('sha256', secret)
  for (const part of parts) mac.update(part)
  return mac.digest()
}

/**
 * A Standard Webhooks secret is `whsec_` and base64, from some senders with the prefix `v1,`; any other text is the key itself.
 * Throws 400 `webhook_secret_missing` for invalid base64: Node skips invalid characters, which could leave an empty key.
 */
function standardKey(secret: string): Buffer | string {
  const [, encoded] = /^(?:v1,)?whsec_(.*)$/s.exec(secret) ?? []
  if (encoded === undefined) return secret
  if (!/^[A-Za-z0-9+/_-]{2,}={0,2}$/.test(encoded)) throw AutomationErrors.webhook_secret_missing()
  return Buffer.from(encoded, 'base64')
}

/** `t=<seconds>,v1=<signature>`, with one signature per secret during a rotation. */
function pairsOf(header: string): { seconds: number; signatures: string[] } {
  const pairs = header.split(',', 20).map(pair => pair.trim().split('='))
  const [stamp = ''] = pairs.flatMap(([name, value]) => (name === 't' ? [value ?? ''] : []))
  const signatures = pairs.flatMap(([name, value]) => (name === 'v1' && value ? [value] : []))
  if (signatures.length === 0)
    throw AutomationErrors.webhook_headers_invalid('the signature header has no signature v1=')
  return { seconds: secondsOf(stamp), signatures }
}

function timeOf(members: Incoming['members'], name: string | undefined): number | undefined {
  if (name === undefined) return undefined
  const at = members()[name]
  if (typeof at !== 'number' || !Number.isSafeInteger(at))
    throw AutomationErrors.webhook_headers_invalid(`the body has no ${name} in milliseconds`)
  return at
}

function required(headers: Headers, name: string): string {
  const value = headers[name.toLowerCase()]?.trim()
  if (!value) throw AutomationErrors.webhook_headers_invalid(`missing header: ${name}`)
  return value
}

function boundedKey(key: string, what: string): string {
  if (key === '' || key.length > 256)
    throw AutomationErrors.webhook_headers_invalid(`${what} must have 1 to 256 characters`)
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
