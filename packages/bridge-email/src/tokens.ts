import { http, InstanceProblem } from '../../bridge-kit/src/index.js'

/** Client settings for access tokens from a refresh token (RFC 6749, section 6). */
export interface OauthConfig {
  readonly tokenUrl: string
  readonly clientId: string
  /** Undefined for a public client, such as an installed program. */
  readonly clientSecret: string | undefined
  readonly refreshToken: string
  readonly scope: string | undefined
}

/** A token is replaced when it expires within this time. */
const MARGIN_MS = 60_000
/** Default lifetime if the server states none. */
const USUAL_S = 3600
const TIMEOUT_MS = 10_000
const MOST_BYTES = 64 * 1024
/** OAuth errors that need the operator. */
const REFUSED = new Set([
  'invalid_grant',
  'invalid_client',
  'unauthorized_client',
  'invalid_scope',
  'unsupported_grant_type',
])
const TOKEN = /^[\x21-\x7e]{1,16384}$/

/** The access token of one account, fetched on demand and cached until shortly before it expires. */
export class Tokens {
  #token: { readonly value: string; readonly until: number } | undefined
  #refreshToken: string
  #fetching: Promise<string> | undefined

  constructor(
    private readonly config: OauthConfig,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#refreshToken = config.refreshToken
  }

  /**
   * A valid access token.
   * @throws InstanceProblem If the server refuses the refresh token or the client
   */
  get(): Promise<string> {
    if (this.#token && this.now() < this.#token.until - MARGIN_MS) return Promise.resolve(this.#token.value)
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined
    })
    return this.#fetching
  }

  /**
   * Reports a refused token.
   * @returns Whether it was accepted before, so that a new token is worth a try.
   */
  refused(token: string): boolean {
    if (this.#token?.value !== token) return true
    const isOld = this.#usedBefore === token
    this.#token = undefined
    return isOld
  }

  /** Reports an accepted token. */
  taken(token: string): void {
    this.#usedBefore = token
  }
  #usedBefore = ''

  async #fetch(): Promise<string> {
    const { tokenUrl, clientId, clientSecret, scope } = this.config
    const form = new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: this.#refreshToken,
      client_id: clientId,
      ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
      ...(scope === undefined ? {} : { scope }),
    })
    const { status, text } = await http({
      method: 'POST',
      url: tokenUrl,
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: form.toString(),
      timeoutMs: TIMEOUT_MS,
      mostBytes: MOST_BYTES,
    })
    const { access_token: value, expires_in: seconds, refresh_token: next, error } = parsed(text)
    const { host } = new URL(tokenUrl)
    if (typeof error === 'string' && REFUSED.has(error))
      throw new InstanceProblem({
        status: 'auth_required',
        reason: 'auth_failed',
        message: `${host} refuses the refresh token or the client (${error}): allow the client again and bind oauth_refresh_token`,
      })
    if (status !== 200 || typeof value !== 'string' || !TOKEN.test(value))
      throw new Error(`${host} gave no access token: status ${status}`)
    const ms = (typeof seconds === 'number' && seconds > 0 ? seconds : USUAL_S) * 1000
    this.#token = { value, until: this.now() + ms }
    // Some servers rotate the refresh token and invalidate the old one.
    if (typeof next === 'string' && TOKEN.test(next)) this.#refreshToken = next
    return value
  }
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}
