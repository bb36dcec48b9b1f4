import {
  backoffMs,
  bytesOf,
  clip,
  type HttpReply,
  http,
  InstanceProblem,
  NotSent,
  objectOf,
  signJwt,
  type Timing,
} from '../../bridge-kit/src/index.js'

const SCOPE = 'https://www.googleapis.com/auth/chat.bot'
/** A token is replaced this long before it expires. */
const RENEW_MS = 5 * 60_000
const LONGEST_TOKEN_MS = 60 * 60_000
const FILE_MS = 20_000
/** Back-off for quota errors, which name no delay. */
const QUOTA = { baseMs: 5000, capMs: 60_000 }

/** A service account, from its JSON key. */
export interface ServiceAccount {
  readonly email: string
  readonly key: string
  readonly keyId: string | undefined
  readonly tokenUrl: string
}

/** Google Chat refused a request for a reason other than quota or login. */
export class ChatError extends Error {
  override readonly name = 'ChatError'
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
  }
}

/** The Google Chat API for one instance. */
export class GchatApi {
  #token: { readonly value: string; readonly until: number } | undefined
  #limits = 0

  constructor(
    private readonly url: string,
    private readonly account: ServiceAccount,
    private readonly timing: Timing,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * Sends a request and returns the response.
   * @throws NotSent On quota, login or connection errors: the request had no effect
   * @throws ChatError If Google Chat refused it
   * @throws Error If it may have had an effect
   */
  async call(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) {
    const isCached = this.#token !== undefined
    let reply = await this.#send(method, path, body)
    // A token may be revoked before it expires.
    if (reply.status === 401 && isCached) {
      this.#token = undefined
      reply = await this.#send(method, path, body)
    }
    return this.#resultOf(reply)
  }

  /**
   * The bytes of a file in base64; undefined: the file is larger.
   * @throws Error If the download fails
   */
  async file(resource: string, mostBytes: number): Promise<string | undefined> {
    const path = resource.split('/').map(encodeURIComponent).join('/')
    const response = await fetch(`${this.url}/v1/media/${path}?alt=media`, {
      headers: { authorization: `Bearer ${await this.#accessToken()}` },
      redirect: 'error',
      signal: AbortSignal.any([this.signal, AbortSignal.timeout(FILE_MS)]),
    })
    if (!response.ok) throw new Error(`Google Chat answered ${response.status} for a file`)
    return (await bytesOf(response, mostBytes))?.toString('base64')
  }

  async #send(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<HttpReply> {
    return http({
      method,
      url: `${this.url}/v1/${path}`,
      headers: {
        authorization: `Bearer ${await this.#accessToken()}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: this.signal,
    })
  }

  #resultOf({ status, text, retryAfterMs }: HttpReply): Record<string, unknown> {
    const answer = objectOf(text)
    if (status >= 200 && status < 300) {
      this.#limits = 0
      return answer
    }
    const { error } = answer as { error?: { status?: unknown; message?: unknown } | null }
    const message = `Google Chat answered ${status}: ${clip(String(error?.message ?? ''), 200)}`
    if (status === 401) {
      this.#token = undefined
      throw new NotSent('missing_token', message)
    }
    if (status === 429 || error?.status === 'RESOURCE_EXHAUSTED') {
      const wait = retryAfterMs ?? backoffMs(++this.#limits, this.timing, QUOTA)
      throw new NotSent('transient_delivery_failure', message, { retryAfterMs: wait })
    }
    if (status >= 300 && status < 500) throw new ChatError(status, message)
    throw new Error(message)
  }

  async #accessToken(): Promise<string> {
    if (this.#token && this.#token.until - RENEW_MS > this.timing.now()) return this.#token.value
    const reply = await http({
      method: 'POST',
      url: this.account.tokenUrl,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: this.#assertion(),
      }).toString(),
      signal: this.signal,
    }).catch(error => {
      // The request was not sent yet.
      throw error instanceof NotSent ? error : new NotSent('transient_delivery_failure', (error as Error).message)
    })
    const { access_token: value, expires_in: seconds, error, error_description: why } = objectOf(reply.text)
    if (reply.status === 200 && typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)) {
      const ms = Math.min(LONGEST_TOKEN_MS, (Number(seconds) || 0) * 1000)
      this.#token = { value, until: this.timing.now() + ms }
      return value
    }
    const said = `Google answered ${reply.status} to the login: ${clip(String(why ?? error ?? ''), 200)}`
    if (reply.status === 400 || reply.status === 401 || reply.status === 403) throw new NotSent('missing_token', said)
    const retry = reply.retryAfterMs === undefined ? {} : { retryAfterMs: reply.retryAfterMs }
    throw new NotSent('transient_delivery_failure', said, retry)
  }

  #assertion(): string {
    const { email, key, keyId, tokenUrl } = this.account
    const now = Math.floor(Date.now() / 1000)
    const claims = { iss: email, scope: SCOPE, aud: tokenUrl, iat: now, exp: now + 3600 }
    return signJwt(claims, key, keyId === undefined ? {} : { kid: keyId })
  }
}

/**
 * Parses the JSON key of a service account.
 * @throws InstanceProblem If it is invalid
 */
export function serviceAccountOf(json: string): ServiceAccount {
  const { type, client_email: email, private_key: key, private_key_id: keyId, token_uri: tokenUrl } = objectOf(json)
  try {
    if (type !== 'service_account' || typeof email !== 'string' || typeof key !== 'string' || !isSafe(tokenUrl))
      throw new Error('it lacks a member')
    signJwt({}, key)
    return { email, key, keyId: typeof keyId === 'string' ? keyId : undefined, tokenUrl }
  } catch {
    throw new InstanceProblem({
      status: 'auth_required',
      reason: 'auth_failed',
      message:
        'the secret credentials_json is not the JSON key of a service account: make one under IAM & Admin > Service Accounts > Keys',
    })
  }
}

const isSafe = (url: unknown): url is string =>
  typeof url === 'string' &&
  URL.canParse(url) &&
  /^(?:https:|http:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])[:/])/.test(url)
