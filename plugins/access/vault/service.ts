import { aborted } from '../../../kernel/kit/backoff.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import type { SecretResolver } from '../../../kernel/kit/secret-ref.js'
import { Serial } from '../../../kernel/kit/serial.js'
import { shown } from '../../../kernel/kit/text.js'
import { type Actor, type Fault, faultOf, messageOf, type Tx, type Written } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { VaultSecret, type VaultSecretsQuery } from '../../../schemas/vault.js'
import type { StoredEvent } from '../../platform/events/api.js'
import {
  NAMESPACES,
  type PutOptions,
  type SecretOwner,
  SecretOwners,
  type VaultApi,
  VaultErrors,
  VaultKeyRotated,
  VaultSecretDeleted,
  VaultSecretPut,
  vaultPath,
} from './api.js'
import { open, seal } from './cipher.js'
import { mayUse } from './consumers.js'
import { HeldKeys } from './held-keys.js'
import { HiddenValues } from './hidden.js'
import { type KeyRing, Keys } from './keys.js'
import type { K } from './needs.js'
import { type Damage, vaultHealth, vaultItems } from './report.js'
import { countRows, listRows, rowsAfter, rowsOf, type SecretRow, secrets } from './rows.js'

/** Most stored secrets: all output of the daemon is searched for all of their values. */
const MAX_SECRETS = 50_000
/** Secrets opened per turn of the event loop, about half a millisecond, so that a start is not delayed. */
const SLICE = 20
const DEFAULT_KIND = 'secret'
const SCHEME = 'vault:'

/** Secrets in a table of the catalog, sealed with a key outside of it. */
export class VaultService {
  readonly hidden = new HiddenValues()
  /** Secrets that cannot be opened, with the reason. Complete after {@link hideAll}. */
  readonly damaged = new Map<string, Damage>()
  readonly #keys: HeldKeys
  readonly #rotations = new Serial()
  /** Names of events that report the end of an owner; undefined: not known yet. */
  #ending: ReadonlySet<string> | undefined
  #hiding: Promise<void> | undefined

  /** Resolves `vault:…` references, for each consumer only its own. */
  readonly resolver: SecretResolver = {
    scheme: 'vault',
    resolve: (rest, asker) => this.for({ name: asker }).reveal(`${SCHEME}${rest}`),
    missing: rest => ({ why: 'the vault has no such secret', next: command('vault put', `${SCHEME}${rest}`) }),
  }

