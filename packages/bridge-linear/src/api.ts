import { clip, type HttpReply, http, NotSent, objectOf } from '../../bridge-kit/src/index.js'

/** The credentials of the bot. */
export type Credentials =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'app'; readonly id: string; readonly secret: string }

const RATE_LIMIT_MS = 60_000
const LONGEST_WAIT_MS = 60 * 60_000
const RENEW_MS = 5 * 60_000

/** A GraphQL error other than a rate limit or refused login. */
export class LinearError extends Error {
  override readonly name = 'LinearError'
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
  }

  get isMissing(): boolean {
    return /not found/i.test(this.message)
  }
}

/** The GraphQL API of Linear for one instance. */
export class LinearApi {
  #token: { readonly value: string; readonly until: number } | undefined

  constructor(
    private readonly url: string,
    private readonly credentials: Credentials,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * Runs a query and returns its data.
   * @throws NotSent On limits, login or connection errors: the query had no effect
   * @throws LinearError If Linear refused it
   * @throws Error If it may have had an effect
   */
  async query(query: string, variables: Readonly<Record<string, unknown>> = {}): Promise<Record<string, unknown>> {
    const reply = await http({
      method: 'POST',
      url: `${this.url}/graphql`,
      headers: { 'content-type': 'application/json', authorization: await this.#authorization() },
      body: JSON.stringify({ query, variables }),
      signal: this.signal,
    })
    return dataOf(reply)
  }

  async #authorization(): Promise<string> {
    const { credentials } = this
    if (credentials.kind === 'key') return credentials.key
    if (this.#token && this.#token.until - RENEW_MS > Date.now()) return `Bearer ${this.#token.value}`
    const form = { grant_type: 'client_credentials', scope: 'read,write' }
    const reply = await http({
      method: 'POST',
      url: `${this.url}/oauth/token`,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        authorization: `Basic ${Buffer.from(`${credentials.id}:${credentials.secret}`).toString('base64')}`,
      },
      body: new URLSearchParams(form).toString(),
      signal: this.signal,
    }).catch(error => {
      // The query was not sent yet.
      throw error instanceof NotSent ? error : new NotSent('transient_delivery_failure', (error as Error).message)
    })
    const { access_token: value, expires_in: seconds } = objectOf(reply.text)
    if (typeof value === 'string' && typeof seconds === 'number') {
      this.#token = { value, until: Date.now() + seconds * 1000 }
      return `Bearer ${value}`
    }
    if (reply.status === 400 || reply.status === 401)
      throw new NotSent('missing_token', 'Linear refuses client_id or client_secret')
    throw new NotSent('transient_delivery_failure', `Linear answered ${reply.status} to the login`)
  }
}

function dataOf(reply: HttpReply): Record<string, unknown> {
  const { status, text, headers, retryAfterMs } = reply
  const { data, errors } = objectOf(text) as { data?: unknown; errors?: unknown }
  const first = (Array.isArray(errors) ? errors[0] : undefined) as
    | { message?: unknown; extensions?: { code?: unknown; userPresentableMessage?: unknown } }
    | undefined
  const code = String(first?.extensions?.code ?? '')
  const message = clip(String(first?.extensions?.userPresentableMessage ?? first?.message ?? ''), 200)
  if (status === 401 || code === 'AUTHENTICATION_ERROR')
    throw new NotSent('missing_token', 'Linear refuses the credentials')
  if (status === 429 || code === 'RATELIMITED') {
    const reset = resetOf(headers.get('x-ratelimit-requests-reset')) - Date.now()
    const wait =
      retryAfterMs ?? (Number.isFinite(reset) ? Math.min(LONGEST_WAIT_MS, Math.max(1000, reset)) : RATE_LIMIT_MS)
    throw new NotSent('transient_delivery_failure', 'Linear limits the rate of requests', { retryAfterMs: wait })
  }
  if (first !== undefined && status < 500) throw new LinearError(code, message)
  if (status >= 300 || typeof data !== 'object' || data === null) throw new Error(`Linear answered ${status}`)
  return data as Record<string, unknown>
}

/** Epoch milliseconds. Small values are seconds, as earlier documentation stated. */
function resetOf(header: string | null): number {
  const time = Number(header ?? Number.NaN)
  return time < 1e12 ? time * 1000 : time
}
