import { stat } from 'node:fs/promises'
import { column, type RowOf, table } from '../../../kernel/kit/table.js'
import type { Db, Ids, Inherited } from '../../../kernel/plugin.js'
import { idsOf, inspectProcess } from './inspect.js'
import { numberIn } from './mark.js'
import { homeNumber } from './marking.js'

const { integer, text } = column

export const processes = table('kernel_process', {
  pid: integer(),
  start_time: text().as('startTime'),
  pgid: integer().as('group'),
  /** The plugin that it was started for. */
  owner: text(),
  label: text(),
})

export const meta = table('kernel_meta', { key: text(), value: text() })

/** The row of a running process, by which the next daemon finds leftovers of this one. */
export type ProcessRow = RowOf<typeof processes>

/** The store of the rows; both writes are durable when they resolve. */
export interface ProcessTable {
  add(row: ProcessRow): Promise<void>
  remove(pid: number, startTime: string): Promise<void>
  list(): ProcessRow[]
}

/** In the kernel's stream, from the time when the kernel itself started processes. */
export const processTables: Inherited = {
  stream: 'kernel',
  prefixes: ['kernel_process', 'kernel_meta'],
  migrations: [
    {
      id: '001-process',
      sql: `CREATE TABLE kernel_process (
      pid INTEGER NOT NULL, start_time TEXT NOT NULL, pgid INTEGER NOT NULL, owner TEXT NOT NULL, label TEXT NOT NULL,
      PRIMARY KEY (pid, start_time)
    ) STRICT;
    CREATE TABLE kernel_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;`,
    },
  ],
}

/** The running processes of this home, stored in the database so that the next start finds those that a crash left. */
export function processTable(db: Db): ProcessTable {
  return {
    add: row => db.tx(t => processes.replace(t, row)),
    remove: (pid, startTime) => db.tx(t => void processes.delete(t, { pid, startTime })),
    list: () => processes.all(db),
  }
}

/**
 * A unique name of this home: created at its first start, combined with device and inode of the folder. So a copied home, which
 * includes the database, never ends the processes of its original.
 */
export async function homeIdentity(db: Db, root: string, ids: Ids) {
  const { dev, ino } = await stat(root)
  const found = meta.get(db, { key: 'home_id' })
  const { value } = found ?? { value: ids.hex(16) }
  if (!found) await db.tx(t => meta.insert(t, { key: 'home_id', value }))
  return { homeId: `${value}.${dev.toString(16)}.${ino.toString(16)}`, isNew: !found }
}

/**
 * The rows of this home. A copied home also has rows of its original, which are recognized by the marks and ids of their processes.
 */
export async function ownRows(table: ProcessTable, homeId: string): Promise<ProcessRow[]> {
  const rows: ProcessRow[] = []
  for (const row of table.list()) {
    if (isOfAnotherHome(row, homeId)) await table.remove(row.pid, row.startTime)
    else rows.push(row)
  }
  return rows
}

function isOfAnotherHome({ pid, startTime }: ProcessRow, homeId: string): boolean {
  const proc = inspectProcess(pid, process.platform)
  if (proc === undefined || proc.ended || proc.startTime !== startTime) return false
  const named = idsOf(pid, process.platform).homeId
  return (proc.mark !== 0 && numberIn(proc.mark, homeNumber(homeId)) === 0) || (named !== '' && named !== homeId)
}
