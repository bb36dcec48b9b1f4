import { type Clock, iso } from '../contract/basics.js'
import { defineErrors } from '../contract/errors.js'
import type { Migration, Reads, Tx } from '../contract/storage.js'
import { shown, sqlName } from './text.js'

/** A key that belongs to one holder until a time, in epoch milliseconds. */
export interface Lease {
  readonly key: string
  readonly holder: string
  /**
   * Increases with every claim of the key, even after restarts. A resource must refuse a token smaller than the largest it has
   * seen.
   */
  readonly token: number
  readonly expiresAt: number
}

/** The reference that a holder presents. */
export type LeaseRef = Pick<Lease, 'key' | 'token'>

/** Errors for callers that do not hold the lease. */
export const LeaseErrors = defineErrors({
  lease_held: { status: 409, message: 'another holder has this lease; try again when it has expired' },
  lease_lost: { status: 409, message: 'this lease expired or was released; claim it again' },
})

const LEASE = 'key, holder, token, expires_at AS expiresAt'

/**
 * Leases in a table of the plugin. Every change is part of the caller's transaction, so that protected data is written together
 * with the proof that the lease is still held ({@link fence}). An expired lease is lost at once, even before {@link expire} removes
 * it. When the clock is set back, leases are shortened so that they do not live longer.
 */
export class LeaseTable {
  readonly #table: string

  /** @param table `acme_things_lease`, with the prefix of the plugin */
  constructor(
    table: string,
    private readonly clock: Pick<Clock, 'now'>,
  ) {
    this.#table = sqlName(table)
  }

  /** The migration that makes the table, for the surface. Its owner may read key, holder, token and expires_at (epoch ms). */
  static migration(id: string, table: string): Migration {
    const name = sqlName(table)
    // AUTOINCREMENT never reuses a number, so tokens keep increasing without the rows of ended leases.
    const sql = `CREATE TABLE ${name} (
        token INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, holder TEXT NOT NULL,
        renewed_at INTEGER NOT NULL, expires_at INTEGER NOT NULL
      ) STRICT;
      CREATE INDEX ${name}_expires ON ${name} (expires_at);
      CREATE INDEX ${name}_renewed ON ${name} (renewed_at);`
    return { id, sql }
  }

  /**
   * Gives a key to a holder for so many milliseconds. The current holder is refused as well, since it could be another process of
   * the same name.
   * @throws Fault `lease_held`, with Retry-After
   */
  claim(t: Tx, key: string, holder: string, ttlMs: number): Lease {
    const now = this.clock.now()
    const expiresAt = now + checkedTtl(ttlMs)
    const held = this.#live(t, key)
    if (held) {
      const details = { key, holder: held.holder, expires_at: iso(held.expiresAt) }
      const retryAfter = Math.max(1, Math.ceil((held.expiresAt - now) / 1000))
      const text = `${shown(key)} is held by ${shown(held.holder)} until ${details.expires_at}`
      throw LeaseErrors.lease_held(text, { details, retryAfter })
    }
    t.run(`DELETE FROM ${this.#table} WHERE key = ?`, [key])
    const sql = `INSERT INTO ${this.#table} (key, holder, renewed_at, expires_at) VALUES (?, ?, ?, ?) RETURNING ${LEASE}`
    return t.get<Lease>(sql, [key, holder, now, expiresAt]) as Lease
  }

  /** Extends a lease to so many milliseconds from now: the holder's heartbeat. @throws Fault `lease_lost` */
  renew(t: Tx, { key, token }: LeaseRef, ttlMs: number): Lease {
    const now = this.clock.now()
    const lease = { ...this.fence(t, { key, token }), expiresAt: now + checkedTtl(ttlMs) }
    const sql = `UPDATE ${this.#table} SET renewed_at = ?, expires_at = ? WHERE token = ?`
    t.run(sql, [now, lease.expiresAt, token])
    return lease
  }

  /** Proves that a lease is held, in the transaction of the protected change. @throws Fault `lease_lost` */
  fence(t: Tx, { key, token }: LeaseRef): Lease {
    const held = this.#live(t, key)
    if (held?.token === token) return held
    throw LeaseErrors.lease_lost(`the lease ${token} of ${shown(key)} is no longer held`, { details: { key } })
  }

  /** Releases a lease; false when it was already lost. */
  release(t: Tx, { key, token }: LeaseRef): boolean {
    if (this.#live(t, key)?.token !== token) return false
    return t.run(`DELETE FROM ${this.#table} WHERE token = ?`, [token]).changes > 0
  }

  /** Deletes and returns expired leases, the oldest first, at most `limit`, so that the caller can report them. */
  expire(t: Tx, limit = 100): Lease[] {
    const now = this.clock.now()
    this.#correct(t, now)
    const sql = `SELECT ${LEASE} FROM ${this.#table} WHERE expires_at <= ? ORDER BY expires_at, token LIMIT +?`
    const expired = t.all<Lease>(sql, [now, limit])
    for (const { token } of expired) t.run(`DELETE FROM ${this.#table} WHERE token = ?`, [token])
    return expired
  }

  /** The current lease of a key. */
  get(reads: Reads, key: string): Lease | undefined {
    const sql = `SELECT ${LEASE} FROM ${this.#table} WHERE key = ? AND expires_at > ?`
    return reads.get<Lease>(sql, [key, this.clock.now()])
  }

  /** When the next lease expires, in epoch milliseconds, to set an alarm. */
  nextExpiry(reads: Reads): number | undefined {
    const at = reads.row(`SELECT min(expires_at) FROM ${this.#table}`)?.[0]
    return typeof at === 'number' ? at : undefined
  }

  #live(t: Tx, key: string): Lease | undefined {
    this.#correct(t, this.clock.now(), key)
    return this.get(t, key)
  }

  /** A lease that was renewed in the future was renewed before the clock was set back. */
  #correct(t: Tx, now: number, key?: string): void {
    t.run(
      `UPDATE ${this.#table} SET expires_at = expires_at - (renewed_at - ?1), renewed_at = ?1
       WHERE renewed_at > ?1 AND ifnull(?2, key) = key`,
      [now, key ?? null],
    )
  }
}

function checkedTtl(ttlMs: number): number {
  if (Number.isSafeInteger(ttlMs) && ttlMs > 0) return ttlMs
  throw new RangeError(`the duration of a lease must be a positive whole number of milliseconds, not ${ttlMs}`)
}
