import { GrammyError, HttpError } from 'grammy/web'
import { NotSent, type NotSentKind } from '../../bridge-kit/src/index.js'

/** Errors of Node after which a request surely never went out. */
const NOT_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

/** Descriptions of a refused request, with the kind of failure. What stands in none of them is a message that Telegram does not take. */
const REFUSED: readonly (readonly [RegExp, NotSentKind])[] = [
  [/not enough rights|have no rights|need administrator rights|write_forbidden|admin_required/i, 'permission_denied'],
  [/can't be (?:edited|deleted)/i, 'permission_denied'],
  [/not found|_invalid|topic_(?:closed|deleted)|chat was (?:deleted|deactivated)/i, 'unknown_destination'],
]

/** What a failed call means for a delivery: a {@link NotSent} where it surely did nothing, or may be repeated without harm; else an Error. */
export function deliveryFailure(error: unknown, isRepeatable: boolean): Error {
  const why = describe(error)
  if (!(error instanceof GrammyError)) {
    const isCertain = NOT_CONNECTED.has(codeOf(error)) || isRepeatable
    return isCertain ? new NotSent('transient_delivery_failure', why) : new Error(why)
  }
  const { error_code: code, parameters } = error
  if (code === 429) {
    const { retry_after: seconds = 1 } = parameters
    return new NotSent('transient_delivery_failure', why, { retryAfterMs: seconds * 1000 })
  }
  if (code >= 500) return isRepeatable ? new NotSent('transient_delivery_failure', why) : new Error(why)
  if (code === 401 || code === 404) return new NotSent('missing_token', why)
  if (code === 403) return new NotSent('permission_denied', why)
  const [, kind] = REFUSED.find(([pattern]) => pattern.test(error.description)) ?? []
  return new NotSent(kind ?? 'unsupported_capability', why)
}

/** An error as it may be shown: the address of a request holds the token, so that texts of the network stay out. */
export function describe(error: unknown): string {
  if (error instanceof GrammyError) return `Telegram refuses ${error.method}: ${error.error_code} ${error.description}`
  if (!(error instanceof HttpError)) return error instanceof Error ? error.message : String(error)
  const code = codeOf(error)
  return `${error.message.replace(/!$/, '')}${code === '' ? '' : `: ${code}`}`
}

/** Telegram refuses the token itself. */
export const isTokenRefused = (error: unknown): boolean =>
  error instanceof GrammyError && (error.error_code === 401 || error.error_code === 404)

/** Text of a refusal with 409: another program gets the updates of the bot. */
export function conflictOf(error: unknown): string | undefined {
  return error instanceof GrammyError && error.error_code === 409 ? error.description : undefined
}

/** Milliseconds that Telegram wants to be left alone for. */
export function pauseOf(error: unknown): number | undefined {
  if (!(error instanceof GrammyError) || error.error_code !== 429) return undefined
  return (error.parameters.retry_after ?? 1) * 1000
}

/** The markup of a message does not parse. */
export const isBadMarkup = (error: unknown): boolean =>
  error instanceof GrammyError &&
  error.error_code === 400 &&
  /can't parse|entit(?:y|ies)|entity_/i.test(error.description)

/** An edit that changes nothing. */
export const isUnmodified = (error: unknown): boolean =>
  error instanceof GrammyError && error.error_code === 400 && /message is not modified/i.test(error.description)

/** The supergroup that a group has become. */
export function successorOf(error: unknown): string | undefined {
  const id = error instanceof GrammyError ? error.parameters.migrate_to_chat_id : undefined
  return id === undefined ? undefined : String(id)
}

function codeOf(error: unknown): string {
  const inner = error instanceof HttpError ? error.error : error
  // A failed fetch has what happened to its connection as its cause.
  const { code, name } = (Object(inner).cause ?? inner ?? {}) as { code?: unknown; name?: unknown }
  return typeof code === 'string' ? code : typeof name === 'string' && name !== 'Error' ? name : ''
}
