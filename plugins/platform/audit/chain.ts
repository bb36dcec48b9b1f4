import { matching } from '../../../kernel/kit/table.js'
import { type Db, type Migration, operator, type Tx, turn } from '../../../kernel/plugin.js'
import type { VerifyAuditReply } from '../../../schemas/daemon/audit.js'
import { OPERATOR } from '../../access/identity/api.js'
import { type ChainedRow, COLUMNS, entries, GENESIS, hashOf, type NewEntry, valuesOf } from './entry.js'

export const auditMigrations: readonly Migration[] = [
  {
    id: '001-chain',
    // AUTOINCREMENT remembers the newest number, so that an entry removed from the end is noticed. No index: every change of a
    // record would pay for it, while a rare query by subject can read all entries.
    sql: `CREATE TABLE audit_entry (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL,
        version INTEGER, actor_kind TEXT NOT NULL, actor_id TEXT NOT NULL, origin TEXT, cause TEXT, request TEXT, event TEXT,
        before TEXT, after TEXT, hash TEXT NOT NULL
      ) STRICT;
      CREATE TABLE audit_checkpoint (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash TEXT NOT NULL) STRICT;
      CREATE TABLE audit_state (one INTEGER PRIMARY KEY CHECK (one = 1), key TEXT NOT NULL, config TEXT) STRICT;`,
  },
  { id: '002-on-behalf-of', sql: 'ALTER TABLE audit_entry ADD COLUMN on_behalf_of TEXT' },
]

/** Start of the chain: the newest pruned entry. */
interface Checkpoint {
  readonly seq: number
  readonly hash: string
}

/** End of the chain, after which the next entry is inserted. */
interface End extends Checkpoint {
  /** Hash of the newest entry; null without entries. */
  readonly newest: string | null
  /** Number of the oldest stored entry. */
  readonly first: number
}

/** Limits on the number and the age of entries. */
export interface AuditLimits {
  readonly entries: number
  /** Number of excess entries at which they are pruned together. */
  readonly chunk: number
  readonly maxAgeMs: number
  /** Least and greatest age of the entry that confirms the clock before entries are pruned by age. */
  readonly confirmedMs: readonly [newest: number, oldest: number]
}

const DAY_MS = 86_400_000

export const LIMITS: AuditLimits = {
  entries: 100_000,
  chunk: 500,
  maxAgeMs: 400 * DAY_MS,
  confirmedMs: [DAY_MS, 30 * DAY_MS],
}

/** Rows that are verified in one turn of the event loop. */
const VERIFIED = 1000
const PRUNED = 'audit.pruned'

/**
 * Entries in a hash chain. Pruning keeps the chain verifiable: it appends an entry that attests the hash of the last pruned one,
 * with which the rest begins.
 */
export class Chain {
  /** The end after the last append. It is wrong after a rollback; the next append notices that. */
  #known: End | undefined

  constructor(
    private readonly db: Db,
    private readonly limits: AuditLimits = LIMITS,
  ) {}

  append(t: Tx, entry: NewEntry): void {
    // One statement, since every change of a record pays for it: it inserts only after the expected entry.
    const { seq, first } = this.#insert(t, entry, this.#known) ?? (this.#insert(t, entry, this.#end()) as End)
    const keptFrom = seq + 1 - this.limits.entries
    if (keptFrom - first >= this.limits.chunk) this.#pruneTo(t, keptFrom - 1, entry.at)
  }

