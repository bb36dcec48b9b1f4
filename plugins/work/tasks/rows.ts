import { sqlName } from '../../../kernel/kit/text.js'
import type { SqlValue, Tx } from '../../../kernel/plugin.js'

/** Cache of SQL texts: the same few statements are used repeatedly. */
const statements = new Map<string, string>()

function statementOf(parts: string, make: () => string): string {
  const sql = statements.get(parts) ?? make()
  statements.set(parts, sql)
  return sql
}

/** Inserts a row; its members are named like the columns. */
export function insert<R extends object>(t: Tx, table: string, row: R): void {
  const names = Object.keys(row)
  const sql = statementOf(`+${table} ${names}`, () => {
    const columns = names.map(sqlName).join(', ')
    return `INSERT INTO ${sqlName(table)} (${columns}) VALUES (${names.map(() => '?').join(', ')})`
  })
  t.run(sql, Object.values(row) as SqlValue[])
}

/** Updates columns of the row with that id; `also`: one more assignment, in SQL. */
export function update<R extends object>(t: Tx, table: string, id: string, changes: R, also = ''): void {
  const names = Object.keys(changes)
  if (names.length === 0) return
  const sql = statementOf(`${table} ${names} ${also}`, () => {
    const columns = names.map(name => `${sqlName(name)} = ?`)
    return `UPDATE ${sqlName(table)} SET ${[...columns, ...(also ? [also] : [])].join(', ')} WHERE id = ?`
  })
  t.run(sql, [...(Object.values(changes) as SqlValue[]), id])
}

/** A member of a JSON object that is omitted when empty. */
export const given = <K extends string, T>(name: K, value: T | null | undefined | ''): { readonly [N in K]?: T } =>
  (value === null || value === undefined || value === '' ? {} : { [name]: value }) as { readonly [N in K]?: T }

/** Text of a JSON column; null when undefined or null. */
export const json = (value: unknown): string | null =>
  value === undefined || value === null ? null : JSON.stringify(value)
