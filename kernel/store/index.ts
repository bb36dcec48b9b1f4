import path from 'node:path'
import { Fault } from '../contract/errors.js'
import type { Db, Room, StoreStatus } from '../contract/storage.js'
import { isUnsupported } from '../kit/system-calls.js'
import { Core, DbHandle } from './db.js'
import { type Disk, missing, readWhole, replaceFile, systemDisk, type WholeOptions } from './disk.js'
import { type Engine, type EngineOptions, loadEngine, type SqliteDatabase } from './engine.js'
import { reasonOf, StoreError } from './error.js'
import { exclude } from './exclusion.js'
import { type Mark, seal } from './mark.js'
import { Migrations } from './migrations.js'
import { Mirror } from './mirror.js'
import { Note, readNote } from './note.js'
import { type Image, intoWalMode, recover, seedImage, storeDamaged } from './recover.js'
import { diskFull, isFull, noReserve, spending, syncing, writeAll } from './room.js'
import { selfTest } from './self-test.js'
import { SQLITE_PIN, type SqlitePin } from './sqlite-pin.js'

/** The database of one home. */
export type Store = ReturnType<typeof serve>

export interface StoreOptions {
  /** The database file, …/svc.db; its log and its mark lie beside it. The caller holds the lock of the home. */
  readonly path: string
  readonly disk?: Disk
  /** What a write does that finds the disk full; nothing is kept for it unless given. */
  readonly room?: Room
  /** Epoch milliseconds. */
  readonly now: () => number
  /** Size from which on a database that is mostly free is rewritten; default 32 MiB. */
  readonly compactedBytes?: number
  /** Pages in the log at which SQLite begins a checkpoint; default 1000. */
  readonly autocheckpointPages?: number
  /** Another build of SQLite than the pinned one, or one that is being proven already. */
  readonly engine?: EngineOptions | Promise<Engine>
  /** Throws when the home belongs to another process by now; asked before anything is written and acknowledged. */
  readonly checkOwner?: () => void
}

/**
 * Memory kept behind an image, so that the database grows without being copied: as much as it has. V8 counts memory that is
 * never touched as well: 128 MiB for a small database made it collect all garbage at each start.
 */
const reserveBehind = (size: number): number => Math.min(Math.max(size, 2 ** 24), 2 ** 27)
/** A file of this size that does not begin as SQLite writes it is nothing that SQLite could read. */
const LARGE = 64 * 1024 * 1024
const DATABASE: WholeOptions = { reserve: reserveBehind, maxBytes: LARGE, begins: Buffer.from('SQLite format 3\0') }
const WAL: WholeOptions = { maxBytes: LARGE, begins: Buffer.of(0x37, 0x7f, 0x06) }
const SMALL: WholeOptions = { maxBytes: LARGE / 1024 }

/** Room for an empty database. */
const SEED_BYTES = 8192

/** Builds that were tested in this process: what the test proves is true of every instance of the same code. */
const proven = new WeakMap<SqlitePin, Promise<void>>()

/**
 * Engines of stores that were closed in order. The next store takes one over: each has tens of megabytes, and V8 collects all
 * garbage for every second one that is made.
 */
const spare: WeakRef<Engine>[] = []

/** Loads SQLite and tests it, once a process. @throws StoreError `sqlite_pin`, `sqlite_self_test` */
export async function proveEngine(options?: EngineOptions): Promise<Engine> {
  const engine = (options === undefined && spare.pop()?.deref()) || (await loadEngine(options))
  const test = proven.get(engine.pin) ?? selfTest(engine)
  proven.set(engine.pin, test)
  await test
  return engine
}

/** From this size on a database is rewritten at its opening when more than a third of its pages are free. */
const COMPACTED_BYTES = 32 * 1024 * 1024

