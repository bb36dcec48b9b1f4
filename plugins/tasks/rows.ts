import { sqlName } from '../../kernel/kit/text.js'
import type { SqlValue, Tx } from '../../kernel/plugin.js'

/** Adds a row; the names of its members are those of columns. */
export function insert<R extends object>(t: Tx, table: string, row: R): void {
  const names = Object.keys(row).map(sqlName)
  const sql = `INSERT INTO ${sqlName(table)} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`
  t.run(sql, Object.values(row) as SqlValue[])
}

/** Changes columns of the row with that id. */
export function update<R extends object>(t: Tx, table: string, id: string, changes: R): void {
  const names = Object.keys(changes).map(name => `${sqlName(name)} = ?`)
  if (names.length === 0) return
  const sql = `UPDATE ${sqlName(table)} SET ${names.join(', ')} WHERE id = ?`
  t.run(sql, [...(Object.values(changes) as SqlValue[]), id])
}

/** A member of plain JSON that is there only where there is something to say. */
export const given = <K extends string, T>(name: K, value: T | null | undefined | ''): { readonly [N in K]?: T } =>
  (value === null || value === undefined || value === '' ? {} : { [name]: value }) as { readonly [N in K]?: T }

/** Text of a JSON column; null for what is not there. */
export const json = (value: unknown): string | null =>
  value === undefined || value === null ? null : JSON.stringify(value)
