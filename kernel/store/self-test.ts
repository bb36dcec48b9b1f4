import type { Disk } from './disk.js'
import type { Engine, SqliteDatabase } from './engine.js'
import { reasonOf, StoreError } from './error.js'
import { Mirror } from './mirror.js'
import { recover, seedImage } from './recover.js'

/** A disk in memory that keeps what was synced apart from what was only written. */
class SyncedBytes {
  #written: Buffer
  synced: Buffer

  constructor(content: Uint8Array) {
    this.#written = Buffer.from(content)
    this.synced = this.#written
  }

  write(bytes: Uint8Array, offset: number): number {
    this.truncate(Math.max(this.#written.length, offset + bytes.length))
    this.#written.set(bytes, offset)
    return bytes.length
  }

  truncate(size: number): void {
    const resized = Buffer.alloc(size)
    this.#written.copy(resized)
    this.#written = resized
  }

  sync(): void {
    this.synced = Buffer.from(this.#written)
  }
}

/**
 * Proves at start that the mirror sees what SQLite does: writes rows through it, takes what was synced, recovers that and
 * compares; with the log, after a checkpoint, with a new log, and after closing (Storage, rule 8).
 * @throws StoreError `sqlite_self_test`
 */
export async function selfTest(engine: Engine): Promise<void> {
  try {
    await proveMirror(engine)
  } catch (error) {
    throw new StoreError(
      'sqlite_self_test',
      `the mirror of the database does not see what SQLite does (${reasonOf(error)}); nothing was opened`,
      'install this program and sql.js again; for another version of sql.js run `npm run sqljs:pin`',
      error,
    )
  }
}

async function proveMirror(engine: Engine): Promise<void> {
  const image = seedImage(engine)
  const main = new SyncedBytes(image)
  const wal = new SyncedBytes(new Uint8Array(0))
  const db = recover(engine, { image: image.slice(), wal: wal.synced })
  const mirror = new Mirror(diskOf([main, wal]), { main: 0, wal: 1 }, { main: image.length, wal: 0 })
  const closed = new Set<string>()
  engine.watch(db, {
    write: (part, offset, bytes) => mirror.write(part, offset, bytes),
    truncate: (part, size) => mirror.truncate(part, size),
    sync: part => mirror.sync(part),
    remove: part => mirror.remove(part),
    close: part => closed.add(part),
  })
  const written: string[] = []
  const add = async (): Promise<void> => {
    const text = `row ${written.length} `.repeat(1500)
    db.run(`BEGIN IMMEDIATE; INSERT INTO self_test VALUES ('${text}'); COMMIT`)
    written.push(text)
    await synced(mirror)
  }
  db.run('CREATE TABLE self_test (text TEXT)')
  await add()
  compare(engine, main.synced, wal.synced, written, 'after a commit')
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  await mirror.drain()
  if (wal.synced.length > 0) throw new Error('the log is not empty after a checkpoint')
  compare(engine, main.synced, wal.synced, written, 'after a checkpoint')
  await add()
  await add()
  compare(engine, main.synced, wal.synced, written, 'with a new log')
  db.run('PRAGMA wal_checkpoint(PASSIVE)')
  db.run('DELETE FROM self_test WHERE rowid = 2')
  written.splice(1, 1)
  await synced(mirror)
  compare(engine, main.synced, wal.synced, written, 'after the log began again')
  db.close()
  await mirror.drain()
  if (!mirror.walRemoved || !closed.has('main') || !closed.has('wal'))
    throw new Error('the end of the files went unseen')
  compare(engine, main.synced, new Uint8Array(0), written, 'after closing')
}

/** A commit that the mirror sees has asked for a sync; without one, nothing was seen. */
async function synced(mirror: Mirror): Promise<void> {
  if (mirror.settled) throw new Error('a commit went unseen')
  await new Promise<void>((resolve, reject) => mirror.whenSynced(error => (error ? reject(error) : resolve())))
}

function compare(engine: Engine, image: Uint8Array, wal: Uint8Array, expected: readonly string[], when: string): void {
  const found = rowsOf(recover(engine, { image: image.slice(), wal }))
  if (found.join('\n') !== expected.join('\n')) throw new Error(`rows differ ${when}`)
}

function rowsOf(db: SqliteDatabase): unknown[] {
  try {
    return db.exec('SELECT text FROM self_test ORDER BY rowid').flatMap(result => result.values.map(([text]) => text))
  } finally {
    db.close()
  }
}

function diskOf(files: readonly SyncedBytes[]): Disk {
  const at = (handle: number): SyncedBytes => {
    const file = files[handle]
    if (file === undefined) throw new Error('no such file')
    return file
  }
  const unused = (): never => {
    throw new Error('unexpected call')
  }
  return {
    pwrite: (handle, bytes, offset) => at(handle).write(bytes, offset),
    truncate: (handle, size) => at(handle).truncate(size),
    fsync: async handle => at(handle).sync(),
    stat: () => ({ size: 0, links: 1 }),
    open: unused,
    read: unused,
    close: unused,
    rename: unused,
    unlink: unused,
    list: unused,
    mkdir: unused,
    fsyncDir: unused,
  }
}