/**
 * Opens the database, making it when there is none: self-test, recovery by SQLite, one checkpoint. A large one of which more
 * than a third is free is rewritten first: one transaction of SQLite, and then a new engine, whose memory has the new size.
 * @throws StoreError `sqlite_pin`, `sqlite_self_test`, `store_damaged`, `store_open_failed`
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const store = await open(options)
  const { compactedBytes = COMPACTED_BYTES, engine, ...rest } = options
  const { bytes, stalled } = store.status()
  const sql = 'SELECT 3 * freelist_count > page_count FROM pragma_freelist_count, pragma_page_count'
  if (bytes < compactedBytes || stalled !== undefined || store.db.row(sql)?.[0] !== 1) return store
  await store.rewrite()
  spare.length = 0
  return open({ ...rest, ...(engine === undefined || engine instanceof Promise ? {} : { engine }) })
}

async function open(options: StoreOptions): Promise<Store> {
  const { disk = systemDisk(), room = noReserve } = options
  const handles: number[] = []
  const reading = readFiles(disk, options.path, handles)
  // An early failure must not become an unhandled rejection.
  reading.catch(() => {})
  const openFile = async (suffix: string): Promise<number> => {
    const handle = await spending(room, 0, () => disk.open(`${options.path}${suffix}`, 'create'))
    handles.push(handle)
    return handle
  }
  let engine: Engine | undefined
  let db: SqliteDatabase | undefined
  try {
    engine = await (options.engine instanceof Promise ? options.engine : proveEngine(options.engine))
    const found = await reading
    const files = await usable(disk, engine, options.path, room, found)
    db = recover(engine, files)
    const pages = Math.trunc(options.autocheckpointPages ?? 1000)
    db.run(`PRAGMA wal_autocheckpoint = ${pages}`)
    const main = handles[0] ?? (await openFile(''))
    if (found.image.length === 0) await exclude(disk, main, options.path)
    const opened = { main, wal: await openFile('-wal'), mark: await openFile('-mark') }
    const note = new Note(disk, opened.mark, files.mark, room)
    await syncing(() => disk.fsyncDir(path.dirname(options.path)))
    const sizes = { main: files.image.length, wal: files.wal.length }
    const mirror = new Mirror(disk, opened, sizes, note, room, options.checkOwner)
    engine.watchers.set(db.filename, mirror)
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    const core = new Core(db, mirror)
    const migrations = new Migrations(db, core, options.now)
    await unlessStalled(mirror, mirror.drain())
    return serve(options.path, disk, engine, core, migrations, pages)
  } catch (error) {
    if (db !== undefined) {
      engine?.watchers.delete(db.filename)
      db.close()
    }
    await reading.catch(() => {})
    for (const handle of handles) await disk.close(handle)
    if (error instanceof StoreError || error instanceof Fault) throw error
    if (isFull(error)) throw diskFull(`${options.path} cannot be opened`, error)
    const hint = isUnsupported(error)
      ? 'its file system cannot sync or write files as a database needs it: choose a home on a local disk with SVC_HOME'
      : 'check that the folder exists, belongs to you and has free space'
    throw new StoreError('store_open_failed', `${options.path} cannot be opened: ${reasonOf(error)}`, hint, error)
  }
}

/** A full disk is no reason not to open: what is read is there, and what SQLite has moved is written when there is room. */
async function unlessStalled(mirror: Mirror, done: Promise<void>): Promise<void> {
  await done.catch(error => {
    if (error !== mirror.stalled) throw error
  })
}

/** The files as they stand. The database is open then, among `handles`, and other programs are kept out of it. */
async function readFiles(disk: Disk, file: string, handles: number[]): Promise<Image> {
  const main = await missing(Promise.resolve(disk.open(file, 'update')))
  if (main !== undefined) {
    handles.push(main)
    await exclude(disk, main, file)
  }
  const wal = await readWhole(disk, `${file}-wal`, WAL)
  const mark = readNote<Partial<Mark>>(await readWhole(disk, `${file}-mark`, SMALL))
  const journal = await readWhole(disk, `${file}-journal`, SMALL)
  if (journal.length > 0) throw storeDamaged('a rollback journal of another program lies beside it')
  const image = await readWhole(disk, file, DATABASE)
  // An empty one is replaced.
  if (image.length === 0) for (const handle of handles.splice(0)) await disk.close(handle)
  return { image, wal, mark }
}

