/** Tokens and keys of callers, and the access of each caller. */
import * as v from 'valibot'
import { Timestamp } from '../kernel/common.js'

/** Error body of the key routes; as elsewhere, except that `details` is a string. */
export const AuthError = v.object({ error: v.string(), details: v.optional(v.string()), code: v.optional(v.string()) })
export type AuthError = v.InferOutput<typeof AuthError>

export const ApiKey = v.object({
  id: v.string(),
  name: v.optional(v.string()),
  prefix: v.string(),
  created_at: Timestamp,
  last_used: v.optional(Timestamp),
})
export type ApiKey = v.InferOutput<typeof ApiKey>

/** POST /api/v0/auth/generate. */
export const GenerateBody = v.strictObject({
  name: v.optional(
    v.pipe(
      v.string(),
      v.minLength(1),
      v.maxLength(100),
      v.regex(
        /^[ -~\u00a1-\u200a\u2010-\u2027\u2030-\u205f\u2070-\ufefe\uff00-\uffff]*$/,
        'must not contain invisible characters',
      ),
      v.description('name that says what the key is for; must be unique'),
    ),
  ),
})

/** POST /api/v0/auth/generate: the only reply that contains the key. */
export const GenerateReply = v.object({
  data: v.object({ api_key: v.string(), id: v.string() }),
  message: v.string(),
})

export const KeysReply = v.object({ data: v.object({ keys: v.array(ApiKey) }), message: v.string() })

export const AuthMessage = v.object({ message: v.string() })

const Access = v.picklist(['yes', 'local', 'token', 'own', 'no'])

/**
 * Access to one route by caller. `local`: unless TCP is bound beyond loopback; `token`: with the operator token; `own`: on its own
 * objects.
 */
export const RouteAccess = v.object({
  method: v.string(),
  path: v.string(),
  plugin: v.string(),
  runs_code: v.boolean(),
  /** Determines the access, which `access` spells out. */
  class: v.picklist(['public', 'ordinary', 'privileged', 'credentials']),
  access: v.object({
    socket: Access,
    operator_token: Access,
    api_key: Access,
    own_user: Access,
    agent_session: Access,
    nobody: Access,
  }),
})
export type RouteAccess = v.InferOutput<typeof RouteAccess>

export const MatrixReply = v.object({ routes: v.array(RouteAccess) })
export type MatrixReply = v.InferOutput<typeof MatrixReply>
