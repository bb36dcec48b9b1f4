/** Secrets of the vault. Replies never contain their values. */
import * as v from 'valibot'
import { Integer, Timestamp } from './kernel/common.js'

/** A stored secret without its value. */
export const VaultSecret = v.object({
  /** `vault:mcp/global/github/env/TOKEN` */
  ref: v.string(),
  namespace: v.string(),
  kind: v.optional(v.string()),
  /** False if its record is damaged or encrypted with a key that the daemon lacks. */
  present: v.boolean(),
  /** Incremented with each new value. */
  version: v.optional(Integer),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type VaultSecret = v.InferOutput<typeof VaultSecret>

/** GET /api/vault/secrets. */
export const VaultSecretsQuery = v.object({
  /** Prefix of the reference. */
  prefix: v.optional(v.pipe(v.string(), v.maxLength(600))),
  namespace: v.optional(v.pipe(v.string(), v.maxLength(64))),
})
export type VaultSecretsQuery = v.InferOutput<typeof VaultSecretsQuery>

/** GET /api/vault/secrets, ordered by reference. */
export const VaultSecretsReply = v.object({ secrets: v.array(VaultSecret) })
export type VaultSecretsReply = v.InferOutput<typeof VaultSecretsReply>

/** PUT /api/vault/secrets. */
export const PutVaultSecretBody = v.strictObject({
  ref: v.pipe(v.string(), v.trim(), v.maxLength(600)),
  secret_value: v.string(),
  /** A label such as `token` or `password`; default: the secret's current label. */
  kind: v.optional(v.pipe(v.string(), v.regex(/^[\w.-]{1,64}$/))),
  /** Allow a value of 4 to 7 bytes, which is then redacted wherever these bytes occur. */
  allow_short: v.optional(v.boolean()),
})
export type PutVaultSecretBody = v.InferOutput<typeof PutVaultSecretBody>

/** One secret without its value. */
export const VaultSecretReply = v.object({ secret: VaultSecret })
export type VaultSecretReply = v.InferOutput<typeof VaultSecretReply>

/** Reference of the requested secret. */
export const VaultRefQuery = v.object({ ref: v.pipe(v.string(), v.trim(), v.maxLength(600)) })
export type VaultRefQuery = v.InferOutput<typeof VaultRefQuery>

/** POST /api/vault/rotate. */
export const RotateVaultReply = v.object({
  /** Fingerprint of the new key. */
  key_id: v.string(),
  /** Number of re-encrypted secrets. */
  resealed: Integer,
})
export type RotateVaultReply = v.InferOutput<typeof RotateVaultReply>
