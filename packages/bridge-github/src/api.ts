import { type HttpReply, http, InstanceProblem, NotSent, objectOf, signJwt } from '../../bridge-kit/src/index.js'

/** The credentials of the bot. */
export type Credentials =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'app'; readonly appId: string; readonly privateKey: string }

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** Delay after a GitHub rate limit that names none. */
const RATE_LIMIT_MS = 60_000
const LONGEST_WAIT_MS = 60 * 60_000
/** An installation token is replaced this long before it expires. */
const RENEW_MS = 5 * 60_000

/** The GitHub REST API for one instance. */
export class GithubApi {
  /** Installation tokens by repository; `until` in epoch milliseconds. */
  readonly #tokens = new Map<string, { readonly token: string; readonly until: number }>()

  constructor(
    private readonly url: string,
    private readonly credentials: Credentials,
    private readonly signal: AbortSignal,
  ) {}

  /** The login of the bot, and its name in mentions. */
  async whoAmI(): Promise<{ readonly login: string; readonly mention: string }> {
    if (this.credentials.kind === 'token') {
      const { login } = await this.#json('GET', '/user', this.credentials.token)
      if (typeof login === 'string') return { login, mention: login }
    } else {
      const { slug } = await this.#json('GET', '/app', this.#appToken())
      if (typeof slug === 'string') return { login: `${slug}[bot]`, mention: slug }
    }
    throw new Error('GitHub did not identify the bot')
  }

  get isApp(): boolean {
    return this.credentials.kind === 'app'
  }

  /** A request about the app itself; responses as in {@link call}. */
  async asApp(method: Method, path: string): Promise<HttpReply> {
    return this.#call(method, path, this.#appToken())
  }

  /** A request about a repository. Returns responses of any status except rate limits and refused logins. */
  async call(method: Method, repository: string, path: string, body?: unknown): Promise<HttpReply> {
    return this.#call(method, path, await this.#tokenFor(repository), body)
  }

  async #tokenFor(repository: string): Promise<string> {
    if (this.credentials.kind === 'token') return this.credentials.token
    const known = this.#tokens.get(repository)
    if (known && known.until - RENEW_MS > Date.now()) return known.token
    const { id } = await this.#json('GET', `/repos/${repository}/installation`, this.#appToken())
    if (!Number.isSafeInteger(id)) throw new NotSent('permission_denied', `the app is not installed on ${repository}`)
    const made = await this.#json('POST', `/app/installations/${id}/access_tokens`, this.#appToken())
    const { token, expires_at: expires } = made
    if (typeof token !== 'string' || typeof expires !== 'string')
      throw new NotSent('transient_delivery_failure', 'GitHub returned no installation token')
    if (this.#tokens.size > 1000) this.#tokens.clear()
    this.#tokens.set(repository, { token, until: Date.parse(expires) || 0 })
    return token
  }

  /** GitHub allows ten minutes; one minute each is reserved for clock skew. */
  #appToken(): string {
    if (this.credentials.kind !== 'app') throw new Error('no app')
    const now = Math.floor(Date.now() / 1000)
    return signJwt({ iat: now - 60, exp: now + 540, iss: this.credentials.appId }, this.credentials.privateKey)
  }

  async #json(method: Method, path: string, token: string): Promise<Record<string, unknown>> {
    const { status, text } = await this.#call(method, path, token)
    if (status === 404) throw new NotSent('permission_denied', `GitHub answered 404 to ${path}`)
    if (status >= 300) throw new NotSent('transient_delivery_failure', `GitHub answered ${status} to ${path}`)
    return objectOf(text)
  }

  async #call(method: Method, path: string, token: string, body?: unknown): Promise<HttpReply> {
    const reply = await http({
      method,
      url: this.url + path,
      headers: {
        accept: 'application/vnd.github+json',
        authorization: `Bearer ${token}`,
        'x-github-api-version': '2022-11-28',
        'user-agent': 'svc-bridge-github',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: this.signal,
    })
    if (reply.status === 401) throw new NotSent('missing_token', 'GitHub refuses the credentials')
    const wait = limitOf(reply)
    if (wait !== undefined)
      throw new NotSent('transient_delivery_failure', 'GitHub limits the rate of requests', { retryAfterMs: wait })
    return reply
  }
}

/** Milliseconds to wait if the response is a primary or secondary rate limit. */
export function limitOf({ status, headers, text, retryAfterMs }: HttpReply): number | undefined {
  if (status !== 403 && status !== 429) return undefined
  if (retryAfterMs !== undefined) return retryAfterMs
  if (headers.get('x-ratelimit-remaining') === '0') {
    const reset = Number(headers.get('x-ratelimit-reset')) * 1000 - Date.now()
    return Number.isFinite(reset) ? Math.min(LONGEST_WAIT_MS, Math.max(1000, reset)) : RATE_LIMIT_MS
  }
  return status === 429 || /rate limit/i.test(text) ? RATE_LIMIT_MS : undefined
}

/**
 * Checks that a key can sign.
 * @throws InstanceProblem If it cannot
 */
export function checkKey(privateKey: string): void {
  try {
    signJwt({}, privateKey)
  } catch {
    throw new InstanceProblem({
      status: 'auth_required',
      reason: 'auth_failed',
      message: 'the secret bound to private_key is not an RSA key in PEM format',
    })
  }
}
