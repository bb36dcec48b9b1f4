import type { Tx } from '../../kernel/contract/storage.js'
import { eventMigrations } from '../../plugins/platform/events/rows.js'
import type { NativeDatabase } from './native.js'

/** What the daemon does most; the same statements on both sides. */
export const WORKLOADS = ['upsert', 'claim', 'list', 'event'] as const
export type Workload = (typeof WORKLOADS)[number]

export const NOTES = 10_000
const BODY = 'x'.repeat(1024)
const LEASE_BODY = 'x'.repeat(200)
const PAYLOAD = JSON.stringify({ text: 'x'.repeat(187) })

export const SCHEMA = `
  CREATE TABLE bench_note (id TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
  CREATE UNIQUE INDEX bench_note_id ON bench_note (id);
  CREATE TABLE bench_lease (id TEXT NOT NULL, until INTEGER NOT NULL, owner TEXT, body TEXT NOT NULL) STRICT;
  CREATE INDEX bench_lease_until ON bench_lease (until);
  ${eventMigrations[0]?.sql.replaceAll('kernel_event', 'bench_event')}`

const SQL = {
  note: 'INSERT INTO bench_note (id, version, body) VALUES (?, 1, ?)',
  lease: 'INSERT INTO bench_lease (id, until, body) VALUES (?, ?, ?)',
  version: 'SELECT version FROM bench_note WHERE id = ?',
  upsert: `INSERT INTO bench_note (id, version, body) VALUES (?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET version = excluded.version, body = excluded.body`,
  claim: `UPDATE bench_lease SET until = ?, owner = ?
    WHERE rowid = (SELECT rowid FROM bench_lease WHERE until <= ? ORDER BY until LIMIT 1) RETURNING id, body`,
  list: 'SELECT id, version, body FROM bench_note WHERE id >= ? ORDER BY id LIMIT 50',
  event: `INSERT INTO bench_event (id, at, name, actor_kind, actor_id, cause, scope, subject, payload)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq`,
} as const

const nameOf = (n: number) => `note-${String(n).padStart(6, '0')}`

/** The parameters of one unit after the other: notes in an order that jumps about, leases by a clock of their own. */
class Units {
  readonly #versions = new Uint32Array(NOTES).fill(1)
  #note = 0
  #tick = NOTES
  #event = 0

  /** A note, its version as its last writer knows it. */
  note(): { n: number; id: string; version: number } {
    this.#note = (this.#note + 7919) % NOTES
    return { n: this.#note, id: nameOf(this.#note), version: this.#versions[this.#note] as number }
  }

  wrote(n: number): void {
    this.#versions[n] = (this.#versions[n] as number) + 1
  }

  lease(): (string | number)[] {
    const now = ++this.#tick
    return [now + NOTES, 'worker-1', now]
  }

  from(): string {
    this.#note = (this.#note + 7919) % NOTES
    return nameOf(Math.min(this.#note, NOTES - 50))
  }

  event(): (string | number | null)[] {
    const n = ++this.#event
    return [`evt_${n}`, n, 'bench.event', 'daemon', 'bench', null, null, `note/${n % 1000}`, PAYLOAD]
  }
}

const check = (holds: boolean) => {
  if (!holds) throw new Error('a unit of work did not do what it should')
}

/** One unit of each workload, inside a transaction of our store; `list` reads outside of one. */
export function ourUnits(units = new Units()) {
  return {
    fill(t: Tx): void {
      for (let n = 0; n < NOTES; n++) {
        t.run(SQL.note, [nameOf(n), BODY])
        t.run(SQL.lease, [`lease-${n}`, n, LEASE_BODY])
      }
    },
    upsert(t: Tx): void {
      const { n, id, version } = units.note()
      check(t.row(SQL.version, [id])?.[0] === version)
      check(t.run(SQL.upsert, [id, version + 1, BODY]).changes === 1)
      units.wrote(n)
    },
    claim: (t: Tx): void => check(t.row(SQL.claim, units.lease()) !== undefined),
    event: (t: Tx): void => check(t.row(SQL.event, units.event()) !== undefined),
    list: (db: Pick<Tx, 'all'>): void => check(db.all(SQL.list, [units.from()]).length === 50),
  }
}

/** The same on better-sqlite3, statements prepared once. */
export function nativeUnits(db: NativeDatabase, units = new Units()) {
  const note = db.prepare(SQL.note)
  const lease = db.prepare(SQL.lease)
  const version = db.prepare(SQL.version).pluck()
  const upsert = db.prepare(SQL.upsert)
  const claim = db.prepare(SQL.claim)
  const list = db.prepare(SQL.list)
  const event = db.prepare(SQL.event)
  return {
    fill(): void {
      for (let n = 0; n < NOTES; n++) {
        note.run(nameOf(n), BODY)
        lease.run(`lease-${n}`, n, LEASE_BODY)
      }
    },
    upsert(): void {
      const { n, id, version: known } = units.note()
      check(version.get(id) === known)
      check(upsert.run(id, known + 1, BODY).changes === 1)
      units.wrote(n)
    },
    claim: (): void => check(claim.get(...units.lease()) !== undefined),
    event: (): void => check(event.get(...units.event()) !== undefined),
    list: (): void => check(list.all(units.from()).length === 50),
  }
}
