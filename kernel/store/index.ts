import path from 'node:path'
import { Core, type Db, DbHandle } from './db.js'
import { type Disk, readWhole, replaceFile, systemDisk, writeAll } from './disk.js'
import { type Engine, type EngineOptions, loadEngine, type SqliteDatabase } from './engine.js'
import { reasonOf, StoreError } from './error.js'
import { MIGRATION_TABLE, type Migration, type MigrationStream, Migrations } from './migrations.js'
import { Mirror } from './mirror.js'
import { type Image, inWalMode, isWalMode, recover, seedImage } from './recover.js'
import { selfTest } from './self-test.js'

export type { Db, Reads, Tx } from './db.js'
export { type Disk, type OpenMode, systemDisk } from './disk.js'
export type { SqlValue } from './engine.js'
export { StoreError } from './error.js'
export type { Migration, MigrationStream } from './migrations.js'
export { tablePrefix } from './statement-check.js'
export type { Row } from './statements.js'

/** Figures of the store; sizes in bytes, counts since it was opened. */
export interface StoreStatus {
  readonly path: string
  readonly bytes: number
  readonly walBytes: number
  readonly transactions: number
  readonly syncs: number
  /** What ended it, once it has failed. */
  readonly failed?: string
  readonly streams: MigrationStream[]
}

/** The database of one home (Storage). */
export interface Store {
  /** Bound to no owner: the kernel's own. */
  readonly db: Db
  /**
   * Applies the migrations of an owner that the database has not, one transaction each; durable with `db.durable()`.
   * @throws StoreError `schema_ahead`, `migration_refused`
   */
  migrate(owner: string, migrations: readonly Migration[]): void
  status(): StoreStatus
  /** Moves everything from the log into the database and empties the log; resolves when that is on the disk. */
  checkpoint(): Promise<void>
  /** Waits for what is under way, checkpoints, closes; after a failure it closes only. */
  close(): Promise<void>
  /** Resolves at the first failed write or sync: from then on nothing is acknowledged (`store_failed`); reads go on. */
  readonly failed: Promise<StoreError>
}

export interface StoreOptions {
  /** The database file, …/svc.db; its log lies beside it. The caller holds the lock of the home. */
  readonly path: string
  readonly disk?: Disk
  /** Epoch milliseconds. */
  readonly now: () => number
  /** Pages in the log at which SQLite begins a checkpoint; default 1000. */
  readonly autocheckpointPages?: number
  /** Another build of SQLite than the pinned one. */
  readonly engine?: EngineOptions
}

/** Memory kept behind the image, so that the database grows without being copied; untouched pages cost nothing. */
const RESERVE_BYTES = 128 * 1024 * 1024

/**
 * Opens the database, making it when there is none: self-test, recovery by SQLite, one checkpoint.
 * @throws StoreError `sqlite_pin`, `sqlite_self_test`, `store_damaged`, `store_open_failed`
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const disk = options.disk ?? systemDisk()
  const engine = await loadEngine(options.engine)
  await selfTest(engine)
  const handles: number[] = []
  let db: SqliteDatabase | undefined
  try {
    const files = await readFiles(disk, engine, options.path)
    db = recover(engine, files)
    db.run(`PRAGMA wal_autocheckpoint = ${Math.trunc(options.autocheckpointPages ?? 1000)}`)
    const main = await disk.open(options.path, 'update')
    handles.push(main)
    const wal = await disk.open(`${options.path}-wal`, 'create')
    handles.push(wal)
    await disk.fsyncDir(path.dirname(options.path))
    const mirror = new Mirror(disk, { main, wal }, { main: files.image.length, wal: files.wal.length })
    engine.watch(db, mirror)
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    await mirror.drain()
    const core = new Core(db, mirror)
    db.run(MIGRATION_TABLE)
    await core.durable()
    return new OpenStore(options, disk, db, core, handles)
  } catch (error) {
    if (db !== undefined) {
      engine.unwatch(db)
      db.close()
    }
    for (const handle of handles) await disk.close(handle)
    if (error instanceof StoreError) throw error
    throw new StoreError(
      'store_open_failed',
      `${options.path} cannot be opened: ${reasonOf(error)}`,
      'check that the folder exists, belongs to you and has free space',
      error,
    )
  }
}

/** Both files as they stand; an empty database in their place when there is none. */
async function readFiles(disk: Disk, engine: Engine, file: string): Promise<Image> {
  const damaged = (what: string, hint: string): StoreError => new StoreError('store_damaged', `${file}: ${what}`, hint)
  const wal = (await readWhole(disk, `${file}-wal`)) ?? new Uint8Array(0)
  const journal = await readWhole(disk, `${file}-journal`)
  if (journal !== undefined && journal.length > 0) {
    throw damaged('a rollback journal lies beside it', `let \`sqlite3 ${file} "pragma integrity_check"\` roll it back`)
  }
  let image = await readWhole(disk, file, RESERVE_BYTES)
  if (image === undefined || image.length === 0) {
    if (wal.length > 0) throw damaged('it is missing, but its log is there', 'put it back, or move its -wal file away')
    await replaceFile(disk, file, seedImage(engine))
    image = await readWhole(disk, file, RESERVE_BYTES)
  }
  if (image === undefined) throw damaged('it vanished while it was made', 'look for another program that removes it')
  if (!isWalMode(image)) {
    const header = inWalMode(image).subarray(18, 20)
    const handle = await disk.open(file, 'update')
    try {
      await writeAll(disk, handle, header, 18)
      await disk.fsync(handle)
    } finally {
      await disk.close(handle)
    }
  }
  return { image, wal }
}

class OpenStore implements Store {
  readonly db: Db
  readonly failed: Promise<StoreError>
  readonly #options: StoreOptions
  readonly #disk: Disk
  readonly #sqlite: SqliteDatabase
  readonly #core: Core
  readonly #migrations: Migrations
  readonly #handles: readonly number[]
  #closing: Promise<void> | undefined

  constructor(options: StoreOptions, disk: Disk, sqlite: SqliteDatabase, core: Core, handles: readonly number[]) {
    this.#options = options
    this.#disk = disk
    this.#sqlite = sqlite
    this.#core = core
    this.#handles = handles
    this.#migrations = new Migrations(sqlite, core, options.now)
    this.db = new DbHandle(core, undefined)
    this.failed = core.mirror.failed
  }

  migrate(owner: string, migrations: readonly Migration[]): void {
    this.#migrations.migrate(owner, migrations)
  }

  status(): StoreStatus {
    const { mirror, transactions } = this.#core
    return {
      path: this.#options.path,
      bytes: mirror.sizes.main,
      walBytes: mirror.sizes.wal,
      transactions,
      syncs: mirror.syncs,
      ...(mirror.failure && { failed: mirror.failure.message }),
      streams: this.#core.closed ? [] : this.#migrations.streams(),
    }
  }

  async checkpoint(): Promise<void> {
    this.#core.ready()
    this.#sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
    await this.#core.mirror.drain()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    if (this.#core.current !== undefined) this.#core.ready()
    this.#core.closed = true
    const { mirror, statements } = this.#core
    try {
      if (mirror.failure === undefined) {
        this.#sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
        await mirror.drain()
      }
    } finally {
      statements.clear()
      this.#sqlite.close()
      try {
        if (mirror.failure === undefined) {
          await mirror.drain()
          if (mirror.walRemoved) await this.#disk.unlink(`${this.#options.path}-wal`)
        }
      } finally {
        for (const handle of this.#handles) await this.#disk.close(handle)
      }
    }
  }
}
