import { Alarm } from '../../../kernel/kit/alarm.js'
import { column, table } from '../../../kernel/kit/table.js'
import { messageOf } from '../../../kernel/plugin.js'
import { absent, type SecretOwner } from '../../access/vault/api.js'
import { Providers } from './api.js'
import type { K } from './needs.js'

export const entryTable = `CREATE TABLE providers_entry (
  name TEXT PRIMARY KEY,
  missing_since INTEGER
) STRICT`

/** The secrets of a provider, `vault:providers/<name>/…`, are deleted with its configuration entry. */
export const providerSecrets: SecretOwner = { what: 'provider', paths: name => [`providers/${name}`] }

/** Milliseconds for which an entry has to be missing from a file edited by hand. */
const GRACE_MS = 5 * 60_000
const RETRY_MS = 30_000
const LOOK = 'look'

export const remembered = table('providers_entry', {
  name: column.text(),
  missing_since: column.time().nullable(),
})

/**
 * Deletes the secrets of providers whose entries are gone. Entries are stored in a table, so that a daemon that was
 * down during the edit notices it on its next start.
 */
export class EntrySecrets {
  readonly #alarm: Alarm
  /** Entries whose deletion is in progress: their presence is not conclusive yet. */
  readonly #deleting = new Set<string>()

  constructor(
    private readonly kernel: K,
    /** Names of entries that define a provider: a built-in provider exists without its entry. */
    private readonly names: () => readonly string[],
  ) {
    this.#alarm = new Alarm(kernel.clock, { retryMs: RETRY_MS })
  }

  /** Prepares the deletion of an entry. Resolves with a function to call after the write, successful or not. */
  async deleting(name: string): Promise<() => Promise<void>> {
    if (!this.names().includes(name)) return async () => {}
    this.#deleting.add(name)
    await this.kernel.db.tx(t => remembered.replace(t, { name, missing_since: 0 }))
    return () => {
      this.#deleting.delete(name)
      return this.refresh()
    }
  }

  /** Prepares for secrets that are stored before their entry is written. */
  async expect(name: string): Promise<void> {
    await this.kernel.db.tx(t => remembered.delete(t, { name }))
  }

  /** Checks at the start, when the configuration changes, and when a grace period ends. */
  async run(signal: AbortSignal): Promise<void> {
    this.noticed()
    await this.#alarm.run(signal, {
      fire: () => this.refresh(),
      failed: error =>
        this.kernel.log.error('the secrets of deleted providers could not be removed', { why: messageOf(error) }),
    })
  }

  /** Schedules a check, because the configuration may have changed. */
  noticed(): void {
    this.#alarm.set(LOOK, this.kernel.clock.now())
  }

  async refresh(): Promise<void> {
    const now = this.kernel.clock.now()
    const there = new Set(this.names())
    const rows = remembered.all(this.kernel.db)
    const known = new Set(rows.map(({ name }) => name))
    const fresh = [...there].filter(name => !known.has(name))
    const { missed, back, gone } = absent(
      rows,
      ({ name }) => (there.has(name) && this.#deleting.has(name) ? undefined : there.has(name)),
      now,
      GRACE_MS,
    )
    const vault = gone.length > 0 ? this.kernel.needs.vault.current : undefined
    // Without a vault the deletion waits until there is one.
    const forgotten = vault ? gone : []
    if (fresh.length + missed.length + back.length + forgotten.length > 0)
      await this.kernel.db.tx(t => {
        for (const name of fresh) t.run('INSERT OR IGNORE INTO providers_entry VALUES (?, NULL)', [name])
        for (const { name } of missed) remembered.update(t, { name }, { missing_since: now })
        for (const { name } of back) remembered.update(t, { name }, { missing_since: null })
        for (const { name } of forgotten) {
          remembered.delete(t, { name })
          for (const path of providerSecrets.paths(name)) vault?.forget(t, path)
          this.kernel.needs.ownership.tombstone(t, Providers, name)
        }
      })
    const waits = rows.filter(({ name }) => !there.has(name)).length > forgotten.length
    this.#alarm.set(LOOK, waits ? now + GRACE_MS : undefined)
  }
}
