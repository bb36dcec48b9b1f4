import { bytesOf, clip, type HttpReply, http, NotSent, objectOf } from '../../bridge-kit/src/index.js'
import type { MatrixConfig } from './config.js'
import type { FileOf } from './events.js'

/** An error response of the server. */
export class MatrixError extends Error {
  override readonly name = 'MatrixError'
  constructor(
    readonly status: number,
    /** `M_…` */
    readonly code: string,
    message: string,
    readonly retryAfterMs: number | undefined,
  ) {
    super(message)
  }
}

/** Delay after a rate limit that names none. */
const RATE_LIMIT_MS = 5000
const LONGEST_WAIT_MS = 60 * 60_000
const FILE_MS = 20_000

interface Options {
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly timeoutMs?: number
  readonly mostBytes?: number
}

/** The client-server API of one account. */
export class MatrixClient {
  constructor(
    private readonly config: Pick<MatrixConfig, 'homeserver' | 'token'>,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * @param path Segments, which are encoded
   * @throws MatrixError If the server refused it
   * @throws NotSent If it was not sent
   * @throws Error If it may have arrived
   */
  async call(
    method: 'GET' | 'PUT' | 'POST',
    path: readonly string[],
    { query = {}, body, timeoutMs, mostBytes }: Options = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    const search = new URLSearchParams(query).toString()
    const reply = await http({
      method,
      url: `${this.config.homeserver}/_matrix/client/v3/${path.map(encodeURIComponent).join('/')}${search && `?${search}`}`,
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${this.config.token}`,
        'user-agent': 'svc-bridge-matrix',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(mostBytes === undefined ? {} : { mostBytes }),
      signal: this.signal,
    })
    if (reply.status === 200) return objectOf(reply.text)
    throw errorOf(reply)
  }

  /**
   * The bytes of a file in base64; undefined: the file is larger.
   * @throws Error If the download fails
   */
  async file({ server, media }: NonNullable<FileOf['at']>, mostBytes: number): Promise<string | undefined> {
    const name = `download/${encodeURIComponent(server)}/${encodeURIComponent(media)}`
    // Servers before Matrix 1.11 use the second path.
    for (const path of ['client/v1/media', 'media/v3']) {
      // fetch drops the token on a redirect to another host.
      const response = await fetch(`${this.config.homeserver}/_matrix/${path}/${name}`, {
        headers: { authorization: `Bearer ${this.config.token}` },
        signal: AbortSignal.any([this.signal, AbortSignal.timeout(FILE_MS)]),
      })
      if (response.ok) return (await bytesOf(response, mostBytes))?.toString('base64')
      await response.body?.cancel()
      if (response.status !== 404) throw new Error(`the homeserver answered ${response.status} for a file`)
    }
    throw new Error('the homeserver does not have a file')
  }
}

function errorOf({ status, text, retryAfterMs }: HttpReply): MatrixError {
  const { errcode, error, retry_after_ms: ms } = objectOf(text)
  const code = typeof errcode === 'string' ? errcode : ''
  const said = typeof error === 'string' ? `: ${clip(error, 200)}` : ''
  const isLimit = status === 429 || code === 'M_LIMIT_EXCEEDED'
  const requestedMs = retryAfterMs ?? (typeof ms === 'number' && ms >= 0 ? Math.min(ms, LONGEST_WAIT_MS) : undefined)
  const wait = isLimit ? (requestedMs ?? RATE_LIMIT_MS) : undefined
  return new MatrixError(status, code, `the homeserver answered ${status} ${code}${said}`, wait)
}

const REFUSED = new Set([
  'M_UNKNOWN_TOKEN',
  'M_MISSING_TOKEN',
  'M_USER_DEACTIVATED',
  'M_USER_LOCKED',
  'M_USER_SUSPENDED',
])

/** Whether the server refuses the token or the account. */
export const isRefused = (error: unknown): boolean =>
  error instanceof MatrixError && (error.status === 401 || REFUSED.has(error.code))

/** Whether a retry may succeed. */
export const isTransient = (error: unknown): boolean =>
  !(error instanceof MatrixError) || error.status >= 500 || error.retryAfterMs !== undefined

/** The delivery error of a failed call; errors with an unknown effect are returned unchanged. */
export function failureOf(error: unknown): unknown {
  if (!(error instanceof MatrixError)) return error
  const { status, message, retryAfterMs } = error
  if (retryAfterMs !== undefined) return new NotSent('transient_delivery_failure', message, { retryAfterMs })
  if (isRefused(error)) return new NotSent('missing_token', message)
  if (status === 403) return new NotSent('permission_denied', message)
  if (status === 404 || (status >= 300 && status < 400)) return new NotSent('unknown_destination', message)
  if (status === 503) return new NotSent('transient_delivery_failure', message)
  return status < 500 ? new NotSent('unsupported_capability', message) : new Error(message)
}
