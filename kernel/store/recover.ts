import { messageOf } from '../contract/errors.js'
import type { Engine, SqliteDatabase } from './engine.js'
import { StoreError } from './error.js'
import { isSealed, type Mark, missingFrom } from './mark.js'

/** A database as read from the disk. */
export interface Image {
  readonly image: Uint8Array
  readonly wal: Uint8Array
  /** The last note of the mark; its members may be missing. */
  readonly mark?: Partial<Mark> | undefined
}

/** Offset of the two header bytes that select the write-ahead log. */
const VERSIONS = 18
const WAL_VERSIONS = [2, 2]

/** An empty database in WAL mode: one page. */
export function seedImage(engine: Engine): Uint8Array {
  const db = engine.open()
  try {
    db.run('PRAGMA page_size = 4096; PRAGMA user_version = 1')
    const image = db.export()
    intoWalMode(image)
    return image
  } finally {
    db.close()
  }
}

/**
 * Sets the two header bytes, which are the only difference while no journal is pending; backups made by VACUUM INTO need it.
 * Returns the bytes to write and their offset, or undefined when they are set.
 */
export function intoWalMode(image: Uint8Array): { bytes: Uint8Array; offset: number } | undefined {
  const bytes = image.subarray(VERSIONS, VERSIONS + WAL_VERSIONS.length)
  if (bytes.every((byte, i) => byte === WAL_VERSIONS[i])) return undefined
  bytes.set(WAL_VERSIONS)
  return { bytes, offset: VERSIONS }
}

/** @returns the error for files that lack acknowledged data, or that SQLite cannot read */
export function storeDamaged(reason: string, cause?: unknown): StoreError {
  const hint =
    'restore a backup (svc.db alone, without the -wal and -mark beside it), or move the -mark file away to go on with ' +
    'what `sqlite3 svc.db "pragma integrity_check"` can still read'
  return new StoreError('store_damaged', `the database cannot be recovered: ${reason}`, hint, cause)
}

/** Opens a database from its image and log. SQLite itself recovers, at its first read. */
export function recover(engine: Engine, files: Image): SqliteDatabase {
  const db = engine.open(files.image)
  const value = (sql: string, column = 0): unknown => db.exec(sql)[0]?.values[0]?.[column]
  try {
    if (files.wal.length > 0) engine.putWal(db, files.wal)
    // Before the first read, so that the index of the log is in ordinary memory: there is no shared memory.
    db.run('PRAGMA locking_mode = EXCLUSIVE')
    value('SELECT count(*) FROM sqlite_schema')
    const mode = value('PRAGMA journal_mode')
    if (mode !== 'wal') throw new Error(`journal_mode is ${mode}`)
    db.run('PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = ON')
    // Deleted data may be secret: its bytes are overwritten in pages that are written anyway.
    db.run('PRAGMA cache_size = -16000; PRAGMA mmap_size = 0; PRAGMA secure_delete = FAST')
    const missing = missingFrom(files, Number(value('PRAGMA wal_checkpoint(NOOP)', 1)))
    if (missing !== undefined) throw new Error(missing)
    // About 1 ms for 1 MB; finds pages that are missing, zeroed or broken in structure.
    const check = isSealed(files) ? 'ok' : value('PRAGMA quick_check(1)')
    if (check !== 'ok') throw new Error(String(check))
    return db
  } catch (error) {
    db.close()
    throw storeDamaged(messageOf(error), error)
  }
}
