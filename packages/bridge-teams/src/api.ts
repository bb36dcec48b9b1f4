import { bytesOf, clip, type HttpReply, http, NotSent, objectOf } from '../../bridge-kit/src/index.js'
import type { TeamsConfig } from './config.js'
import type { FileOf } from './files.js'

const SCOPE = 'https://api.botframework.com/.default'
/** A token is replaced this long before it expires. */
const RENEW_MS = 5 * 60_000
const FILE_MS = 8000
/** Delay after a rate limit that names none. */
const RATE_LIMIT_MS = 5000
/** Statuses after which Microsoft demands a retry. */
const AGAIN = new Set([412, 502, 503, 504])

/** The Bot Connector for one bot. */
export class TeamsApi {
  #token: { readonly value: string; readonly until: number } | undefined
  #asking: Promise<string> | undefined

  constructor(
    private readonly config: Pick<TeamsConfig, 'appId' | 'password' | 'authority' | 'loginUrl'>,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * A cached or new token of the bot.
   * @throws NotSent If the login is refused or fails
   */
  token(): Promise<string> {
    if (this.#token && this.#token.until - RENEW_MS > Date.now()) return Promise.resolve(this.#token.value)
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  /**
   * A request about a conversation. Returns successful responses only.
   * @param service A URL checked by `connectorOf`, because it receives the token
   * @throws NotSent If it was refused
   * @throws Error If it may have had an effect
   */
  async call(method: 'POST' | 'PUT' | 'DELETE', service: string, path: string, body?: unknown): Promise<HttpReply> {
    const reply = await this.#send(method, service + path, body)
    if (reply.status !== 401) return checked(reply, method)
    // The token may have been revoked before it expired.
    this.#token = undefined
    return checked(await this.#send(method, service + path, body), method)
  }

  /**
   * The bytes of a file; undefined: the file is larger.
   * @throws Error If the download fails
   */
  async file(
    { url = '', isOwn }: FileOf,
    mostBytes: number,
  ): Promise<{ readonly data: Buffer; readonly type: string } | undefined> {
    const response = await fetch(url, {
      headers: isOwn ? { authorization: `Bearer ${await this.token()}` } : {},
      redirect: 'error',
      signal: AbortSignal.any([this.signal, AbortSignal.timeout(FILE_MS)]),
    })
    if (!response.ok) {
      await response.body?.cancel()
      throw new Error(`${new URL(url).host} answered ${response.status} for a file`)
    }
    const data = await bytesOf(response, mostBytes)
    const [type = ''] = /^[\w.+-]{1,100}\/[\w.+-]{1,100}/.exec(response.headers.get('content-type') ?? '') ?? []
    return data && { data, type: type === '' ? 'application/octet-stream' : type }
  }

  async #send(method: 'POST' | 'PUT' | 'DELETE', url: string, body: unknown): Promise<HttpReply> {
    return http({
      method,
      url,
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${await this.token()}`,
        'user-agent': 'svc-bridge-teams',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: this.signal,
    })
  }

  async #ask(): Promise<string> {
    const { appId, password, authority, loginUrl } = this.config
    const form = { grant_type: 'client_credentials', client_id: appId, client_secret: password, scope: SCOPE }
    const reply = await http({
      method: 'POST',
      url: `${loginUrl}/${encodeURIComponent(authority)}/oauth2/v2.0/token`,
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: new URLSearchParams(form).toString(),
      signal: this.signal,
    }).catch(error => {
      if (error instanceof NotSent) throw error
      // Without a token the message was not sent.
      throw new NotSent('transient_delivery_failure', (error as Error).message)
    })
    const { access_token: value, expires_in: seconds, error, error_codes: codes } = objectOf(reply.text)
    if (reply.status === 200 && typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)) {
      const lasts = typeof seconds === 'number' && Number.isFinite(seconds) ? seconds * 1000 : 0
      this.#token = { value, until: Date.now() + lasts }
      return value
    }
    if (reply.status === 429) throw limited(reply)
    if (reply.status === 400 || reply.status === 401 || reply.status === 403) {
      const why = `${clip(String(error ?? reply.status), 60)} ${Array.isArray(codes) ? codes.map(Number).join(' ') : ''}`
      throw new NotSent(
        'missing_token',
        `the login is refused (${why.trim()}): check app_id, bind a new client secret to app_password, and bind app_tenant_id for a single-tenant app`,
      )
    }
    throw new NotSent('transient_delivery_failure', `the login was answered ${reply.status}`)
  }
}

const limited = ({ retryAfterMs }: HttpReply) =>
  new NotSent('transient_delivery_failure', 'Teams limits the rate of requests', {
    retryAfterMs: retryAfterMs ?? RATE_LIMIT_MS,
  })

function checked(reply: HttpReply, method: string): HttpReply {
  const { status, text, retryAfterMs } = reply
  if (status >= 200 && status < 300) return reply
  const { code, message: said } = (objectOf(text).error ?? {}) as {
    readonly code?: unknown
    readonly message?: unknown
  }
  const words = [code, said].filter(word => typeof word === 'string').join(': ')
  const message = `Teams answered ${status} ${clip(words, 200)}`.trim()
  if (status === 401) throw new NotSent('missing_token', message)
  if (status === 403) throw new NotSent('permission_denied', message)
  if (status === 404 || status === 410 || (status >= 300 && status < 400))
    throw new NotSent('unknown_destination', message)
  if (status === 429) throw limited(reply)
  if (AGAIN.has(status))
    throw new NotSent('transient_delivery_failure', message, retryAfterMs === undefined ? {} : { retryAfterMs })
  if (status < 500) throw new NotSent('unsupported_capability', message)
  // A change is idempotent, a new message is not.
  if (method !== 'POST') throw new NotSent('transient_delivery_failure', message)
  throw new Error(message)
}
