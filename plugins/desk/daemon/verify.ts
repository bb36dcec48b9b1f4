import { closeSync } from 'node:fs'
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { openRegularFile } from '../../../kernel/kit/read-file.js'
import { acquireLock, openStore } from '../../../kernel/platform.js'
import {
  type Awaitable,
  Fault,
  messageOf,
  type Reads,
  type SqlValue,
  systemClock,
  turn,
} from '../../../kernel/plugin.js'
import type { Checked } from '../../platform/journals/api.js'
import { segmentsIn } from '../archives/api.js'

/** Runs a statement and returns its rows. */
type Rows = (sql: string, params?: readonly SqlValue[]) => Awaitable<SqlValue[][]>

const TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"

/**
 * SQLite's integrity_check and foreign_key_check, one table with its indexes per turn of the event loop. A table blocks the thread
 * for about 4 ms per MB.
 */
export async function verifyDatabase(rows: Rows): Promise<Checked[]> {
  const checked: Checked[] = []
  for (const [name] of await rows(TABLES)) {
    checked.push(await verifyTable(rows, String(name)))
    await turn()
  }
  return checked
}

const verifyReads = (db: Reads) => verifyDatabase((sql, params) => db.rows(sql, params))

async function verifyTable(rows: Rows, name: string): Promise<Checked> {
  const problems: string[] = []
  let entries = 0
  try {
    for (const [text] of await rows('SELECT * FROM pragma_integrity_check(?)', [name]))
      if (text !== 'ok') problems.push(String(text))
    for (const [, row, parent] of await rows('SELECT * FROM pragma_foreign_key_check(?)', [name]))
      problems.push(`row ${row} refers to a row of ${parent} that does not exist`)
    const [count] = await rows(`SELECT count(*) FROM "${name.replaceAll('"', '""')}"`)
    entries = Number(count?.[0])
  } catch (error) {
    problems.push(messageOf(error))
  }
  return { kind: 'table', name, entries, problems }
}

/**
 * Checks the home of a stopped daemon under its lock, without changing it. The database is copied to a temporary folder, recovered
 * from its log and checked table by table. `others` checks the files that plugins keep beside it.
 * @throws Fault `home_not_found`; `daemon_already_running` while a daemon runs
 */
export async function verifyHome(
  root: string,
  others: (root: string) => Promise<Checked[]> = async () => [],
): Promise<Checked[]> {
  return underLock(root, async () => {
    const archived: Checked[] = []
    for (const segment of await segmentsIn(root)) archived.push(await verifySegment(root, segment))
    return [...(await verifyCopy(root)), ...archived, ...(await others(root))]
  })
}

/** Runs `work` under the lock of a stopped daemon's home. @throws Fault `home_not_found`, `daemon_already_running` */
export async function underLock<T>(root: string, work: () => Promise<T>): Promise<T> {
  if (!(await namesIn(root)).includes('svc.db')) {
    throw new Fault('home_not_found', 404, `there is no database in ${root}`, { next: command('daemon start') })
  }
  const lock = await acquireLock(root, systemClock())
  try {
    return await work()
  } finally {
    await lock.release()
  }
}

/** Checks a segment of an archive, as one entry for all of its tables. */
async function verifySegment(root: string, segment: string): Promise<Checked> {
  const database = { kind: 'database', name: segment } as const
  try {
    const tables = await withCopy(root, verifyReads, segment)
    return {
      ...database,
      entries: tables.reduce((sum, { entries }) => sum + entries, 0),
      problems: tables.flatMap(({ name, problems }) => problems.map(problem => `${name}: ${problem}`)),
    }
  } catch (error) {
    return { ...database, entries: 0, problems: [messageOf(error)] }
  }
}

async function verifyCopy(root: string): Promise<Checked[]> {
  const database = { kind: 'database', name: 'svc.db', entries: 0, problems: [] } as const
  try {
    const tables = await withCopy(root, verifyReads)
    return [{ ...database, entries: tables.length }, ...tables]
  } catch (error) {
    return [{ ...database, problems: [messageOf(error)] }]
  }
}

/**
 * Opens a copy of a database of a home in a temporary folder, which is removed afterwards.
 * @param file path below the home; default: the catalog
 */
export async function withCopy<T>(root: string, use: (db: Reads) => Promise<T>, file = 'svc.db'): Promise<T> {
  const [folder, base] = [path.join(root, path.dirname(file)), path.basename(file)]
  const copy = await mkdtemp(path.join(tmpdir(), 'svc-verify-'))
  try {
    for (const name of await namesIn(folder))
      if (name === base || (name.startsWith(`${base}-`) && /^\w+$/.test(name.slice(base.length + 1))))
        await copyFile(path.join(folder, name), path.join(copy, name))
    const store = await openStore({ path: path.join(copy, base), now: systemClock().now })
    try {
      return await use(store.db)
    } finally {
      await store.close()
    }
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

/** Dereferences links: a write to a copied link would change the original. */
async function copyFile(from: string, to: string): Promise<void> {
  closeSync(await openRegularFile(from))
  await cp(from, to, { dereference: true })
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => [])
}
