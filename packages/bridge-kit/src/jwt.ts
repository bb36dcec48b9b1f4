import { createPublicKey, createSign, type KeyObject } from 'node:crypto'
import { jwtVerify } from 'jose'
import { type HttpReply, http, objectOf } from './http.js'

/** The contents of a token with a verified signature. */
export interface VerifiedJwt {
  readonly claims: Readonly<Record<string, unknown>>
  /** Members of the JSON Web Key that signed it; empty for certificates. */
  readonly key: Readonly<Record<string, unknown>>
}

/** Accepted issuers and audiences; one entry of each list has to match. */
export interface ExpectedJwt {
  readonly issuers: readonly string[]
  readonly audiences: readonly string[]
  /** Current time in epoch milliseconds. */
  readonly now: number
}

/** An invalid token: the request is refused with 401. */
export class JwtRefused extends Error {
  override readonly name = 'JwtRefused'
}

interface PublicKey {
  readonly key: KeyObject
  readonly members: Readonly<Record<string, unknown>>
}

/** Allowed clock skew. */
const LEEWAY_MS = 5 * 60_000
const LONGEST_TOKEN = 16 * 1024
const LEAST_BITS = 2048
/** Minimum interval between fetches for unknown keys, so that forged tokens cause no request flood. */
const UNKNOWN_MS = 60_000
/** Wait after a failed fetch while no keys are known. */
const FAILED_MS = 5000
const DEFAULT_AGE_MS = 60 * 60_000
const LEAST_AGE_MS = 60_000
const LONGEST_AGE_MS = 24 * 60 * 60_000
const MOST_KEYS = 200
const MOST_BYTES = 1024 * 1024

/**
 * Public keys of an issuer by id, from a JSON Web Key Set or an object of PEM certificates. They are cached as `Cache-Control`
 * allows, and fetched for an unknown id at most once a minute. If a renewal fails, the cached keys are used for another day.
 */
export class RemoteKeys {
  #keys: ReadonlyMap<string, PublicKey> = new Map()
  #freshUntil = 0
  #fetchedAt = Number.NEGATIVE_INFINITY
  #triedAt = Number.NEGATIVE_INFINITY
  #failure: Error | undefined
  #fetching: Promise<void> | undefined

  /** @param url URL of the keys, or a function that discovers it */
  constructor(
    private readonly url: string | (() => Promise<string>),
    private readonly signal?: AbortSignal,
  ) {}

