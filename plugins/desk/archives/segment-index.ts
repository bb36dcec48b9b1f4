import { sqlName } from '../../../kernel/kit/text.js'
import type { Reads, Tx } from '../../../kernel/plugin.js'

/** An id of the kernel: a prefix and eight random bytes. */
const MADE = /^([a-z]+)_([0-9a-f]{16})$/
const HEX = '[0-9a-f]'.repeat(16)

/**
 * Maps ids to archive segments, in tables of the catalog. An id made by the kernel is stored as the integer of its random bytes,
 * in the table of its prefix; any other id is stored as text.
 */
export class SegmentIndex {
  readonly #integers: ReadonlyMap<string, string>
  readonly #texts: string

  /**
   * @param integers tables with the columns `id INTEGER PRIMARY KEY` and `segment INTEGER`, by the prefix of their ids
   * @param texts table with the columns `id TEXT PRIMARY KEY` and `segment INTEGER` for other ids
   */
  constructor(integers: Readonly<Record<string, string>>, texts: string) {
    this.#integers = new Map(Object.entries(integers).map(([prefix, table]) => [prefix, sqlName(table)]))
    this.#texts = sqlName(texts)
  }

  /** The segment of an id; undefined for one that is not in the archive. */
  segmentOf(reads: Reads, id: string): number | undefined {
    const made = this.#made(id)
    const found = made && reads.row(`SELECT segment FROM ${made.table} WHERE id = ?`, [made.key])?.[0]
    const segment = found ?? reads.row(`SELECT segment FROM ${this.#texts} WHERE id = ?`, [id])?.[0]
    return typeof segment === 'number' ? segment : undefined
  }

  put(t: Tx, ids: readonly string[], segment: number): void {
    for (const [table, keys] of this.#byTable(ids))
      t.run(`INSERT OR REPLACE INTO ${table} (id, segment) SELECT value, ? FROM json_each(?)`, [segment, keys])
  }

  remove(t: Tx, ids: readonly string[]): void {
    for (const [table, keys] of this.#byTable(ids))
      t.run(`DELETE FROM ${table} WHERE id IN (SELECT value FROM json_each(?))`, [keys])
    t.run(`DELETE FROM ${this.#texts} WHERE id IN (SELECT value FROM json_each(?))`, [JSON.stringify(ids)])
  }

  /** Segments that hold at least one id, newest first. */
  segments(reads: Reads): number[] {
    const sql = [...this.#integers.values(), this.#texts].map(table => `SELECT segment FROM ${table}`).join(' UNION ')
    return reads.rows(`SELECT segment FROM (${sql}) ORDER BY segment DESC`).map(([segment]) => Number(segment))
  }

  /** Converts up to `most` text ids of an earlier version to integers. Returns the number converted. */
  shorten(t: Tx, most: number): number {
    let left = most
    for (const prefix of this.#integers.keys()) {
      const sql = `SELECT id, segment FROM ${this.#texts} WHERE id GLOB ? LIMIT +?`
      const rows = t.rows(sql, [`${prefix}_${HEX}`, left])
      for (const [id, segment] of rows) {
        t.run(`DELETE FROM ${this.#texts} WHERE id = ?`, [id ?? null])
        this.put(t, [String(id)], Number(segment))
      }
      left -= rows.length
    }
    return most - left
  }

  /** Groups ids by their table, each group as a JSON array. */
  #byTable(ids: readonly string[]): Map<string, string> {
    const keys = new Map<string, string[]>()
    for (const id of ids) {
      const { table, key } = this.#made(id) ?? { table: this.#texts, key: JSON.stringify(id) }
      const found = keys.get(table)
      if (found) found.push(`${key}`)
      else keys.set(table, [`${key}`])
    }
    return new Map([...keys].map(([table, of]) => [table, `[${of.join(',')}]`]))
  }

  #made(id: string): { readonly table: string; readonly key: bigint } | undefined {
    const [, prefix = '', hex = ''] = MADE.exec(id) ?? []
    const table = this.#integers.get(prefix)
    return table === undefined ? undefined : { table, key: BigInt.asIntN(64, BigInt(`0x${hex}`)) }
  }
}