  constructor(private readonly kernel: K) {
    this.#keys = new HeldKeys(kernel.db, new Keys(kernel.home.root, kernel.env), text => {
      this.hidden.source.hide(text, { name: 'vault.key' })
    })
  }

  /** Logs an unusable key but does not prevent the start: everything that needs no secret still runs. */
  start(): void {
    const problem = this.#keys.problem()
    if (problem) this.kernel.log.error(`no secret can be used: ${problem.message}`, { code: problem.code })
  }

  /** Hides all values, resumes a rotation that a crash interrupted, then waits for the abort signal. */
  async run(signal: AbortSignal): Promise<void> {
    await this.hideAll()
    await this.#rotations.run(async () => {
      if (this.#keys.problem() || !this.#keys.get()?.before) return
      const secrets = await this.#keys.finish()
      this.kernel.log.info('every secret is encrypted with the new key', { secrets })
    })
    await aborted(signal)
  }

  /** The vault with the access rights of a consumer. */
  for(consumer: { readonly name: string; readonly actor?: Actor }): VaultApi {
    const own = (reference: string): string => {
      if (mayUse(consumer.name, checkedPath(reference))) return reference
      throw VaultErrors.vault_namespace_foreign(`${consumer.name} must not use ${reference}`)
    }
    return {
      reveal: async reference => this.reveal(own(reference)),
      put: async (reference, value, options) => this.put(own(reference), value, { actor: consumer.actor, ...options }),
      delete: async (reference, actor = consumer.actor) => this.delete(own(reference), actor),
      forget: (t, path) => this.#forget(t, consumer, path),
      list: below =>
        listRows(this.kernel.db, `${SCHEME}${below}`)
          .filter(({ ref }) => mayUse(consumer.name, ref.slice(SCHEME.length)))
          .map(row => this.#shape(row)),
    }
  }

  /** @throws Fault, see {@link VaultApi.reveal} */
  async reveal(ref: string): Promise<string | undefined> {
    // A consumer with one value may know others, so all values are hidden before any is returned.
    await this.hideAll()
    const row = secrets.get(this.kernel.db, { ref })
    if (!row) return undefined
    const value = this.#open(this.#keys.must(), row)
    if (value === undefined) throw this.#damage(ref)
    return value
  }

  /** @throws Fault, see {@link VaultApi.put} */
  async put(ref: string, value: string, { kind, allowShort = false, actor }: PutOptions): Promise<VaultSecret> {
    checkedPath(ref)
    const { db, clock, needs } = this.kernel
    const forget = this.#hide(ref, value, allowShort)
    try {
      this.#keys.make()
      const row = await db.tx(t => {
        const before = secrets.get(t, { ref })
        if (!before && countRows(t) >= MAX_SECRETS)
          throw VaultErrors.vault_full(`the vault has ${MAX_SECRETS} secrets, the maximum; delete some first`)
        const version = (before?.version ?? 0) + 1
        // Read here, because a rotation may have started meanwhile.
        const { current } = this.#keys.must()
        const now = clock.now()
        const row: SecretRow = {
          ref,
          kind: kind ?? before?.kind ?? DEFAULT_KIND,
          version,
          allow_short: allowShort,
          key_id: current.id,
          sealed: seal(current, { ref, version }, value),
          created_at: before?.created_at ?? now,
          updated_at: now,
        }
        secrets.replace(t, row)
        needs.events.emit(t, VaultSecretPut, { ref, kind: row.kind, version }, { ...by(actor), subject: ref })
        return row
      })
      this.hidden.keep(ref, row.version, forget)
      this.damaged.delete(ref)
      return this.#shape(row)
    } catch (error) {
      // After a disk error, the value may have been stored, so it stays hidden.
      if (faultOf(error).code.startsWith('vault_')) forget()
      throw error
    }
  }

  /** Deletes a secret; returns whether it existed. @throws Fault `vault_ref_invalid` */
  async delete(ref: string, actor?: Actor): Promise<boolean> {
    checkedPath(ref)
    const found = await this.kernel.db.tx(t => {
      const row = secrets.get(t, { ref })
      if (!row) return false
      secrets.delete(t, { ref })
      const { kind, version } = row
      this.kernel.needs.events.emit(t, VaultSecretDeleted, { ref, kind, version }, { ...by(actor), subject: ref })
      return true
    })
    if (found) this.hidden.drop(ref)
    this.damaged.delete(ref)
    return found
  }

  /** Deletes the secrets of a deleted record, in the same transaction. */
  written(t: Tx, { change }: Written): void {
    if (change.verb !== 'delete') return
    const { kind, id } = change.before
    this.#forgetOwned(t, deleted => 'record' in deleted && deleted.record === kind, id)
  }

  /** Called when the registries of a change are complete. */
  known(): void {
    const all = this.kernel.collect(SecretOwners).map(({ entry }) => entry.deleted)
    this.#ending = new Set(all.flatMap(deleted => (deleted && 'event' in deleted ? [deleted.event] : [])))
  }

  /** Like {@link written}, for an owner whose deletion an event reports. */
  onEvent(t: Tx, { name, subject }: StoredEvent): undefined {
    if (subject === undefined || this.#ending?.has(name) === false) return
    this.#forgetOwned(t, deleted => 'event' in deleted && deleted.event === name, subject)
  }

  #forgetOwned(t: Tx, isOf: (deleted: Deleted) => boolean, id: string): void {
    for (const { owner, entry } of this.kernel.collect(SecretOwners))
      if (entry.deleted && isOf(entry.deleted))
        for (const path of this.#pathsOf(owner, entry, id)) this.#forget(t, { name: owner }, path)
  }

  /** Foreign paths are logged and kept: a plugin's mistake must not prevent the deletion of a record. */
  #pathsOf(owner: string, entry: SecretOwner, id: string): readonly string[] {
    try {
      const paths = entry.paths(id)
      const foreign = paths.filter(path => !mayForget(owner, path))
      if (foreign.length > 0) this.kernel.log.error('a plugin must not delete these secrets', { owner, foreign })
      return paths.filter(path => mayForget(owner, path))
    } catch (error) {
      this.kernel.log.error('secrets of a deleted owner could not be removed', {
        owner,
        what: entry.what,
        why: messageOf(error),
      })
      return []
    }
  }

  /** Uses the vault's own rights instead of those of `t`: the owner may not write tables of the vault. */
  #forget(t: Tx, { name, actor }: { readonly name: string; readonly actor?: Actor }, path: string): void {
    if (vaultPath(`${SCHEME}${path}`) === undefined) return
    if (!mayForget(name, path)) throw VaultErrors.vault_namespace_foreign(`${name} must not use ${SCHEME}${path}`)
    const { db, needs } = this.kernel
    const own = db.within(t)
    for (const { ref, kind, version } of rowsOf(own, `${SCHEME}${path}`)) {
      secrets.delete(own, { ref })
      needs.events.emit(t, VaultSecretDeleted, { ref, kind, version }, { ...by(actor), subject: ref })
      db.onDurable(t, () => this.#drop(ref))
    }
  }

  #drop(ref: string): void {
    this.hidden.drop(ref)
    this.damaged.delete(ref)
  }

  /** @throws Fault `vault_ref_invalid`, `vault_secret_not_found` */
  async remove(ref: string, actor: Actor): Promise<void> {
    if (!(await this.delete(ref, actor))) throw VaultErrors.vault_secret_not_found(`the vault has no secret ${ref}`)
  }

  /** Metadata of a secret. @throws Fault `vault_ref_invalid`, `vault_secret_not_found` */
  async metadata(ref: string): Promise<VaultSecret> {
    checkedPath(ref)
    await this.hideAll()
    const row = secrets.get(this.kernel.db, { ref })
    if (!row) throw VaultErrors.vault_secret_not_found(`the vault has no secret ${ref}`)
    return this.#shape(row)
  }

  /** Metadata of secrets, sorted by reference. @throws Fault `vault_namespace_invalid` */
  async list({ prefix = '', namespace }: VaultSecretsQuery): Promise<VaultSecret[]> {
    if (namespace !== undefined && !(NAMESPACES as readonly string[]).includes(namespace))
      throw VaultErrors.vault_namespace_invalid(`${shown(namespace)} is not a namespace of the vault`)
    await this.hideAll()
    const start = prefix.startsWith(SCHEME) || SCHEME.startsWith(prefix) ? prefix : `${SCHEME}${prefix}`
    const all = listRows(this.kernel.db, start).map(row => this.#shape(row))
    return namespace === undefined ? all : all.filter(secret => secret.namespace === namespace)
  }

  /** Reseals all secrets with a new key; they stay readable meanwhile. @throws Fault `vault_key_external`, those of keys */
  rotate(actor: Actor): Promise<{ key_id: string; resealed: number }> {
    return this.#rotations.run(async () => {
      const resealed = await this.#keys.rotate()
      const key_id = this.#keys.must().current.id
      const { db, needs } = this.kernel
      await db.tx(t => needs.events.emit(t, VaultKeyRotated, { key_id, resealed }, { actor }))
      return { key_id, resealed }
    })
  }

  /** Hides the values of all secrets, in slices; runs once in the life of the service. */
  async hideAll(): Promise<void> {
    // Without a key no value can be opened or revealed; the next call tries again.
    if (this.#keys.problem() || !this.#keys.get()) return
    this.#hiding ??= this.#hideRows()
    await this.#hiding
  }

  async check(): Promise<DiagnosticItem[]> {
    await this.hideAll()
    return vaultItems(this.#keys.diskProblem(), this)
  }

  health(): ReturnType<typeof vaultHealth> {
    return vaultHealth(this.#keys.problem(), this)
  }

  get count(): number {
    return countRows(this.kernel.db)
  }

  get keySource(): KeyRing['source'] {
    return this.#keys.keys.source
  }

  async #hideRows(): Promise<void> {
    for (let after = ''; ; ) {
      const rows = rowsAfter(this.kernel.db, after, SLICE)
      for (const row of rows) {
        if (this.#open(this.#keys.must(), row) !== undefined) continue
        const { message, code } = this.#damage(row.ref)
        this.kernel.log.error(message, { code })
      }
      const last = rows.at(-1)
      if (!last || rows.length < SLICE) return
      after = last.ref
      await new Promise(resolve => setImmediate(resolve))
    }
  }

  /** Opens and hides the value of a row; undefined if it cannot be opened, which is recorded in {@link damaged}. */
  #open({ current, before }: KeyRing, row: SecretRow): string | undefined {
    const key = [current, before].find(one => one?.id === row.key_id)
    const value = key && open(key, row, row.sealed)
    if (value === undefined) {
      this.damaged.set(row.ref, key ? 'vault_secret_damaged' : 'vault_key_wrong')
      return undefined
    }
    this.damaged.delete(row.ref)
    if (!this.hidden.has(row.ref, row.version))
      this.hidden.keep(row.ref, row.version, this.hidden.hide(row.ref, value, row.allow_short))
    return value
  }

  #shape(row: SecretRow): VaultSecret {
    return secrets.wire(row, VaultSecret, {
      namespace: row.ref.slice(SCHEME.length, row.ref.indexOf('/')),
      present: this.#keys.problem() === undefined && !this.damaged.has(row.ref),
    })
  }

  #hide(ref: string, value: string, short: boolean): () => void {
    // U+FFFD marks text that was damaged in transit; such a secret would not work.
    if (value.includes('\0') || /[\p{Surrogate}\ufffd]/u.test(value))
      throw VaultErrors.vault_value_invalid('the value contains NUL or is not text', { next: 'store bytes as base64' })
    try {
      return this.hidden.hide(ref, value, short)
    } catch (error) {
      throw refusals[faultOf(error).code]?.(short) ?? error
    }
  }

  #damage(ref: string): Fault {
    const next = command('vault put', ref)
    return this.damaged.get(ref) === 'vault_key_wrong'
      ? VaultErrors.vault_key_wrong(`${ref} is encrypted with a key that the daemon does not have`, { next })
      : VaultErrors.vault_secret_damaged(`${ref} cannot be decrypted: its record was changed or damaged`, { next })
  }
}

const mayForget = (consumer: string, path: string) => mayUse(consumer, path) || mayUse(consumer, `${path}/`)

type Deleted = NonNullable<SecretOwner['deleted']>

const by = (actor: Actor | undefined) => (actor ? { actor } : {})

/** Faults of the contract for values that cannot be hidden. */
const refusals: Readonly<Record<string, (short: boolean) => Fault>> = {
  secret_too_long: () =>
    VaultErrors.vault_value_invalid('the value is longer than 64 KiB', { next: 'store the part of it that is secret' }),
  secret_too_short: short =>
    short
      ? VaultErrors.vault_value_short('the value has fewer than 4 bytes', { next: 'use a longer value' })
      : VaultErrors.vault_value_short(),
}

/** @throws Fault `vault_ref_invalid`, without the text, which may be the secret itself */
function checkedPath(ref: string): string {
  const path = vaultPath(ref)
  if (path === undefined) throw VaultErrors.vault_ref_invalid()
  return path
}
