import path from 'node:path'
import { promisify } from 'node:util'
import { Fault, messageOf } from '../contract/errors.js'
import type { Db, Room, StoreStatus } from '../contract/storage.js'
import { isUnsupported } from '../kit/system-calls.js'
import { Core, DbHandle } from './db.js'
import { type Disk, missing, readWhole, replaceFile, systemDisk, type WholeOptions } from './disk.js'
import { type Engine, type EngineOptions, loadEngine, type SqliteDatabase } from './engine.js'
import { StoreError } from './error.js'
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
  /** How writes behave on a full disk; without it there is no reserve. */
  readonly room?: Room
  /** Epoch milliseconds. */
  readonly now: () => number
  /** Minimum size for rewriting a database with many free pages; default 32 MiB. */
  readonly compactedBytes?: number
  /** Pages in the log at which SQLite begins a checkpoint; default 1000. */
  readonly autocheckpointPages?: number
  /** Another build of SQLite than the pinned one, or an engine whose test has already started. */
  readonly engine?: EngineOptions | Promise<Engine>
  /** Throws when the home belongs to another process; called before each write and each acknowledgement. */
  readonly checkOwner?: () => void
}

/**
 * Space for an image with a reserve behind it, so that the database grows without a copy: the size of the image, within limits. It is
 * shared memory because V8 counts other buffers whole, touched or not: each fourth opening caused a full garbage collection.
 */
const withReserve = (n: number) => new Uint8Array(new SharedArrayBuffer(n + Math.min(Math.max(n, 2 ** 24), 2 ** 27)))
/** A larger file that does not begin like one of SQLite's is refused unread. */
const LARGE = 64 * 1024 * 1024
const DATABASE: WholeOptions = { allocate: withReserve, maxBytes: LARGE, begins: Buffer.from('SQLite format 3\0') }
const WAL: WholeOptions = { maxBytes: LARGE, begins: Buffer.of(0x37, 0x7f, 0x06) }
const SMALL: WholeOptions = { maxBytes: LARGE / 1024 }

/** Space for an empty database. */
const SEED_BYTES = 8192

/** Builds that passed the test in this process. The result holds for every instance of the same code. */
const proven = new WeakMap<SqlitePin, Promise<void>>()

/**
 * Engines of stores that were closed in order, for reuse by the next store: each takes tens of megabytes, and V8 runs a full
 * garbage collection for every second new one.
 */
const spare: WeakRef<Engine>[] = []

/** Loads SQLite and tests it once per process. @throws StoreError `sqlite_pin`, `sqlite_self_test` */
export async function proveEngine(options?: EngineOptions): Promise<Engine> {
  const engine = (options === undefined && spare.pop()?.deref()) || (await loadEngine(options))
  const test = proven.get(engine.pin) ?? selfTest(engine)
  proven.set(engine.pin, test)
  await test
  return engine
}

/** Minimum size for rewriting a database on opening when more than a third of its pages are free. */
const COMPACTED_BYTES = 32 * 1024 * 1024

/**
 * Opens or creates the database: self-test, recovery by SQLite, one checkpoint. A large database with more than a third of free
 * pages is rewritten first: in one transaction of SQLite, followed by a new engine, whose memory has the new size.
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
      ? 'its file system does not sync or write files as a database requires: choose a home on a local disk with SVC_HOME'
      : 'check that the folder exists, belongs to you and has free space'
    throw new StoreError('store_open_failed', `${options.path} cannot be opened: ${messageOf(error)}`, hint, error)
  }
}

/** A full disk does not prevent opening: reads work, and the pending writes follow when there is space. */
async function unlessStalled(mirror: Mirror, done: Promise<void>): Promise<void> {
  await done.catch(error => {
    if (error !== mirror.stalled) throw error
  })
}

/** Reads the files. The database stays open, its handle in `handles`, and other programs are excluded from it. */
async function readFiles(disk: Disk, file: string, handles: number[]): Promise<Image> {
  const main = await missing(Promise.resolve(disk.open(file, 'update')))
  if (main !== undefined) {
    handles.push(main)
    await exclude(disk, main, file)
  }
  const wal = await readWhole(disk, `${file}-wal`, WAL)
  const mark = readNote<Partial<Mark>>(await readWhole(disk, `${file}-mark`, SMALL))
  const journal = await readWhole(disk, `${file}-journal`, SMALL)
  if (journal.length > 0) throw storeDamaged('a rollback journal of another program is next to it')
  const image = await readWhole(disk, file, DATABASE)
  // An empty file is replaced, so it is closed first.
  if (image.length === 0) for (const handle of handles.splice(0)) await disk.close(handle)
  return { image, wal, mark }
}

/** The files of a database in WAL mode; an empty database is created when there is none. */
async function usable(
  disk: Disk,
  engine: Engine,
  file: string,
  room: Room,
  { wal, mark, ...found }: Image,
): Promise<Image> {
  let { image } = found
  if (image.length === 0) {
    if (wal.length > 0 || mark?.header !== undefined) throw storeDamaged(`${file} is missing, but its log exists`)
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
      // No space for the pending writes: everything acknowledged is in the log, and the next start recovers it.
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
    /** The kernel's own access, without an owner. */
    db: new DbHandle(core, undefined) as Db,
    /** Resolves at the first failed write or sync: after that nothing is acknowledged (`store_failed`); reads go on. */
    failed: mirror.failed,
    /**
     * Applies the pending migrations of an owner, one transaction each; durable with `db.durable()`.
     * @throws StoreError `schema_ahead`, `migration_refused`, `disk_full` naming the first pending one
     */
    migrate: migrations.migrate.bind(migrations),
    /** Declares migrations that other owners inherit from a stream. Must precede the migrations of the stream's owner. */
    share: migrations.share.bind(migrations),
    /** Delays transactions of these owners until `over` resolves. */
    hold: core.hold.bind(core),
    /**
     * Declares former migrations of a stream, by id with the SHA-256 of their text: a home with them is not ahead of this program.
     */
    know: migrations.know.bind(migrations),
    /** Whether a stream has that migration, or may have it. */
    knows: migrations.knows.bind(migrations),
    /** Drops the tables and migration records of an owner that no longer runs; durable with `db.durable()`. */
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
    /** Turns SQLite's automatic checkpoints on or off. While they are off, the database file does not change. */
    autocheckpoint: (on: boolean) => void db.run(`PRAGMA wal_autocheckpoint = ${on ? pages : 0}`),
    /** Resolves when everything is on the disk, after any wait for space on a full disk; rejects with the failure. */
    settled: () => {
      mirror.sync('wal')
      return promisify(mirror.whenSyncedAtLast).call(mirror)
    },
    /** Removes free pages from the file, and closes. A kill before the log is in the file leaves the old content. */
    rewrite(): Promise<void> {
      core.commit()
      db.run('VACUUM')
      return this.close()
    },
    /** Waits for pending work, checkpoints and closes. After a failure, or without space, it only closes. */
    close: () => (closing ??= close()),
  }
}
