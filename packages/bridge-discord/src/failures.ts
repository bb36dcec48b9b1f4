import { DiscordAPIError, HTTPError, RateLimitError } from '@discordjs/rest'
import { clip, NotSent, type NotSentKind } from '../../bridge-kit/src/index.js'

/** Discord's codes for missing objects. */
const UNKNOWN = new Set([10003, 10004, 10008, 10013, 50033])
/** Discord's codes for missing permissions. */
const DENIED = new Set([50001, 50005, 50007, 50013, 50083, 160005, 40333])
/** Node errors that prove that a request was not sent. */
const NOT_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

/** Remedies by error code. */
const REMEDY: Readonly<Record<number, string>> = {
  50001: ': give the role of the bot the permission View Channel',
  50007: ': the person does not accept direct messages from the bot',
  50013: ': give the role of the bot the permissions Send Messages and Send Messages in Threads',
  50083: ': the thread is archived',
}

/** Whether Discord refuses the token. */
export const isTokenRefused = (error: unknown): boolean => error instanceof DiscordAPIError && error.status === 401

/** Whether a channel is gone or not visible to the bot. */
export const isUnseen = (error: unknown): boolean =>
  error instanceof DiscordAPIError && (error.status === 403 || error.status === 404)

/** Discord's code of an error; undefined: the error is not from Discord. */
export const codeOf = (error: unknown): number | undefined =>
  error instanceof DiscordAPIError ? Number(error.code) : undefined

/** Milliseconds that a rate limit demands. */
export function pauseOf(error: unknown): number | undefined {
  if (!(error instanceof RateLimitError)) return undefined
  return Math.max(error.retryAfter, error.timeToReset, error.sublimitTimeout, 0)
}

/** The displayed form of an error. */
export function describe(error: unknown): string {
  if (error instanceof DiscordAPIError) {
    const text = error.rawError && 'message' in error.rawError ? error.rawError.message : error.message
    return `Discord answers ${error.status}, ${error.code}: ${clip(text, 200)}${REMEDY[Number(error.code)] ?? ''}`
  }
  const pause = pauseOf(error)
  if (pause !== undefined) return `Discord asks for a pause of ${Math.ceil(pause / 1000)} s`
  if (error instanceof HTTPError) return `Discord answers ${error.status}`
  const code = networkCode(error)
  if (code !== '') return `Discord is not reachable: ${code}`
  return error instanceof Error ? error.message : String(error)
}

/** The delivery error of a failed call: a {@link NotSent} if it had no effect or may be repeated safely; else an Error. */
export function deliveryFailure(error: unknown, isRepeatable: boolean): Error {
  if (error instanceof NotSent) return error
  const why = describe(error)
  const pause = pauseOf(error)
  if (pause !== undefined) return new NotSent('transient_delivery_failure', why, { retryAfterMs: Math.ceil(pause) })
  if (error instanceof DiscordAPIError) return new NotSent(kindOf(error), why)
  const isCertain = isRepeatable || NOT_CONNECTED.has(networkCode(error))
  return isCertain ? new NotSent('transient_delivery_failure', why) : new Error(why)
}

function kindOf({ status, code }: DiscordAPIError): NotSentKind {
  if (status === 401) return 'missing_token'
  if (DENIED.has(Number(code))) return 'permission_denied'
  if (UNKNOWN.has(Number(code)) || status === 404) return 'unknown_destination'
  return status === 403 ? 'permission_denied' : 'unsupported_capability'
}

function networkCode(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: { code?: unknown } }
  const found = cause?.code ?? code
  return typeof found === 'string' ? found : ''
}
