import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { retryAfterMs } from './timing.js'
import { NotSent } from './types.js'

/** One request to a platform. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly timeoutMs?: number
  /** Maximum bytes of the response; a longer one is an error. */
  readonly mostBytes?: number
  readonly signal?: AbortSignal
}

export interface HttpReply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** From the header Retry-After. */
  readonly retryAfterMs: number | undefined
}

/** Less than the daemon's time limit for a delivery. */
const TIMEOUT_MS = 4500
const MOST_BYTES = 4 * 1024 * 1024

/** Connection errors that occur before a request is sent. */
const BEFORE =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|EPROTO|CERT_|ERR_TLS|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/

/**
 * Sends a request and reads the response. Redirects are not followed, so that signed and secret data reaches only the given URL.
 * @throws NotSent If the request was not sent
 * @throws Error If it may have been received
 */
export async function http(request: HttpRequest): Promise<HttpReply> {
  const { method, url, headers = {}, body, timeoutMs = TIMEOUT_MS, mostBytes = MOST_BYTES, signal } = request
  const timeout = AbortSignal.timeout(timeoutMs)
  try {
    const response = await fetch(url, {
      method,
      headers,
      redirect: 'manual',
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      ...(body === undefined ? {} : { body }),
    })
    const text = await textOf(response, mostBytes)
    const retry = retryAfterMs(response.headers.get('retry-after'), Date.now())
    return { status: response.status, headers: response.headers, text, retryAfterMs: retry }
  } catch (error) {
    const { code = '', message = '' } = ((error as Error).cause ?? {}) as { code?: string; message?: string }
    const { host } = new URL(url)
    if (BEFORE.test(code)) throw new NotSent('transient_delivery_failure', `${host}: ${code}`)
    throw new Error(`${host}: ${message || (error as Error).message}`)
  }
}

async function textOf(response: Response, mostBytes: number): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.length
    if (bytes > mostBytes) throw new Error(`a reply of more than ${mostBytes} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

/** Compares two secrets in constant time. */
export function isSame(one: string, other: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(one), digest(other))
}

/** Parses a JSON object; any other text gives an empty object. */
export function objectOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** Whether a signature is the HMAC-SHA256 of the data, compared in constant time. */
export function isHmac(secret: string | Buffer, data: Buffer, signature: string, encoding: 'hex' | 'base64'): boolean {
  const expected = createHmac('sha256', secret).update(data).digest()
  const actual = Buffer.from(signature, encoding)
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}
