import { GrammyError, HttpError } from 'grammy/web'
import { NotSent, type NotSentKind } from '../../bridge-kit/src/index.js'

/** Node errors that prove that a request was not sent. */
const NOT_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

/** Descriptions of refusals, with the kind of failure. Any other refusal means an unacceptable message. */
const REFUSED: readonly (readonly [RegExp, NotSentKind])[] = [
  [/not enough rights|have no rights|need administrator rights|write_forbidden|admin_required/i, 'permission_denied'],
  [/can't be (?:edited|deleted)/i, 'permission_denied'],
  [/not found|_invalid|topic_(?:closed|deleted)|chat was (?:deleted|deactivated)/i, 'unknown_destination'],
]

/** The delivery error of a failed call: a {@link NotSent} if it had no effect or may be repeated safely; else an Error. */
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

/** The displayed form of an error. Network errors are reduced to their code, because the request URL contains the token. */
export function describe(error: unknown): string {
  if (error instanceof GrammyError) return `Telegram refuses ${error.method}: ${error.error_code} ${error.description}`
  if (!(error instanceof HttpError)) return error instanceof Error ? error.message : String(error)
  const code = codeOf(error)
  return `${error.message.replace(/!$/, '')}${code === '' ? '' : `: ${code}`}`
}

/** Whether Telegram refuses the token. */
export const isTokenRefused = (error: unknown): boolean =>
  error instanceof GrammyError && (error.error_code === 401 || error.error_code === 404)

/** The description of a 409 response: another program polls for the bot's updates. */
export function conflictOf(error: unknown): string | undefined {
  return error instanceof GrammyError && error.error_code === 409 ? error.description : undefined
}

/** Milliseconds that a rate limit demands. */
export function pauseOf(error: unknown): number | undefined {
  if (!(error instanceof GrammyError) || error.error_code !== 429) return undefined
  return (error.parameters.retry_after ?? 1) * 1000
}

/** Whether Telegram refuses the markup of a message. */
export const isBadMarkup = (error: unknown): boolean =>
  error instanceof GrammyError &&
  error.error_code === 400 &&
  /can't parse|entit(?:y|ies)|entity_/i.test(error.description)

/** Whether an edit was refused because it changes nothing. */
export const isUnmodified = (error: unknown): boolean =>
  error instanceof GrammyError && error.error_code === 400 && /message is not modified/i.test(error.description)

/** The supergroup that replaced a group. */
export function successorOf(error: unknown): string | undefined {
  const id = error instanceof GrammyError ? error.parameters.migrate_to_chat_id : undefined
  return id === undefined ? undefined : String(id)
}

function codeOf(error: unknown): string {
  const inner = error instanceof HttpError ? error.error : error
  // A failed fetch carries the connection error as its cause.
  const { code, name } = (Object(inner).cause ?? inner ?? {}) as { code?: unknown; name?: unknown }
  return typeof code === 'string' ? code : typeof name === 'string' && name !== 'Error' ? name : ''
}
