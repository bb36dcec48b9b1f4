/** Links and sessions of the console, the web application that the daemon serves. */
import * as v from 'valibot'
import { Timestamp } from '../kernel/common.js'

/** POST /api/console/links: the only reply that contains the code. */
export const ConsoleLinkReply = v.object({
  link: v.object({ url: v.string(), code: v.string(), expires_at: Timestamp }),
})
export type ConsoleLinkReply = v.InferOutput<typeof ConsoleLinkReply>

/** POST /api/console/sessions. */
export const BeginConsoleBody = v.strictObject({
  code: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/, 'the code of a link'), v.description('the code of a link')),
})

/** POST /api/console/sessions: the key goes into the header `X-Svc-Console` of each request, beside the cookie. */
export const BeginConsoleReply = v.object({ key: v.string(), expires_at: Timestamp })

export const ConsoleSession = v.object({
  id: v.string(),
  created_at: Timestamp,
  last_used: Timestamp,
  expires_at: Timestamp,
})
export type ConsoleSession = v.InferOutput<typeof ConsoleSession>

/** GET /api/console/sessions. */
export const ConsoleSessionsReply = v.object({
  sessions: v.array(ConsoleSession),
  /** Id of the session of the caller. */
  current: v.optional(v.string()),
})

const keyText = (characters: number) =>
  v.pipe(
    v.string(),
    v.minLength(characters),
    v.maxLength(characters),
    v.regex(new RegExp(`^[A-Za-z0-9_-]{${characters}}$`), 'base64url without padding'),
  )

/** POST /api/console/push: `PushSubscription.toJSON()` of a browser, without its other members. */
export const ConsolePushBody = v.strictObject({
  endpoint: v.pipe(v.string(), v.maxLength(1024), v.url(), v.description('address at the push service; https')),
  keys: v.strictObject({ p256dh: keyText(87), auth: keyText(22) }),
})
export type ConsolePushBody = v.InferOutput<typeof ConsolePushBody>

export const ConsolePushSubscription = v.object({
  id: v.string(),
  session_id: v.pipe(v.string(), v.description('session of the console with which it ends')),
  service: v.pipe(v.string(), v.description('host of the push service')),
  created_at: Timestamp,
  last_sent: v.optional(Timestamp),
  last_error: v.optional(v.string()),
})
export type ConsolePushSubscription = v.InferOutput<typeof ConsolePushSubscription>

/** GET /api/console/push. */
export const ConsolePushReply = v.object({
  enabled: v.pipe(v.boolean(), v.description('the setting console.push.enabled')),
  public_key: v.optional(v.pipe(v.string(), v.description('with which a browser subscribes; while push is enabled'))),
  subscriptions: v.array(ConsolePushSubscription),
  current: v.optional(v.pipe(v.string(), v.description('subscription of the calling browser'))),
})
export type ConsolePushReply = v.InferOutput<typeof ConsolePushReply>

/** POST /api/console/push. */
export const AddConsolePushReply = v.object({ subscription: ConsolePushSubscription })

/** DELETE /api/console/sessions. */
export const EndConsoleReply = v.object({ ended: v.number() })
export type EndConsoleReply = v.InferOutput<typeof EndConsoleReply>
