import type { Db, SqlValue, Tx } from '../contract/storage.js'
import { type Condition, matching } from './table.js'
import { sqlName } from './text.js'

/** Columns and values that identify the rows of one history. */
type Of<R> = { readonly [C in keyof R & string]?: R[C] | undefined }

/** Rows to keep. With both members, a row is deleted only if it is neither among the newest nor recent enough. */
export interface Retention {
  /** Number of newest rows to keep. */
  readonly newest?: number
  /** Rows of this time and later are kept, in the unit of the time column. */
  readonly since?: number
}

export interface HistoryOptions {
  /** Table of the plugin with a column `seq INTEGER PRIMARY KEY`, the order of its rows. */
  readonly table: string
  /** SQL expression of the time of a row, for `since`; default `at`. */
  readonly time?: string
  /** SQL condition of the rows that belong to the past; others are neither counted nor pruned. Default: all. */
  readonly ended?: string
}

/**
 * Append-only rows, read newest first, and pruned by count and age. One table holds many histories, each identified by its values
 * in the columns that a call names. Names and conditions are the author's, values are bound.
 */
export class History<R extends { readonly seq: number }> {
  readonly #table: string

  constructor(
    private readonly db: Pick<Db, 'all'>,
    private readonly options: HistoryOptions,
  ) {
    this.#table = sqlName(options.table)
  }

  /** Adds a row as the newest one. */
  append(t: Tx, row: Omit<R, 'seq'>): void {
    const names = Object.keys(row).map(sqlName)
    const marks = names.map(() => '?')
    t.run(`INSERT INTO ${this.#table} (${names.join(', ')}) VALUES (${marks.join(', ')})`, Object.values(row))
  }

  /** The newest row of a history. */
  newest(of: Of<R>): R | undefined {
    return this.page(of, { limit: 1 })[0]
  }

  /** Rows older than the row at `behind`, newest first, at most `limit` (-1: all). */
  page(of: Of<R>, { limit, behind }: { readonly limit: number; readonly behind?: number | undefined }): R[] {
    const { sql: where, params } = whereOf(of)
    const sql = `SELECT * FROM ${this.#table} WHERE ${where} AND seq < ? ORDER BY seq DESC LIMIT +?`
    return this.db.all<R>(sql, [...params, behind ?? Number.MAX_SAFE_INTEGER, limit])
  }

  /** Removes the newest row of a history. */
  pop(t: Tx, of: Of<R>): void {
    const { sql: where, params } = whereOf(of)
    t.run(`DELETE FROM ${this.#table} WHERE seq = (SELECT max(seq) FROM ${this.#table} WHERE ${where})`, params)
  }

  /** Deletes the rows of a history that need not be kept; returns their number. */
  prune(t: Tx, of: Of<R>, { newest, since }: Retention): number {
    if (newest === undefined && since === undefined) return 0
    const { sql: where, params } = whereOf(of)
    const { time = 'at', ended = 'true' } = this.options
    const mine = `${where} AND (${ended})`
    const oldest = `SELECT seq FROM ${this.#table} WHERE ${mine} ORDER BY seq DESC LIMIT 1 OFFSET ?`
    const old = matching([mine, ...params], [`seq <= (${oldest})`, ...params, newest], [`(${time}) < ?`, since])
    return t.run(`DELETE FROM ${this.#table} WHERE ${old.sql}`, old.params).changes
  }

  /** Removes a history. */
  forget(t: Tx, of: Of<R>): void {
    const { sql: where, params } = whereOf(of)
    t.run(`DELETE FROM ${this.#table} WHERE ${where}`, params)
  }
}

const whereOf = (of: Readonly<Record<string, unknown>>) =>
  matching(...Object.entries(of).map(([column, value]): Condition => [`${sqlName(column)} = ?`, value as SqlValue]))