/** The same in WAL mode; an empty database in their place when there is none. */
async function usable(
  disk: Disk,
  engine: Engine,
  file: string,
  room: Room,
  { wal, mark, ...found }: Image,
): Promise<Image> {
  let { image } = found
  if (image.length === 0) {
    if (wal.length > 0 || mark?.header !== undefined) throw storeDamaged(`${file} is missing, its log is not`)
    await spending(room, SEED_BYTES, () => replaceFile(disk, file, seedImage(engine), 0o600, room))
    image = await readWhole(disk, file, DATABASE)
  }
  const header = intoWalMode(image)
  if (header !== undefined) {
    const handle = await disk.open(file, 'update')
    try {
      await writeAll(disk, handle, header.bytes, header.offset, room)
      await syncing(() => disk.fsync(handle))
    } finally {
      await disk.close(handle)
    }
  }
  return { image, wal, mark }
}

function serve(file: string, disk: Disk, engine: Engine, core: Core, migrations: Migrations, pages: number) {
  const { mirror } = core
  const { db } = core.statements
  const checkpoint = (): Promise<void> => {
    core.commit()
    db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    return mirror.drain()
  }
  const close = async (): Promise<void> => {
    if (core.current !== undefined) core.ready()
    core.closed = true
    mirror.close()
    try {
      if (mirror.failure === undefined && mirror.stalled === undefined) await unlessStalled(mirror, checkpoint())
      // No room for the rest: what is acknowledged is in the log, and the next start moves it.
      if (mirror.stalled !== undefined) await mirror.failed
      core.statements.clear()
      db.close()
      engine.watchers.delete(db.filename)
      if (mirror.failure === undefined) {
        await mirror.drain()
        if (engine.pin === SQLITE_PIN) spare.push(new WeakRef(engine))
        if (mirror.walRemoved) await disk.unlink(`${file}-wal`)
        await seal(disk, mirror).catch(error => isFull(error) || mirror.fail(error))
        await mirror.synced()
      }
    } finally {
      for (const handle of Object.values(mirror.files)) await disk.close(handle)
    }
  }
  let closing: Promise<void> | undefined
  return {
    /** Bound to no owner: the kernel's own. */
    db: new DbHandle(core, undefined) as Db,
    /** Resolves at the first failed write or sync: from then on nothing is acknowledged (`store_failed`); reads go on. */
    failed: mirror.failed,
    /**
     * Applies the migrations of an owner that the database has not, one transaction each; durable with `db.durable()`.
     * @throws StoreError `schema_ahead`, `migration_refused`, `disk_full` naming the first that is missing
     */
    migrate: migrations.migrate.bind(migrations),
    /** To be called before the owner of a stream migrates, with what others inherit of it. */
    share: migrations.share.bind(migrations),
    /** Transactions of these owners begin when `over` has resolved. */
    hold: core.hold.bind(core),
    /** Migrations that left a stream, by id with the SHA-256 of their text: a home that has them is no newer one. */
    know: migrations.know.bind(migrations),
    /** Whether a stream has that migration, or may have it. */
    knows: migrations.knows.bind(migrations),
    /** Drops the tables of an owner that runs no more, and what is known of them; durable with `db.durable()`. */
    forget: migrations.forget.bind(migrations),
    status: (): StoreStatus => ({
      path: file,
      bytes: mirror.sizes.main,
      walBytes: mirror.sizes.wal,
      transactions: core.transactions,
      syncs: mirror.syncs,
      ...(mirror.failure && { failed: mirror.failure.message }),
      ...(mirror.stalled && { stalled: mirror.stalled.message }),
      streams: core.closed ? [] : migrations.streams(),
    }),
    /** Moves everything from the log into the database and empties the log; resolves when that is on the disk. */
    async checkpoint(): Promise<void> {
      core.ready()
      await checkpoint()
    },
    /** Whether SQLite moves its log into the database by itself. While it does not, the file of the database stays as it is. */
    autocheckpoint: (on: boolean) => void db.run(`PRAGMA wal_autocheckpoint = ${on ? pages : 0}`),
    /** Resolves when everything is on the disk, however long a full disk holds it up; rejects with the failure. */
    settled: () => {
      mirror.sync('wal')
      return new Promise<void>((resolve, reject) =>
        mirror.whenSyncedAtLast(error => (error ? reject(error) : resolve())),
      )
    },
    /** Leaves the free pages out of the file, and closes. Until the log is in the file a kill leaves the old one. */
    rewrite(): Promise<void> {
      core.commit()
      db.run('VACUUM')
      return this.close()
    },
    /** Waits for what is under way, checkpoints, closes; after a failure, or without room, it closes only. */
    close: () => (closing ??= close()),
  }
}
