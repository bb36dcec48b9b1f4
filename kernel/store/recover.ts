import type { Engine, SqliteDatabase } from './engine.js'
import { reasonOf, StoreError } from './error.js'
import { MIGRATION_TABLE } from './migrations.js'

/** The bytes of a database as they stand on the disk. */
export interface Image {
  readonly image: Uint8Array
  readonly wal: Uint8Array
}

const WRITE_VERSION = 18
const READ_VERSION = 19
const WAL_VERSION = 2

/** An empty database: one page and the table of migrations, in WAL mode. */
export function seedImage(engine: Engine): Uint8Array {
  const db = engine.open()
  try {
    db.run(`PRAGMA page_size = 4096; ${MIGRATION_TABLE}`)
    return inWalMode(db.export())
  } finally {
    db.close()
  }
}

/** Whether the header says that the database uses a write-ahead log; backups made by VACUUM INTO do not. */
export function isWalMode(image: Uint8Array): boolean {
  return image[WRITE_VERSION] === WAL_VERSION && image[READ_VERSION] === WAL_VERSION
}

/** The image with the two bytes of the header set; that is the whole difference while no journal is pending. */
export function inWalMode(image: Uint8Array): Uint8Array {
  image[WRITE_VERSION] = WAL_VERSION
  image[READ_VERSION] = WAL_VERSION
  return image
}

/** Opens a database from its image and log; the recovery is SQLite's own, at its first read (Storage, "Recovery"). */
export function recover(engine: Engine, { image, wal }: Image): SqliteDatabase {
  const db = engine.open(image)
  try {
    if (wal.length > 0) engine.putWal(db, wal)
    // Before the first read: then the index of the log is kept in memory, no shared memory is needed.
    db.run('PRAGMA locking_mode = EXCLUSIVE')
    db.exec('SELECT count(*) FROM sqlite_schema')
    const mode = db.exec('PRAGMA journal_mode')[0]?.values[0]?.[0]
    if (mode !== 'wal') throw new Error(`journal_mode is ${mode}`)
    db.run('PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = ON')
    db.run('PRAGMA cache_size = -16000; PRAGMA mmap_size = 0')
    return db
  } catch (error) {
    db.close()
    throw new StoreError(
      'store_damaged',
      `the database cannot be recovered: ${reasonOf(error)}`,
      'look at it with `sqlite3 svc.db "pragma integrity_check"` (both files together), or restore a backup',
      error,
    )
  }
}
