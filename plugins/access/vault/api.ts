import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { parseSecretRef } from '../../../kernel/kit/secret-ref.js'
import { type Actor, defineErrors, event, registry, type Tx, token } from '../../../kernel/plugin.js'
import type { VaultSecret } from '../../../schemas/vault.js'

export { absent, type Remembered } from './absence.js'

/** First part of each path; a secret of one is read by the plugins that `consumers.ts` names for it. */
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
] as const
export type Namespace = (typeof NAMESPACES)[number]

const PATH = new RegExp(`^(?:${NAMESPACES.join('|')})/[a-z0-9][a-z0-9_.-]*(?:/[A-Za-z0-9][A-Za-z0-9_.-]*)*$`)

/** The path that a reference names, `mcp/global/github/env/TOKEN`; undefined for any other text. */
export function vaultPath(reference: string): string | undefined {
  const { scheme, rest } = parseSecretRef(reference) ?? {}
  return scheme === 'vault' && rest !== undefined && PATH.test(rest) ? rest : undefined
}

export interface PutOptions {
  /** A label; default that which the secret has, of a new one `secret`. */
  readonly kind?: string | undefined
  /** Also a value of 4 to 7 bytes, whatever ordinary text it occurs in. */
  readonly allowShort?: boolean | undefined
  /** Who is recorded for it; default the plugin that asks. */
  readonly actor?: Actor | undefined
}

/** The secrets of one consumer. Every reference of another's is refused with `vault_namespace_foreign`. */
export interface VaultApi {
  /**
   * The value, or undefined where there is none. It is hidden in all that leaves the daemon before it is handed out.
   * @throws Fault `vault_namespace_foreign`, `vault_secret_damaged`, or what {@link VaultErrors} says of the key
   */
  reveal(reference: string): Promise<string | undefined>
  /** Hides a value, then stores it. @throws Fault `vault_value_short`, `vault_value_invalid`, `vault_full` and those of reveal */
  put(reference: string, value: string, options?: PutOptions): Promise<VaultSecret>
  /** Whether there was one. */
  delete(reference: string, actor?: Actor): Promise<boolean>
  /**
   * Deletes the secret of a path, `providers/claude`, and all below it, in the transaction that deletes their owner. Secrets of
   * `providers/claude-two` stay. A path that no reference can have has no secrets.
   * @throws Fault `vault_namespace_foreign`
   */
  forget(t: Tx, path: string): void
  /** What is stored below a path, `providers/claude/`, without values. */
  list(below: string): VaultSecret[]
}

/** Something that can be deleted and has secrets of its own, which are deleted with it. */
export interface SecretOwner {
  /** `session`, `bridge` … */
  readonly what: string
  /**
   * Tells of the deletion in its transaction: a record of this kind is deleted, or an event of this name says so of its
   * subject. Absent: the plugin calls {@link VaultApi.forget} itself.
   */
  readonly deleted?: { readonly record: string } | { readonly event: string }
  /** Paths of its own secrets, as {@link VaultApi.forget} takes them. A secret elsewhere that it only refers to is not its own. */
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

/** The vault as the plugin that requires it sees it. */
export const Vault = token<VaultApi>('vault@1')

const Changed = v.object({ ref: v.string(), kind: v.string(), version: v.number() })
/** A secret has a new value. */
export const VaultSecretPut = event('vault.secret_put', Changed)
/** A secret is gone. */
export const VaultSecretDeleted = event('vault.secret_deleted', Changed)
/** Every secret is sealed with another key than before. */
export const VaultKeyRotated = event('vault.key_rotated', v.object({ key_id: v.string(), resealed: v.number() }))

export const VaultErrors = defineErrors({
  vault_ref_invalid: {
    status: 400,
    message: 'this is not a secret reference: use vault:<namespace>/<name>',
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
    message: 'a value of fewer than 8 bytes occurs in ordinary text; hiding it makes logs unreadable',
    next: 'use a longer value, or repeat with --allow-short (allow_short: true), from 4 bytes on',
  },
  vault_value_invalid: { status: 400, message: 'the vault does not take this value' },
  vault_full: {
    status: 400,
    message: 'the vault has as many secrets as it takes',
    next: command('vault delete', placeholder('ref')),
  },
  vault_key_missing: {
    status: 503,
    message: 'there are secrets, and the key that they are sealed with is gone',
    next: 'put vault.key back from your backup, or delete the secrets and store them again',
  },
  vault_key_readable: { status: 503, message: 'the key of the vault can be read by others' },
  vault_key_invalid: {
    status: 503,
    message: 'the key of the vault is not 32 bytes in base64',
    next: 'put the right key there; openssl rand -base64 32 makes a new one',
  },
  vault_key_unreadable: { status: 503, message: 'the key of the vault cannot be read or written' },
  vault_key_wrong: {
    status: 503,
    message: 'the secrets are sealed with another key than the daemon has',
    next: `put the key back that they were sealed with; ${command('doctor')} says where the daemon has its own from`,
  },
  vault_key_external: { status: 409, message: 'the daemon cannot change a key that it is handed from outside' },
})
