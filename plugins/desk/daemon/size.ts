import type { Dirent } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import path from 'node:path'
import { type Clock, type Reads, type SqlValue, turn } from '../../../kernel/plugin.js'
import type { DbSizeReply } from '../../../schemas/daemon.js'

type Item = DbSizeReply['items'][number]

/** Milliseconds that one step may block the event loop; determines the number of rows of the next step. */
const STEP_MS = 2
const FIRST_ROWS = 200
const MOST_ROWS = 20_000
/** Bytes of a cell in addition to its values: its length, its key and the types of its columns. */
const CELL_BYTES = 6
/** Most files that are counted; a home has some for each session. */
const MOST_FILES = 500_000
const FILES_AT_ONCE = 64

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`

/** The home to be measured. */
export interface Measured {
  readonly db: Reads
  readonly clock: Clock
  /** Folder of the home. */
  readonly root: string
  /** Owners of tables, named as in their migration streams. */
  readonly owners: readonly string[]
  readonly signal?: AbortSignal
}

/**
 * Disk usage of a home: tables with their indexes, free pages, folders and files. This build of SQLite has no `dbstat`, so the
 * sizes of all values are summed up step by step. The remaining bytes of the database pages are distributed over the tables in
 * proportion.
 */
export async function measure(of: Measured): Promise<DbSizeReply> {
  const { db } = of
  const [[pageBytes, pages, free] = []] = db.rows(
    `SELECT (SELECT page_size FROM pragma_page_size), (SELECT page_count FROM pragma_page_count),
       (SELECT freelist_count FROM pragma_freelist_count)`,
  ) as number[][]
  const bytes = (pageBytes ?? 0) * (pages ?? 0)
  const freeBytes = (pageBytes ?? 0) * (free ?? 0)
  const tables: Item[] = []
  for (const [name] of db.rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")) {
    of.signal?.throwIfAborted()
    tables.push(await measureTable(of, String(name)))
  }
  const sum = tables.reduce((total, { bytes }) => total + bytes, 0)
  const scale = sum > 0 ? (bytes - freeBytes) / sum : 0
  const { items, complete } = await measureFiles(of.root, of.signal)
  const all: Item[] = [
    ...tables.map(item => ({ ...item, bytes: Math.round(item.bytes * scale) })),
    { kind: 'free', name: 'free pages of svc.db', entries: free ?? 0, bytes: freeBytes },
    ...items,
  ]
  return {
    database_bytes: bytes,
    free_bytes: freeBytes,
    home_bytes: bytes + items.reduce((total, item) => total + item.bytes, 0),
    complete,
    items: all.sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1)),
  }
}

async function measureTable({ db, clock, owners, signal }: Measured, table: string): Promise<Item> {
  const columns = db.rows('SELECT name, pk FROM pragma_table_info(?) ORDER BY cid', [table])
  const names = columns.map(([name]) => String(name))
  const rowid = db.row("SELECT 1 FROM pragma_table_list WHERE schema = 'main' AND name = ? AND wr = 0", [table])
  const primary = columns.filter(([, pk]) => Number(pk) > 0).sort((a, b) => Number(a[1]) - Number(b[1]))
  const keys = rowid ? ['rowid'] : primary.map(([name]) => quoted(String(name)))
  const sizes = names.map(name => `coalesce(octet_length(${quoted(name)}), 0)`)
  const sums = [sizes.join(' + '), ...indexesOf(db, table, sizes, names)]
  const inner = [...keys.map((key, at) => `${key} AS k${at}`), ...sums.map((sum, at) => `${sum} AS s${at}`)]
  const order = keys.join(', ')
  const step = (after: string) => `SELECT ${inner.join(', ')} FROM ${quoted(table)} ${after} ORDER BY ${order} LIMIT +?`
  let entries = 0
  let bytes = 0
  let limit = FIRST_ROWS
  for (let last: SqlValue[] | undefined; ; ) {
    const began = clock.monotonic()
    const after = last ? `WHERE (${order}) > (${keys.map(() => '?').join(', ')})` : ''
    const rows = db.rows(step(after), [...(last ?? []), limit])
    for (const row of rows)
      for (let at = keys.length; at < row.length; at++) if (row[at] !== null) bytes += Number(row[at]) + CELL_BYTES
    entries += rows.length
    if (rows.length < limit) break
    last = rows.at(-1)?.slice(0, keys.length)
    const took = clock.monotonic() - began
    limit = Math.max(50, Math.min(MOST_ROWS, Math.round(took > 0 ? (limit * STEP_MS) / took : limit * 2), limit * 2))
    await turn()
    signal?.throwIfAborted()
  }
  await turn()
  return { kind: 'table', name: table, owner: ownerOf(table, owners), entries, bytes }
}

/** For each index, an expression for the size of one entry; null if the row is not in the index. */
function indexesOf(db: Reads, table: string, sizes: readonly string[], names: readonly string[]): string[] {
  const indexes = db.rows(
    `SELECT l.name, l.partial, s.sql FROM pragma_index_list(?) l LEFT JOIN sqlite_schema s ON s.name = l.name
     WHERE l.origin <> 'pk' OR s.sql IS NULL`,
    [table],
  )
  return indexes.map(([index, partial, sql]) => {
    const columns = db.rows('SELECT name FROM pragma_index_xinfo(?) WHERE key = 1', [String(index)])
    const sum = columns.map(([name]) => sizes[names.indexOf(String(name))] ?? '0').join(' + ') || '0'
    const where = Number(partial) === 1 ? /\bWHERE\b([\s\S]*)$/i.exec(String(sql))?.[1] : undefined
    return where ? `CASE WHEN ${where} THEN ${sum} END` : sum
  })
}

/** The owner with the longest prefix that matches the table's name. */
function ownerOf(table: string, owners: readonly string[]): string {
  const prefix = (owner: string) => `${owner.replaceAll(/[.-]/g, '_')}_`
  const found = owners.filter(owner => table.startsWith(prefix(owner)))
  return found.sort((a, b) => b.length - a.length)[0] ?? 'kernel'
}

/** Sizes of the entries of the home's folder, except the database, which is reported as tables. */
async function measureFiles(root: string, signal?: AbortSignal): Promise<{ items: Item[]; complete: boolean }> {
  const items: Item[] = []
  let left = MOST_FILES
  const sizeOf = async (file: string) => (await lstat(file).catch(() => undefined))?.size ?? 0
  for (const entry of await entriesOf(root)) {
    const at = path.join(root, entry.name)
    if (entry.name === 'svc.db') continue
    if (!entry.isDirectory()) {
      items.push({ kind: 'file', name: entry.name, entries: 1, bytes: await sizeOf(at) })
      continue
    }
    let [entries, bytes] = [0, 0]
    const folders = [at]
    for (let folder = folders.pop(); folder !== undefined && left > 0; folder = folders.pop()) {
      signal?.throwIfAborted()
      const files: string[] = []
      for (const one of await entriesOf(folder)) {
        if (one.isDirectory()) folders.push(path.join(folder, one.name))
        else files.push(path.join(folder, one.name))
      }
      for (let from = 0; from < files.length && left > 0; from += FILES_AT_ONCE) {
        const some = await Promise.all(files.slice(from, from + FILES_AT_ONCE).map(sizeOf))
        for (const size of some) bytes += size
        entries += some.length
        left -= some.length
      }
    }
    items.push({ kind: 'folder', name: `${entry.name}/`, entries, bytes })
  }
  return { items, complete: left > 0 }
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  return readdir(folder, { withFileTypes: true }).catch(() => [])
}
