import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { parseSecretRef } from '../../../kernel/kit/secret-ref.js'
import { type Actor, defineErrors, event, registry, type Tx, token } from '../../../kernel/plugin.js'
import type { VaultSecret } from '../../../schemas/vault.js'

export { absent, type Remembered } from './absence.js'

/** First part of each path; `consumers.ts` lists the plugins with access to each namespace. */
export const NAMESPACES = [
  'providers',
  'bridges',
  'automation',
  'mcp',
  'hooks',
  'extensions',
  'sandbox',
  'sessions',
  'network',
  'telemetry',
  'console',
] as const
export type Namespace = (typeof NAMESPACES)[number]

const PATH = new RegExp(`^(?:${NAMESPACES.join('|')})/[a-z0-9][a-z0-9_.-]*(?:/[A-Za-z0-9][A-Za-z0-9_.-]*)*$`)

/** The path in a reference, such as `mcp/global/github/env/TOKEN`; undefined for any other text. */
export function vaultPath(reference: string): string | undefined {
  const { scheme, rest } = parseSecretRef(reference) ?? {}
  return scheme === 'vault' && rest !== undefined && PATH.test(rest) ? rest : undefined
}

export interface PutOptions {
  /** A label. Default: that of the existing secret, or `secret` for a new one. */
  readonly kind?: string | undefined
  /** Accepts a value of 4 to 7 bytes, although it may occur in ordinary text. */
  readonly allowShort?: boolean | undefined
  /** Recorded actor of the change; default: the calling plugin. */
  readonly actor?: Actor | undefined
}

/** The secrets of one consumer. References of other consumers are refused with `vault_namespace_foreign`. */
export interface VaultApi {
  /**
   * The value, or undefined if it does not exist. It is hidden from all output of the daemon before it is returned.
   * @throws Fault `vault_namespace_foreign`, `vault_secret_damaged`, or {@link VaultErrors} of the key
   */
  reveal(reference: string): Promise<string | undefined>
  /** Hides a value, then stores it. @throws Fault `vault_value_short`, `vault_value_invalid`, `vault_full` and those of reveal */
  put(reference: string, value: string, options?: PutOptions): Promise<VaultSecret>
  /** Deletes a secret; returns whether it existed. */
  delete(reference: string, actor?: Actor): Promise<boolean>
  /**
   * Deletes the secret at a path, such as `providers/claude`, and all secrets below it, in the transaction that deletes their
   * owner. Secrets of `providers/claude-two` stay. A path that is not a valid reference has no secrets.
   * @throws Fault `vault_namespace_foreign`
   */
  forget(t: Tx, path: string): void
  /** Metadata of all secrets below a path, such as `providers/claude/`, without values. */
  list(below: string): VaultSecret[]
}

/** An object whose secrets are deleted together with it. */
export interface SecretOwner {
  /** Kind of object, such as `session` or `bridge`. */
  readonly what: string
  /**
   * How the vault detects the deletion, within its transaction: a deleted record of this kind, or an event of this name with the
   * owner as subject. Absent: the plugin calls {@link VaultApi.forget} itself.
   */
  readonly deleted?: { readonly record: string } | { readonly event: string }
  /** Paths of its own secrets, as for {@link VaultApi.forget}; without secrets elsewhere that it only refers to. */
  readonly paths: (id: string) => readonly string[]
}

/** All owners of secrets; a plugin contributes those whose secrets it may use. */
export const SecretOwners = registry<SecretOwner>(
  'vault.owners@1',
  v.looseObject({
    what: v.string(),
    deleted: v.optional(v.union([v.object({ record: v.string() }), v.object({ event: v.string() })])),
    paths: v.function(),
  }),
)

/** The vault, confined to the plugin that requires it. */
export const Vault = token<VaultApi>('vault@1')

const Changed = v.object({ ref: v.string(), kind: v.string(), version: v.number() })
/** A secret has a new value. */
export const VaultSecretPut = event('vault.secret_put', Changed)
/** A secret is gone. */
export const VaultSecretDeleted = event('vault.secret_deleted', Changed)
/** All secrets are sealed with a new key. */
export const VaultKeyRotated = event('vault.key_rotated', v.object({ key_id: v.string(), resealed: v.number() }))

export const VaultErrors = defineErrors({
  vault_ref_invalid: {
    status: 400,
    message: 'this is not a secret reference: use vault:<namespace>/<name> with a namespace of the vault',
    next: `write vault:<namespace>/<name>/…, for example vault:mcp/global/github/env/TOKEN; the namespaces are ${NAMESPACES.join(', ')}`,
  },
  vault_namespace_invalid: {
    status: 400,
    message: 'the vault has no such namespace',
    next: `use one of ${NAMESPACES.join(', ')}`,
  },
  vault_namespace_foreign: { status: 403, message: 'this secret belongs to another consumer' },
  vault_secret_not_found: { status: 404, message: 'the vault has no such secret', next: command('vault list') },
  vault_secret_damaged: {
    status: 503,
    message: 'the record of this secret was changed or damaged',
    next: command('vault put', placeholder('ref')),
  },
  vault_value_short: {
    status: 400,
    message: 'a value of fewer than 8 bytes can occur in ordinary text; redacting it would make logs unreadable',
    next: 'use a longer value, or repeat with --allow-short (allow_short: true), from 4 bytes on',
  },
  vault_value_invalid: { status: 400, message: 'the vault does not accept this value' },
  vault_full: {
    status: 400,
    message: 'the vault has reached its maximum number of secrets',
    next: command('vault delete', placeholder('ref')),
  },
  vault_key_missing: {
    status: 503,
    message: 'the vault has secrets, but the key that encrypts them is missing',
    next: 'restore vault.key from your backup, or delete the secrets and store them again',
  },
  vault_key_readable: { status: 503, message: 'other users can read the vault key' },
  vault_key_invalid: {
    status: 503,
    message: 'the vault key is not 32 bytes in base64',
    next: 'put the right key there; generate a new one: openssl rand -base64 32',
  },
  vault_key_unreadable: { status: 503, message: 'the vault key cannot be read or written' },
  vault_key_wrong: {
    status: 503,
    message: 'the secrets are encrypted with a key that the daemon does not have',
    next: `restore that key; ${command('doctor')} shows where the daemon reads its key from`,
  },
  vault_key_external: { status: 409, message: 'the daemon cannot rotate a key that comes from outside the home' },
})

/** Errors about an unusable key. */
export const KEY_ERRORS = [
  VaultErrors.vault_key_missing,
  VaultErrors.vault_key_readable,
  VaultErrors.vault_key_invalid,
  VaultErrors.vault_key_unreadable,
  VaultErrors.vault_key_wrong,
] as const

/** Errors of storing a secret. */
export const WRITE_ERRORS = [
  VaultErrors.vault_ref_invalid,
  VaultErrors.vault_value_short,
  VaultErrors.vault_value_invalid,
  VaultErrors.vault_full,
  ...KEY_ERRORS,
] as const
