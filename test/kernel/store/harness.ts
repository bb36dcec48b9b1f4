import { execFileSync } from 'node:child_process'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type Disk, type OpenMode, systemDisk } from '../../../kernel/store/disk.js'
import { openStore, type Store, type StoreOptions } from '../../../kernel/store/index.js'

/** Runs `use` with a folder below the system's temporary one, removed afterwards. */
export async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'svc-store-'))
  try {
    return await use(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A store in a folder; `kernel_row` has three rows for every written id. */
export async function openAt(folder: string, options: Partial<StoreOptions> = {}): Promise<Store> {
  const store = await openStore({ path: path.join(folder, 'svc.db'), now: () => 0, ...options })
  store.migrate('kernel', [
    {
      id: 'rows',
      sql: 'CREATE TABLE kernel_row (id INTEGER NOT NULL, part INTEGER NOT NULL, text TEXT, PRIMARY KEY (id, part))',
    },
  ])
  await store.db.durable()
  return store
}

/** Runs `use` with a store of its own and closes it. */
export function withStore<T>(
  use: (store: Store, folder: string) => Promise<T>,
  options?: Partial<StoreOptions>,
): Promise<T> {
  return inFolder(async folder => {
    const store = await openAt(folder, options)
    try {
      return await use(store, folder)
    } finally {
      await store.close()
    }
  })
}

/** Writes the three rows of an id. */
export function writeThree(store: Store, id: number, text = 'x'.repeat(300)): Promise<void> {
  return store.db.tx(t => {
    for (const part of [0, 1, 2]) t.run('INSERT INTO kernel_row (id, part, text) VALUES (?, ?, ?)', [id, part, text])
  })
}

/** Number of rows by id. */
export function rowsById(store: Store): Map<number, number> {
  return new Map(
    store.db.rows('SELECT id, count(*) FROM kernel_row GROUP BY id').map(([id, n]) => [Number(id), Number(n)]),
  )
}

/** The code of what a promise or a call fails with. */
export async function codeOf(fails: () => unknown): Promise<unknown> {
  try {
    await fails()
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error
  }
  return undefined
}

export interface DiskCall {
  readonly name: keyof Disk
  /** The file that a handle was opened for, or the path given. */
  readonly file: string
  readonly args: readonly unknown[]
}

/** The real disk, with every call shown to `before`, which may throw or wait in its place. */
export function watchedDisk(before: (call: DiskCall) => void | Promise<void>): Disk {
  const files = new Map<number, string>()
  const disk = systemDisk()
  const watched = Object.entries(disk).map(([name, call]) => [
    name,
    async (...args: unknown[]) => {
      const file = typeof args[0] === 'number' ? (files.get(args[0]) ?? '?') : String(args[0])
      await before({ name: name as keyof Disk, file, args })
      const result = await call(...args)
      if (name === 'open') files.set(result, file)
      return result
    },
  ])
  return Object.fromEntries(watched)
}

/** What the stock `sqlite3` says about a copy of the files. */
export function stockCheck(folder: string): Promise<string> {
  return inFolder(async copy => {
    await cp(folder, copy, { recursive: true })
    return execFileSync('sqlite3', ['svc.db', 'PRAGMA integrity_check'], { cwd: copy, encoding: 'utf8' }).trim()
  })
}

/**
 * The real disk with `left` bytes for files to grow by, as a full one has: a write that does not fit is short, and one of
 * which nothing fits fails with ENOSPC. Writes take at most `pieces` bytes at a time.
 */
export function smallDisk(): Disk & { left: number; pieces: number } {
  const disk = systemDisk()
  const sizes = new Map<number, number>()
  const small = {
    ...disk,
    left: Infinity,
    pieces: Infinity,
    async open(file: string, mode: OpenMode, permissions?: number) {
      const handle = await disk.open(file, mode, permissions)
      sizes.set(handle, (await disk.stat(handle)).size)
      return handle
    },
    async pwrite(handle: number, bytes: Uint8Array, offset: number) {
      const size = sizes.get(handle) ?? 0
      const fits = Math.min(bytes.length, small.pieces, Math.max(0, size + small.left - offset))
      if (fits <= 0) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
      const written = await disk.pwrite(handle, bytes.subarray(0, fits), offset)
      const grown = Math.max(0, offset + written - size)
      small.left -= grown
      sizes.set(handle, size + grown)
      return written
    },
  }
  return small
}
