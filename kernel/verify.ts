import { closeSync } from 'node:fs'
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { systemClock } from './clock.js'
import type { Reads } from './contract/db.js'
import { Fault, messageOf } from './contract/errors.js'
import { openJournal } from './journal/index.js'
import { openRegularFile } from './kit/read-file.js'
import { acquireLock } from './lock.js'
import { type Disk, systemDisk } from './store/disk.js'
import { openStore } from './store/index.js'

/** One thing that was looked at, and what is wrong with it. */
export interface Checked {
  readonly kind: 'database' | 'table' | 'journal'
  /** File, table or folder. */
  readonly name: string
  /** Rows or records that could be read. */
  readonly entries: number
  readonly problems: readonly string[]
}

/** Folders below the home, and one level below these, can hold a journal. */
const DEPTH = 2
const BATCH = 1000
/** Stands for a file that would be made. */
const NO_FILE = -1

/**
 * SQLite's integrity_check and foreign_key_check, table by table with its indexes, the event loop running in between.
 * One table blocks it, for about 4 ms a MB. What is checked is what SQLite works on: of an open store the image in memory.
 */
export async function verifyDatabase(db: Reads): Promise<Checked[]> {
  const checked: Checked[] = []
  const names = db.rows(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
  )
  for (const name of names.map(([name]) => String(name))) {
    checked.push(verifyTable(db, name))
    await new Promise(resolve => setImmediate(resolve))
  }
  return checked
}

function verifyTable(db: Reads, name: string): Checked {
  const problems: string[] = []
  let entries = 0
  try {
    for (const [text] of db.rows('SELECT * FROM pragma_integrity_check(?)', [name]))
      if (text !== 'ok') problems.push(String(text))
    for (const [, row, parent] of db.rows('SELECT * FROM pragma_foreign_key_check(?)', [name]))
      problems.push(`row ${row} refers to a row of ${parent} that is not there`)
    entries = Number(db.row(`SELECT count(*) FROM "${name.replaceAll('"', '""')}"`)?.[0])
  } catch (error) {
    problems.push(messageOf(error))
  }
  return { kind: 'table', name, entries, problems }
}

/**
 * Checks the home of a daemon that does not run, under its lock, and changes nothing in it: the database as a copy in a
 * temporary folder, recovered from its log and then table by table, and every record of every journal, read only.
 * @throws Fault `home_not_found`; LockHeld while a daemon runs
 */
export async function verifyHome(root: string): Promise<Checked[]> {
  if (!(await namesIn(root)).includes('svc.db')) {
    throw new Fault('home_not_found', 404, `there is no database in ${root}`, { next: 'svc daemon start' })
  }
  const lock = await acquireLock(root, systemClock())
  try {
    const checked = await verifyCopy(root)
    for (const folder of await journalsBelow(root)) checked.push(await verifyJournal(root, folder))
    return checked
  } finally {
    await lock.release()
  }
}

async function verifyCopy(root: string): Promise<Checked[]> {
  const copy = await mkdtemp(path.join(tmpdir(), 'svc-verify-'))
  const database = { kind: 'database', name: 'svc.db', entries: 0, problems: [] } as const
  try {
    for (const name of await namesIn(root))
      if (/^svc\.db(-\w+)?$/.test(name)) await copyFile(path.join(root, name), path.join(copy, name))
    const store = await openStore({ path: path.join(copy, 'svc.db'), now: systemClock().now })
    const tables = await verifyDatabase(store.db)
    await store.close()
    return [{ ...database, entries: tables.length }, ...tables]
  } catch (error) {
    return [{ ...database, problems: [messageOf(error)] }]
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

/** A link is followed: through a copy of it the original would be written. */
async function copyFile(from: string, to: string): Promise<void> {
  closeSync(await openRegularFile(from))
  await cp(from, to, { dereference: true })
}

/** Folders with a journal, and what is left of one, in a home. */
export async function journalsBelow(folder: string, depth = DEPTH): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  const own = entries.some(({ name }) => name === 'journal.json' || /^events-\d+\.log$/.test(name)) ? [folder] : []
  // What was put aside with an old catalog is no part of the home any more.
  const below = entries.filter(entry => depth > 0 && entry.isDirectory() && !/^(\.|catalog-)/.test(entry.name))
  return [...own, ...(await Promise.all(below.map(at => journalsBelow(path.join(folder, at.name), depth - 1)))).flat()]
}

async function verifyJournal(root: string, dir: string): Promise<Checked> {
  const name = path.relative(root, dir)
  let entries = 0
  try {
    const journal = await openJournal({ dir, disk: readOnlyDisk() })
    for (let next = journal.first; next <= journal.last; next += BATCH)
      entries += (await journal.read(next, BATCH)).length
    await journal.close()
    return { kind: 'journal', name, entries, problems: [] }
  } catch (error) {
    return { kind: 'journal', name, entries, problems: [messageOf(error)] }
  }
}

/** The disk as it is, and nothing that is done to it happens: a torn tail is passed over and stays for the next start. */
function readOnlyDisk(): Disk {
  const disk = systemDisk()
  const nothing = async () => {}
  return {
    ...disk,
    open: (file, mode) => (mode === 'read' || mode === 'update' ? disk.open(file, 'read') : NO_FILE),
    close: handle => (handle === NO_FILE ? undefined : disk.close(handle)),
    pwrite: (_handle, bytes) => bytes.length,
    truncate: nothing,
    fsync: nothing,
    rename: nothing,
    unlink: nothing,
    mkdir: nothing,
    fsyncDir: nothing,
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => [])
}
