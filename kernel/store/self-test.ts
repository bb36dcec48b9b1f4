import { messageOf } from '../contract/errors.js'
import type { Engine } from './engine.js'
import { StoreError } from './error.js'
import { Mirror, type MirrorDisk } from './mirror.js'
import { Note, readNote } from './note.js'
import { recover, seedImage } from './recover.js'

/** A file in memory with separate written and synced content. */
interface SyncedFile {
  written: Buffer
  synced: Buffer
}

/**
 * Checks at start that the mirror sees SQLite's changes: writes rows through it, recovers the synced files and compares: with the
 * log, after a checkpoint, with a new log, and after closing.
 * @throws StoreError `sqlite_self_test`
 */
export async function selfTest(engine: Engine): Promise<void> {
  try {
    await proveMirror(engine)
  } catch (error) {
    const message = `the mirror of the database does not receive the writes of SQLite (${messageOf(error)}); nothing was opened`
    const hint = 'install this program and sql.js again; for another version of sql.js run `npm run sqljs:pin`'
    throw new StoreError('sqlite_self_test', message, hint, error)
  }
}

async function proveMirror(engine: Engine): Promise<void> {
  const image = seedImage(engine)
  const file = (content: Uint8Array): SyncedFile => ({ written: Buffer.from(content), synced: Buffer.from(content) })
  const [main, wal, mark] = [file(image), file(new Uint8Array(0)), file(new Uint8Array(0))] as const
  const disk = diskOf([main, wal, mark])
  const sizes = { main: image.length, wal: 0 }
  const mirror = new Mirror(disk, { main: 0, wal: 1, mark: 2 }, sizes, new Note(disk, 2))
  const rows: string[] = []
  const compare = (when: string): void => {
    const copy = recover(engine, { image: Uint8Array.from(main.synced), wal: wal.synced, mark: readNote(mark.written) })
    const found = copy.exec('SELECT text FROM self_test ORDER BY rowid').flatMap(({ values }) => values.flat())
    copy.close()
    if (found.join('\n') !== rows.join('\n')) throw new Error(`rows differ ${when}`)
  }
  const db = recover(engine, { image, wal: wal.synced })
  engine.watchers.set(db.filename, mirror)
  const change = async (sql: string, when: string): Promise<void> => {
    db.run(sql)
    // Every commit that the mirror sees requests a sync.
    if (mirror.settled) throw new Error(`a commit went unseen ${when}`)
    await mirror.synced()
    if (!('header' in (readNote(mark.written) ?? {}))) throw new Error(`there is no mark ${when}`)
    compare(when)
  }
  const add = (when: string): Promise<void> => {
    const text = `row ${rows.length} `.repeat(1500)
    rows.push(text)
    return change(`BEGIN IMMEDIATE; INSERT INTO self_test VALUES ('${text}'); COMMIT`, when)
  }
  await change('CREATE TABLE self_test (text TEXT)', 'after the first commit')
  await add('after a commit')
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  await mirror.drain()
  if (wal.synced.length > 0) throw new Error('the log is not empty after a checkpoint')
  compare('after a checkpoint')
  await add('with a new log')
  await add('with a longer log')
  db.run('PRAGMA wal_checkpoint(PASSIVE)')
  rows.splice(1, 1)
  await change('DELETE FROM self_test WHERE rowid = 2', 'after the log began again')
  db.close()
  await mirror.drain()
  if (!mirror.walRemoved) throw new Error('the end of the log went unseen')
  wal.synced = Buffer.alloc(0)
  compare('after closing')
}

function diskOf(files: readonly SyncedFile[]): MirrorDisk {
  const at = (handle: number): SyncedFile => files[handle] as SyncedFile
  const resize = (file: SyncedFile, size: number): void => {
    file.written = Buffer.concat([file.written, Buffer.alloc(Math.max(0, size - file.written.length))], size)
  }
  return {
    pwrite: (handle, bytes, offset) => {
      resize(at(handle), Math.max(at(handle).written.length, offset + bytes.length))
      at(handle).written.set(bytes, offset)
      return bytes.length
    },
    truncate: (handle, size) => resize(at(handle), size),
    fsync: async handle => {
      at(handle).synced = Buffer.from(at(handle).written)
    },
    stat: () => ({ size: 0, links: 1 }),
  }
}
