import type { Row, SqlValue } from '../contract/storage.js'
import { type SqliteDatabase, type SqliteStatement, sqlError } from './engine.js'
import { explain, type Owner, type Verdict } from './statement-check.js'

/** A prepared statement, its verdict, and the owners that may run it. */
export class Prepared {
  readonly allowed = new WeakSet<Owner>()
  /** Number of the latest {@link Statements.prepare} call for it. */
  lastUse = 0
  #columns: readonly string[] | undefined

  constructor(
    readonly sql: string,
    readonly statement: SqliteStatement,
    readonly verdict: Verdict,
    readonly db: SqliteDatabase,
  ) {}

  /** Runs to its first row only: SQLite makes all changes of a statement before that. */
  run(params: readonly SqlValue[]): { changes: number } {
    this.rows(params, 1)
    return { changes: this.verdict.writes ? this.db.getRowsModified() : 0 }
  }

  rows(params: readonly SqlValue[], limit = Infinity): Row[] {
    const { statement } = this
    const found: Row[] = []
    try {
      statement.bind(params)
      while (found.length < limit && statement.step()) found.push(readRow(statement))
      return found
    } catch (error) {
      throw sqlError(error, this.sql)
    } finally {
      // An unfinished read would hold back checkpoints.
      statement.reset()
    }
  }

  /** A row as an object keyed by column. */
  object(row: Row): Record<string, SqlValue> {
    this.#columns ??= this.statement.getColumnNames()
    const object: Record<string, SqlValue> = {}
    for (let i = 0; i < row.length; i++) object[this.#columns[i] as string] = row[i] as SqlValue
    return object
  }
}

/**
 * SQLite plans by the value of a bare parameter after `=`, and so plans anew each time it is bound, which costs more than most
 * reads. A plus before the parameter prevents that and changes nothing else. Quoted text and comments are left alone.
 */
const plannedOnce = (sql: string): string =>
  sql.replace(/--.*|\/\*[\s\S]*?\*\/|'[^']*'|"[^"]*"|(=\s*)\?/g, (text, equals) => (equals ? `${equals}+?` : text))

/** Maximum number of prepared statements; beyond it the least recently used one is freed. */
const KEPT_STATEMENTS = 400

/** The prepared statements of one database. */
export class Statements {
  readonly #kept = new Map<string, Prepared>()
  #uses = 0

  constructor(readonly db: SqliteDatabase) {}

  /** Throws `statement_refused` for a forbidden statement, `sql_failed` for one that SQLite does not understand. */
  prepare(sql: string): Prepared {
    let prepared = this.#kept.get(sql)
    if (prepared === undefined) {
      const verdict = explain(this.db, sql)
      try {
        prepared = new Prepared(sql, this.db.prepare(plannedOnce(sql)), verdict, this.db)
      } catch (error) {
        throw sqlError(error, sql)
      }
      if (this.#kept.size >= KEPT_STATEMENTS) {
        const oldest = [...this.#kept.values()].reduce((one, other) => (one.lastUse < other.lastUse ? one : other))
        oldest.statement.free()
        this.#kept.delete(oldest.sql)
      }
      this.#kept.set(sql, prepared)
    }
    prepared.lastUse = ++this.#uses
    return prepared
  }

  /** Frees all statements, because the schema changes. */
  clear(): void {
    for (const { statement } of this.#kept.values()) statement.free()
    this.#kept.clear()
  }
}

/** sql.js reads integers as doubles; a row with an integer beyond their precision is read again as bigint. */
function readRow(statement: SqliteStatement): Row {
  const row = statement.get(null)
  for (let i = 0; i < row.length; i++) {
    const value = row[i]
    if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) {
      return statement.get(null, { useBigInt: true }).map((exact, at) => {
        const near = row[at]
        return typeof near === 'number' && Number.isSafeInteger(near) ? near : (exact as SqlValue)
      })
    }
  }
  return row
}
