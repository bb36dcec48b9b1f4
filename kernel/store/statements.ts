import { type SqliteDatabase, type SqliteStatement, type SqlValue, sqlError } from './engine.js'
import { explain, type Verdict } from './statement-check.js'

/** An array of column values. */
export type Row = SqlValue[]

/** A prepared statement, what is known of it, and the owners it was found allowed for. */
export interface Prepared {
  readonly sql: string
  readonly statement: SqliteStatement
  readonly verdict: Verdict
  readonly allowed: Set<string>
  columns: readonly string[] | undefined
}

/** Statements kept ready; beyond this the least recently used goes. */
const KEPT_STATEMENTS = 400

/** The prepared statements of one database. */
export class Statements {
  readonly #db: SqliteDatabase
  readonly #kept = new Map<string, Prepared>()

  constructor(db: SqliteDatabase) {
    this.#db = db
  }

  /** Throws `statement_refused` for what no one may run, `sql_failed` for what SQLite does not understand. */
  prepare(sql: string): Prepared {
    let prepared = this.#kept.get(sql)
    if (prepared !== undefined) {
      this.#kept.delete(sql)
    } else {
      const verdict = explain(this.#db, sql)
      try {
        prepared = { sql, statement: this.#db.prepare(sql), verdict, allowed: new Set(), columns: undefined }
      } catch (error) {
        throw sqlError(error, sql)
      }
    }
    this.#kept.set(sql, prepared)
    if (this.#kept.size > KEPT_STATEMENTS) {
      const [oldest] = this.#kept
      if (oldest !== undefined) this.#drop(oldest[1])
    }
    return prepared
  }

  /** Runs to its first row only: SQLite makes all changes of a statement before that. */
  run(prepared: Prepared, params: readonly SqlValue[]): { changes: number } {
    this.#each(prepared, params, () => false)
    return { changes: prepared.verdict.writes ? this.#db.getRowsModified() : 0 }
  }

  row(prepared: Prepared, params: readonly SqlValue[]): Row | undefined {
    let found: Row | undefined
    this.#each(prepared, params, row => {
      found = row
      return false
    })
    return found
  }

  rows(prepared: Prepared, params: readonly SqlValue[]): Row[] {
    const found: Row[] = []
    this.#each(prepared, params, row => {
      found.push(row)
      return true
    })
    return found
  }

  /** The row as an object keyed by column. */
  object(prepared: Prepared, row: Row): Record<string, SqlValue> {
    prepared.columns ??= prepared.statement.getColumnNames()
    const object: Record<string, SqlValue> = {}
    for (let i = 0; i < row.length; i++) object[prepared.columns[i] as string] = row[i] as SqlValue
    return object
  }

  /** Forgets all: the schema changes. */
  clear(): void {
    for (const prepared of [...this.#kept.values()]) this.#drop(prepared)
  }

  #drop(prepared: Prepared): void {
    this.#kept.delete(prepared.sql)
    prepared.statement.free()
  }

  #each(prepared: Prepared, params: readonly SqlValue[], take: (row: Row) => boolean): void {
    const { statement } = prepared
    try {
      statement.bind(params)
      while (statement.step() && take(readRow(statement)));
    } catch (error) {
      throw sqlError(error, prepared.sql)
    } finally {
      // An unfinished read would hold back checkpoints.
      statement.reset()
    }
  }
}

/** sql.js reads integers as doubles; those that a double cannot hold are read once more as bigint. */
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
