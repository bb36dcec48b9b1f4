import { timingSafeEqual } from 'node:crypto'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { column, table } from '../../../kernel/kit/table.js'
import { shown } from '../../../kernel/kit/text.js'
import { type Clock, type Db, type Ids, iso, type Migration } from '../../../kernel/plugin.js'
import type { ApiKey } from '../../../schemas/daemon/auth.js'
import { AuthErrors } from './api.js'
import { digestOf } from './operator-token.js'

const MOST = 1000
/** Shortest time in milliseconds between two writes of a key's last use. */
const NOTE_MS = 60_000

export const keyMigrations: readonly Migration[] = [
  {
    id: '001',
    sql: `CREATE TABLE auth_key (
        id TEXT PRIMARY KEY, sha256 BLOB NOT NULL, created_at INTEGER NOT NULL, last_used INTEGER
      ) STRICT`,
  },
  { id: '002-name', sql: 'ALTER TABLE auth_key ADD COLUMN name TEXT' },
]

const { bytes, text, time } = column

export const keys = table('auth_key', {
  id: text(),
  sha256: bytes(),
  created_at: time(),
  last_used: time().optional(),
  name: text().optional(),
})

interface Key {
  readonly id: string
  /** A name chosen by a person, unique among keys. */
  readonly name: string | undefined
  readonly sha256: Uint8Array
  readonly createdAt: number
  usedAt: number | undefined
  notedAt: number
}

/** `svc_key_<16 hex>_<64 hex>`: the part before the secret is shown in lists and identifies the stored hash. */
const KEY = /^svc_(key_[0-9a-f]{16})_[0-9a-f]{64}$/

/**
 * Keys of programs. A key is shown only when it is created; the database holds its SHA-256. A slow hash would be paid by every
 * request and protects nothing more: a key has 256 random bits.
 */
export class ApiKeys {
  readonly #keys = new Map<string, Key>()

  constructor(
    private readonly db: Db,
    private readonly clock: Clock,
    private readonly ids: Ids,
  ) {}

  load(): void {
    for (const { id, name, sha256, created_at: createdAt, last_used: usedAt } of keys.all(
      this.db,
      {},
      'ORDER BY created_at, id',
    ))
      this.#keys.set(id, { id, name, sha256, createdAt, usedAt, notedAt: usedAt ?? 0 })
  }

  /** Creates a key, which is valid once this resolves. Throws `api_keys_full`, `api_key_name_taken`. */
  async create(name?: string): Promise<{ readonly id: string; readonly apiKey: string }> {
    if (this.#keys.size >= MOST) throw AuthErrors.api_keys_full(`there are ${MOST} keys; delete some`)
    const taken = name === undefined ? undefined : this.#called(name)
    if (taken) throw AuthErrors.api_key_name_taken(`the key ${taken.id} has the name ${shown(name ?? '')} already`)
    const id = this.ids.id('key')
    const apiKey = `svc_${id}_${this.ids.hex(32)}`
    const key = { id, name, sha256: digestOf(apiKey), createdAt: this.clock.now(), usedAt: undefined, notedAt: 0 }
    // Added before the write, so that a concurrent request cannot take the same name.
    this.#keys.set(id, key)
    try {
      await this.db.tx(t => keys.insert(t, { id, name, sha256: key.sha256, created_at: key.createdAt }))
    } catch (error) {
      this.#keys.delete(id)
      throw error
    }
    return { id, apiKey }
  }

  /** All keys, oldest first. */
  list(): ApiKey[] {
    return [...this.#keys.values()].map(({ id, name, createdAt, usedAt }) => ({
      id,
      ...(name !== undefined && { name }),
      prefix: `svc_${id}`,
      created_at: iso(createdAt),
      ...(usedAt === undefined ? {} : { last_used: iso(usedAt) }),
    }))
  }

  /** Id of the key with this id or name. Throws `api_key_not_found`. */
  idOf(reference: string): string {
    const id = this.#keys.has(reference) ? reference : this.#called(reference)?.id
    if (id !== undefined) return id
    throw AuthErrors.api_key_not_found(`there is no key ${shown(reference)}. List keys: ${command('auth key list')}`)
  }

  /** Revokes a key immediately; resolves once the revocation is durable. */
  async delete(id: string): Promise<void> {
    this.#keys.delete(id)
    await this.db.tx(t => keys.delete(t, { id }))
  }

  #called(name: string): Key | undefined {
    return [...this.#keys.values()].find(key => key.name === name)
  }

  /** Id of the key that matches a token; the hashes are compared in constant time. */
  find(token: string): string | undefined {
    const key = this.#keys.get(KEY.exec(token)?.[1] ?? '')
    if (!key || !timingSafeEqual(digestOf(token), key.sha256)) return undefined
    this.#note(key)
    return key.id
  }

  #note(key: Key): void {
    key.usedAt = this.clock.now()
    if (key.usedAt - key.notedAt < NOTE_MS) return
    key.notedAt = key.usedAt
    // The time of use is informational, so a failed write does not affect the request.
    void this.db.tx(t => keys.update(t, { id: key.id }, { last_used: key.notedAt })).catch(() => {})
  }
}
