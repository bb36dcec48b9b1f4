import { APICallError } from 'ai'
import { reasonOf, shortened } from '../text.js'

/** Why a call of the endpoint failed. */
export type EndpointProblem =
  | 'not_configured'
  | 'unauthorized'
  | 'rate_limited'
  | 'context_too_long'
  | 'not_found'
  | 'refused'
  | 'broken'
  | 'unreachable'
  | 'silent'
  | 'stalled'
  | 'half_protocol'
  | 'dropped'
  | 'too_much'

/** A failed call of the endpoint; the message is for a person. */
export class EndpointFailure extends Error {
  override readonly name = 'EndpointFailure'
  constructor(
    readonly problem: EndpointProblem,
    message: string,
    /** Milliseconds to wait before the next call, as the endpoint demands. */
    readonly waitMs?: number,
  ) {
    super(message)
  }
}

/** Context that error messages include. */
export interface FailureContext {
  readonly baseUrl: string
  readonly model: string
  readonly endpointName: string
  readonly apiKey: string | undefined
}

/** Problems that are retried while no part of the answer has been shown. */
export const PASSING: ReadonlySet<EndpointProblem> = new Set([
  'rate_limited',
  'broken',
  'unreachable',
  'dropped',
  'stalled',
])

/** The longest rate limit that is waited out; beyond it the turn fails and states the wait. */
export const MAX_WAIT_MS = 15_000

const TOO_LONG = /context.{0,20}(?:length|window|size|limit)|maximum.{0,20}tokens|too many tokens|prompt is too long/i

/** Converts any error of a call into a readable failure. The message never contains the key. */
export function failureOf(error: unknown, context: FailureContext): EndpointFailure {
  // The SDK wraps the error that failed a stream.
  for (let at = error, deep = 0; at instanceof Error && deep < 5; at = at.cause, deep++)
    if (at instanceof EndpointFailure) return at
  const { baseUrl, model, endpointName } = context
  const said = (text: string) => withoutKey(text, context.apiKey)
  const cause = errorCode(error)
  const isAnswered = APICallError.isInstance(error) && error.statusCode !== undefined && error.statusCode !== 200
  if (cause !== undefined && !isAnswered) {
    return new EndpointFailure('unreachable', `the endpoint ${baseUrl} cannot be reached (${cause}): is it running?`)
  }
  // The SDK passes on an error inside a stream as raw data, not as an Error.
  if (!(error instanceof Error)) {
    const text = `the endpoint ${baseUrl} failed in the middle of its answer: ${said(reasonOf(error))}`
    return new EndpointFailure('broken', text)
  }
  if (!APICallError.isInstance(error)) {
    const text = `the endpoint ${baseUrl} did not reply with chat completions: ${said(reasonOf(error))}`
    return new EndpointFailure('half_protocol', text)
  }
  const status = error.statusCode
  const body = said(shortened(messageIn(error), 300))
  const because = body === '' ? '' : `: ${body}`
  switch (status) {
    case 401:
    case 403:
      return new EndpointFailure(
        'unauthorized',
        `the endpoint ${baseUrl} refuses the key (HTTP ${status})${because}. Store another one: svc vault put vault:providers/${endpointName}/OPENAI_API_KEY`,
      )
    case 404:
      return new EndpointFailure(
        'not_found',
        `the endpoint ${baseUrl} offers no chat completions for the model ${model} (HTTP 404)${because}. Check the URL, which usually ends with /v1, and the model name`,
      )
    case 429: {
      const waitMs = waitOf(error.responseHeaders)
      const wait = waitMs === undefined ? 'try again later' : `try again in ${Math.ceil(waitMs / 1000)} s`
      return new EndpointFailure(
        'rate_limited',
        `the endpoint ${baseUrl} is rate-limited (HTTP 429)${because}; ${wait}`,
        waitMs,
      )
    }
  }
  if (
    status === 413 ||
    (status !== undefined && status < 500 && TOO_LONG.test(`${body} ${error.responseBody ?? ''}`))
  ) {
    const text = `the conversation is too long for the model ${model} (HTTP ${status})${because}`
    return new EndpointFailure('context_too_long', text)
  }
  if (status !== undefined && status >= 500) {
    return new EndpointFailure('broken', `the endpoint ${baseUrl} failed (HTTP ${status})${because}`)
  }
  if (status === 200) {
    const text = `the endpoint ${baseUrl} did not reply with chat completions${because || `: ${said(reasonOf(error))}`}`
    return new EndpointFailure('half_protocol', text)
  }
  if (status === undefined) {
    const why = said(reasonOf(error.cause instanceof Error ? (error.cause.cause ?? error.cause) : error))
    return new EndpointFailure('unreachable', `the endpoint ${baseUrl} cannot be reached: ${why}`)
  }
  return new EndpointFailure('refused', `the endpoint ${baseUrl} refuses the request (HTTP ${status})${because}`)
}

/** The message of an error body in any known shape; the body itself if it has none and is short. */
function messageIn(error: APICallError): string {
  const body = error.responseBody ?? ''
  try {
    const parsed = JSON.parse(body) as { error?: unknown; message?: unknown; detail?: unknown }
    const inner = parsed.error
    const text =
      typeof inner === 'string'
        ? inner
        : ((inner as { message?: unknown } | undefined)?.message ?? parsed.message ?? parsed.detail)
    if (typeof text === 'string') return text.replace(/\s+/g, ' ').trim()
  } catch {
    // Not JSON, such as the error page of a proxy.
  }
  return /^\s*</.test(body) ? '' : body.replace(/\s+/g, ' ').trim()
}

/** Milliseconds of `retry-after`, which is seconds or an HTTP date. */
function waitOf(headers: Record<string, string> | undefined): number | undefined {
  const value = headers?.['retry-after']
  if (value === undefined) return undefined
  const seconds = Number(value)
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(value) - Date.now()
  return Number.isFinite(ms) && ms >= 0 ? Math.min(ms, 86_400_000) : undefined
}

/** The system error code, such as `ECONNREFUSED`, at any depth of the causes. */
function errorCode(error: unknown): string | undefined {
  for (let at: unknown = error, deep = 0; at instanceof Error && deep < 5; at = at.cause, deep++) {
    const { code } = at as NodeJS.ErrnoException
    if (typeof code === 'string' && /^(?:E[A-Z_]+|UND_ERR_\w+|CERT_\w+|DEPTH_\w+|UNABLE_\w+)$/.test(code)) return code
  }
  return undefined
}

function withoutKey(text: string, key: string | undefined): string {
  return key === undefined || key.length < 4 ? text : text.replaceAll(key, '[key]')
}