  /** Undefined when the newest entry is not the expected one. */
  #insert(t: Tx, entry: NewEntry, behind: End | undefined): End | undefined {
    if (!behind) return undefined
    const seq = behind.seq + 1
    const values = valuesOf(seq, entry)
    const hash = hashOf(behind.hash, values)
    values.push(hash, behind.newest)
    const { changes } = this.db.within(t).run(INSERT, values)
    this.#known = changes === 1 ? { seq, hash, newest: hash, first: behind.first } : undefined
    return this.#known
  }

  /** Prunes entries that are too old, at most one chunk; returns whether there may be more. The newest entry stays. */
  prune(t: Tx, now: number): boolean {
    const sql = 'SELECT max(seq) FROM (SELECT seq FROM audit_entry WHERE at < ? AND seq < ? ORDER BY seq LIMIT +?)'
    const upTo = this.db.row(sql, [now - this.limits.maxAgeMs, this.#newest(), this.limits.chunk])?.[0]
    if (typeof upTo !== 'number' || !this.#isPlausible(now)) return false
    const from = this.#checkpoint().seq
    this.#pruneTo(t, upTo, now)
    return upTo - from >= this.limits.chunk
  }

  /**
   * Whether entries confirm the clock: without one from the last month that is older than a day, the clock may have leapt years
   * ahead, and everything would be pruned before it is corrected.
   */
  #isPlausible(now: number): boolean {
    const {
      confirmedMs: [newest, oldest],
    } = this.limits
    const sql = 'SELECT 1 FROM audit_entry WHERE at BETWEEN ? AND ? ORDER BY seq DESC LIMIT 1'
    return this.db.row(sql, [now - oldest, now - newest]) !== undefined
  }

  /** Entries below `before`, newest first, at most `limit`. */
  page(
    filter: Readonly<Record<'actor' | 'action' | 'subject', string | undefined>> & {
      readonly since: number | undefined
    },
    limit: number,
    before: number = Number.MAX_SAFE_INTEGER,
  ): ChainedRow[] {
    const { sql, params } = conditions(filter)
    return entries.query(this.db, `WHERE seq < ? AND ${sql} ORDER BY seq DESC LIMIT +?`, [before, ...params, limit])
  }

  count(filter: Parameters<Chain['page']>[0]): number {
    const { sql, params } = conditions(filter)
    return Number(this.db.row(`SELECT count(*) FROM audit_entry WHERE ${sql}`, params)?.[0])
  }

  /** The newest entry with these values. */
  newest(where: Parameters<typeof entries.all>[1]): ChainedRow | undefined {
    return entries.all(this.db, where, NEWEST)[0]
  }

  /** The newest entry about the record with this id, else about any other thing with it. */
  newestOfId(id: string): ChainedRow | undefined {
    const ofId = (more: string) =>
      entries.query(this.db, `WHERE substr(subject, -?) = ? AND ${more} ${NEWEST}`, [id.length + 1, `/${id}`])[0]
    return ofId("action LIKE 'record.%'") ?? ofId('cause IS NOT NULL')
  }

  /** Checks every entry; reports the first that was altered or removed. */
  async verify(expect?: string): Promise<VerifyAuditReply> {
    for (;;) {
      const begin = this.#checkpoint()
      const reply = await this.#verifyFrom(begin, expect)
      // Pruning during the check can look like missing entries, so it is repeated.
      if (reply.status === 'ok' || this.#checkpoint().seq === begin.seq) return reply
    }
  }

  async #verifyFrom(begin: Checkpoint, expect: string | undefined): Promise<VerifyAuditReply> {
    const newest = this.#newest()
    let { seq, hash } = begin
    let attested: string | undefined
    let expected = expect === undefined || expect === begin.hash
    const broken = (at: number, problem: string): VerifyAuditReply => {
      return { status: 'broken', checked: seq - begin.seq, ...range(), broken: { seq: at, problem } }
    }
    const range = () => (seq > begin.seq ? { first: begin.seq + 1, last: seq, head: hash } : {})
    const next = () =>
      entries.query(this.db, 'WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT +?', [seq, newest, VERIFIED])
    for (let rows = next(); rows.length > 0; rows = next()) {
      for (const row of rows) {
        if (row.seq !== seq + 1) return broken(seq + 1, 'this entry is missing')
        if (row.hash !== hashOf(hash, valuesOf(row.seq, row)))
          return broken(row.seq, 'this entry, or the one before it, was altered')
        if (row.action === PRUNED) attested = row.after ?? ''
        hash = row.hash
        seq = row.seq
        expected ||= hash === expect
      }
      await turn()
    }
    if (seq !== newest) return broken(seq + 1, 'this entry and all later ones are missing')
    if (begin.seq > 0 && attested !== begin.hash)
      return broken(begin.seq, 'no entry records that the chain was pruned up to here')
    if (!expected) return broken(seq, 'the chain has no entry with the expected hash')
    return { status: 'ok', checked: seq - begin.seq, ...range() }
  }

  #pruneTo(t: Tx, upTo: number, at: number): void {
    const last = this.db.get<Checkpoint>('SELECT seq, hash FROM audit_entry WHERE seq = ?', [upTo])
    if (!last) return
    const { seq: from } = this.#checkpoint()
    const own = this.db.within(t)
    own.run(
      'INSERT INTO audit_checkpoint (one, seq, hash) VALUES (1, ?, ?) ON CONFLICT (one) DO UPDATE SET seq = excluded.seq, hash = excluded.hash',
      [last.seq, last.hash],
    )
    own.run('DELETE FROM audit_entry WHERE seq <= ?', [upTo])
    this.#known = undefined
    this.append(t, { ...NOBODY, at, action: PRUNED, subject: `${from + 1}-${upTo}`, after: last.hash })
  }

  #end(): End {
    const end = this.db.get<Omit<End, 'newest'>>(END)
    if (end) return { ...end, newest: end.hash }
    const seq = this.#newest()
    return { ...this.#checkpoint(), seq, newest: null, first: seq + 1 }
  }

  /** The newest sequence number ever used, from `sqlite_sequence`: a number removed from the end is never used again. */
  #newest(): number {
    return Number(this.db.row("SELECT seq FROM sqlite_sequence WHERE name = 'audit_entry'")?.[0] ?? 0)
  }

  #checkpoint(): Checkpoint {
    return this.db.get<Checkpoint>('SELECT seq, hash FROM audit_checkpoint') ?? { seq: 0, hash: GENESIS }
  }
}

const NEWEST = 'ORDER BY seq DESC LIMIT 1'
const END = `SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'audit_entry') AS seq, hash,
    (SELECT min(seq) FROM audit_entry) AS first
  FROM audit_entry ORDER BY audit_entry.seq DESC LIMIT 1`
const INSERT = `INSERT INTO audit_entry (${COLUMNS.join(', ')}, hash) SELECT ${COLUMNS.map(() => '?').join(', ')}, ?
  WHERE (SELECT hash FROM audit_entry ORDER BY seq DESC LIMIT 1) IS ?`

/** Actor columns of the audit's own entries. */
export const NOBODY = { actor_kind: 'daemon', actor_id: 'audit', origin: 'daemon' } as const

const conditions = ({ actor, action, subject, since }: Parameters<Chain['page']>[0]) =>
  // A kind (`job`) matches all of its records, and a family (`record`) all of its actions. An id matches subjects that contain it
  // (`sessions/ses_1`) and entries that the request or event of that id caused.
  matching(
    // The operator is stored under the id of its authority.
    ['actor_id = ?', actor === OPERATOR ? operator.id : actor],
    [`(action = ? OR substr(action, 1, length(?) + 1) = ? || '.')`, action, action, action],
    [`(instr('/' || subject || '/', '/' || ? || '/') > 0 OR cause = ?)`, subject, subject],
    ['at >= ?', since],
  )
