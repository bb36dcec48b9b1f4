import { WebAPIHTTPError, WebAPIPlatformError, WebAPIRateLimitedError, WebAPIRequestError } from '@slack/web-api'
import { NotSent, type NotSentKind } from '../../bridge-kit/src/index.js'

/** Slack errors that mean that a token or its workspace is no longer valid. */
const TOKEN = new Set([
  'invalid_auth',
  'not_authed',
  'token_revoked',
  'token_expired',
  'account_inactive',
  'user_removed_from_team',
  'team_disabled',
  'org_login_required',
  'not_allowed_token_type',
])
const UNKNOWN = new Set([
  'channel_not_found',
  'user_not_found',
  'users_not_found',
  'message_not_found',
  'thread_not_found',
  'is_archived',
  'user_disabled',
  'user_not_visible',
  'invalid_users',
])
const DENIED = new Set([
  'not_in_channel',
  'missing_scope',
  'no_permission',
  'access_denied',
  'cant_update_message',
  'cant_delete_message',
  'edit_window_closed',
  'ekm_access_denied',
  'messages_tab_disabled',
  'cannot_dm_bot',
  'enterprise_is_restricted',
  'team_access_not_granted',
  'as_user_not_supported',
])
/** Slack errors after which the request may have taken effect. */
const UNCERTAIN = new Set(['internal_error', 'fatal_error', 'request_timeout', 'service_unavailable'])
/** Node errors that prove that a request was not sent. */
const NOT_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

/** Remedies by error code. */
const REMEDY: Readonly<Record<string, string>> = {
  not_in_channel: ': invite the bot to the channel with /invite @name',
  channel_not_found: ': the bot cannot see this channel; invite it with /invite @name',
  missing_scope: ': add the scope to the app, or apply its manifest again, and reinstall it',
  messages_tab_disabled: ': turn on App Home, Messages Tab, in the settings of the app',
}

/** Slack's code of an error; undefined: the error is not from Slack. */
export const slackCode = (error: unknown): string | undefined =>
  error instanceof WebAPIPlatformError ? error.data.error : undefined

/** Whether Slack refuses a token. */
export const isTokenRefused = (error: unknown): boolean => TOKEN.has(slackCode(error) ?? '')

/** Milliseconds that a rate limit demands. */
export const pauseOf = (error: unknown): number | undefined =>
  error instanceof WebAPIRateLimitedError ? error.retryAfter * 1000 : undefined

/** The displayed form of an error. */
export function describe(error: unknown): string {
  const code = slackCode(error)
  if (error instanceof WebAPIPlatformError && code !== undefined) {
    const { needed } = error.data as { needed?: unknown }
    const scope = code === 'missing_scope' && typeof needed === 'string' ? ` ${needed}` : ''
    return `Slack answers ${code}${scope}${REMEDY[code] ?? ''}`
  }
  if (error instanceof WebAPIRateLimitedError) return `Slack asks for a pause of ${error.retryAfter} s`
  if (error instanceof WebAPIHTTPError) return `Slack answers ${error.statusCode}`
  if (error instanceof WebAPIRequestError)
    return `Slack is not reachable: ${networkCode(error) || error.original.message}`
  return error instanceof Error ? error.message : String(error)
}

/** The delivery error of a failed call: a {@link NotSent} if it had no effect or may be repeated safely; else an Error. */
export function deliveryFailure(error: unknown, isRepeatable: boolean): Error {
  if (error instanceof NotSent) return error
  const why = describe(error)
  const transient = (retryAfterMs?: number) =>
    new NotSent('transient_delivery_failure', why, retryAfterMs === undefined ? {} : { retryAfterMs })
  const pause = pauseOf(error)
  if (pause !== undefined) return transient(pause)
  const code = slackCode(error)
  if (code === 'ratelimited' || code === 'rate_limited') return transient()
  if (code === undefined || UNCERTAIN.has(code)) {
    const isCertain = isRepeatable || NOT_CONNECTED.has(networkCode(error))
    return isCertain ? transient() : new Error(why)
  }
  return new NotSent(kindOf(code), why)
}

function kindOf(code: string): NotSentKind {
  if (TOKEN.has(code)) return 'missing_token'
  if (UNKNOWN.has(code)) return 'unknown_destination'
  if (DENIED.has(code) || code.startsWith('restricted_action')) return 'permission_denied'
  return 'unsupported_capability'
}

function networkCode(error: unknown): string {
  const { code, cause } = (error instanceof WebAPIRequestError ? error.original : {}) as {
    code?: unknown
    cause?: { code?: unknown }
  }
  const found = cause?.code ?? code
  return typeof found === 'string' ? found : ''
}
