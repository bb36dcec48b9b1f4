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

/** DELETE /api/console/sessions. */
export const EndConsoleReply = v.object({ ended: v.number() })
export type EndConsoleReply = v.InferOutput<typeof EndConsoleReply>
