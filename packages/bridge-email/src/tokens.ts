import { http, InstanceProblem } from '../../bridge-kit/src/index.js'

/** How access tokens are got: by a refresh token, that a person once allowed (RFC 6749, section 6). */
export interface OauthConfig {
  readonly tokenUrl: string
  readonly clientId: string
  /** Absent: a client without one, as programs that are installed have it. */
  readonly clientSecret: string | undefined
  readonly refreshToken: string
  readonly scope: string | undefined
}

/** A token that is valid for less is replaced before it is used. */
const MARGIN_MS = 60_000
/** Of a server that names no time. */
const USUAL_S = 3600
const TIMEOUT_MS = 10_000
const MOST_BYTES = 64 * 1024
/** Errors after which only a person can help. */
const REFUSED = new Set([
  'invalid_grant',
  'invalid_client',
  'unauthorized_client',
  'invalid_scope',
  'unsupported_grant_type',
])
const TOKEN = /^[\x21-\x7e]{1,16384}$/

/** The access token of one account, fetched when it is needed and kept until shortly before it expires. */
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

  /** A token that is valid for some time. @throws InstanceProblem the server refuses the refresh token or the client */
  get(): Promise<string> {
    if (this.#token && this.now() < this.#token.until - MARGIN_MS) return Promise.resolve(this.#token.value)
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined
    })
    return this.#fetching
  }

  /** A server did not take the token; returns whether it was an old one, so that a new one is worth a try. */
  refused(token: string): boolean {
    if (this.#token?.value !== token) return true
    const isOld = this.#usedBefore === token
    this.#token = undefined
    return isOld
  }

  /** A server took the token. */
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
    // Some servers give a new one each time; the old one may end with it.
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