  /**
   * The key of an id; undefined: the issuer has no such key.
   * @throws Error If the keys cannot be fetched
   */
  async get(id: string, now: number): Promise<PublicKey | undefined> {
    if (now >= this.#freshUntil && now - this.#triedAt >= this.#pauseMs) await this.#fetch(now)
    if (!this.#keys.has(id) && now - this.#triedAt >= this.#pauseMs) await this.#fetch(now)
    // Another request may already be fetching.
    if (!this.#keys.has(id)) await this.#fetching
    const isUsable = now - this.#fetchedAt < LONGEST_AGE_MS
    if (!isUsable && this.#failure) throw this.#failure
    return isUsable ? this.#keys.get(id) : undefined
  }

  get #pauseMs(): number {
    return this.#failure && this.#keys.size === 0 ? FAILED_MS : UNKNOWN_MS
  }

  #fetch(now: number): Promise<void> {
    this.#triedAt = now
    this.#fetching ??= this.#load(now)
      .then(
        () => {
          this.#failure = undefined
        },
        error => {
          this.#failure = error as Error
        },
      )
      .finally(() => {
        this.#fetching = undefined
      })
    return this.#fetching
  }

  async #load(now: number): Promise<void> {
    const url = typeof this.url === 'string' ? this.url : await this.url()
    const reply = await http({
      method: 'GET',
      url,
      headers: { accept: 'application/json' },
      mostBytes: MOST_BYTES,
      ...(this.signal ? { signal: this.signal } : {}),
    })
    if (reply.status !== 200) throw new Error(`${new URL(url).host} answered ${reply.status} instead of public keys`)
    const keys = keysOf(reply.text)
    if (keys.size === 0) throw new Error(`${new URL(url).host} returned no public key`)
    this.#keys = keys
    this.#fetchedAt = now
    this.#freshUntil = now + ageOf(reply)
  }
}

/** How long a response may be cached, within limits. */
function ageOf({ headers }: HttpReply): number {
  const [, seconds] = /(?:^|[\s,])max-age=(\d{1,9})/i.exec(headers.get('cache-control') ?? '') ?? []
  const age = seconds === undefined ? DEFAULT_AGE_MS : Number(seconds) * 1000
  return Math.min(LONGEST_AGE_MS, Math.max(LEAST_AGE_MS, age))
}

function keysOf(text: string): ReadonlyMap<string, PublicKey> {
  const found = new Map<string, PublicKey>()
  const list = objectOf(text)
  const entries: (readonly [unknown, unknown])[] = Array.isArray(list.keys)
    ? list.keys.map(one => [(one as { kid?: unknown } | null)?.kid, one])
    : Object.entries(list)
  for (const [id, value] of entries.slice(0, MOST_KEYS)) {
    const key = typeof id === 'string' ? publicKeyOf(value) : undefined
    if (key) found.set(id as string, key)
  }
  return found
}

/** A key that verifies RS256; undefined for keys of other kinds, which key sets also contain. */
function publicKeyOf(value: unknown): PublicKey | undefined {
  try {
    const isPem = typeof value === 'string'
    const members = isPem ? {} : (value as Record<string, unknown>)
    if (!isPem && (members.kty !== 'RSA' || (members.use ?? 'sig') !== 'sig')) return undefined
    const { n, e } = members as { n: string; e: string }
    const key = isPem ? createPublicKey(value) : createPublicKey({ format: 'jwk', key: { kty: 'RSA', n, e } })
    const isRsa = key.asymmetricKeyType === 'rsa' && (key.asymmetricKeyDetails?.modulusLength ?? 0) >= LEAST_BITS
    return isRsa ? { key, members } : undefined
  } catch {
    return undefined
  }
}

/**
 * Verifies a JSON Web Token signed with RS256: form, signature, issuer, audience and times.
 * @throws JwtRefused If it is invalid
 * @throws Error If the issuer's keys cannot be fetched: the sender has to retry
 */
export async function verifyJwt(token: string, keys: RemoteKeys, expected: ExpectedJwt): Promise<VerifiedJwt> {
  if (token.length > LONGEST_TOKEN) throw new JwtRefused('the token is too long')
  let members: VerifiedJwt['key'] = {}
  const find = async ({ kid }: { readonly kid?: unknown }) => {
    if (typeof kid !== 'string') throw new JwtRefused('the token names no key')
    const found = await keys.get(kid, expected.now).catch(error => Promise.reject(new KeysUnknown(error)))
    if (!found) throw new JwtRefused('the issuer has no key of this id')
    members = found.members
    return found.key
  }
  try {
    const { payload } = await jwtVerify(token, find, {
      ...{ algorithms: ['RS256'], issuer: [...expected.issuers], audience: [...expected.audiences] },
      ...{ requiredClaims: ['exp'], clockTolerance: LEEWAY_MS / 1000, currentDate: new Date(expected.now) },
    })
    return { claims: payload, key: members }
  } catch (error) {
    if (error instanceof KeysUnknown) throw error.cause
    throw error instanceof JwtRefused ? error : new JwtRefused((error as Error).message)
  }
}

/** The token cannot be verified because the issuer's keys cannot be fetched. */
class KeysUnknown extends Error {
  constructor(override readonly cause: unknown) {
    super('the keys cannot be fetched')
  }
}

/**
 * Signs claims with RS256.
 * @param privateKey RSA key in PEM
 * @throws Error If the key is invalid
 */
export function signJwt(
  claims: Readonly<Record<string, unknown>>,
  privateKey: string,
  header: Readonly<Record<string, unknown>> = {},
): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg: 'RS256', typ: 'JWT', ...header })}.${part(claims)}`
  return `${signed}.${createSign('RSA-SHA256').update(signed).sign(privateKey, 'base64url')}`
}
