import fs from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import type { Awaitable } from '../contract/basics.js'
import type { Room } from '../contract/storage.js'
import { replacing, syncingFolder } from '../kit/durable-file.js'
import { asyncCalls, FileErrors, type OpenFileOptions, openRegularFile, runAsync } from '../kit/read-file.js'
import { codeOf } from '../kit/system-calls.js'
import { type Exclusion, excludeOthers } from './exclusion.js'
import { noReserve, syncing, writeAll } from './room.js'

/**
 * How a file is opened. `read`: existing, for reading. `update`: existing, for both. `create`: for both, created when missing,
 * content kept. `replace`: for writing, emptied; a symbolic link in its place is an error. Files that are not regular are refused
 * without blocking.
 */
export type OpenMode = 'read' | 'update' | 'create' | 'replace'

/**
 * Every file call of the store and of the journals, so that tests can trace them and inject faults. Handles are numbers; offsets
 * and sizes are bytes; errors carry the system's `code`.
 */
export interface Disk {
  open(file: string, mode: OpenMode, permissions?: number): Awaitable<number>
  /** Returns the number of bytes read, 0 at the end. */
  read(handle: number, into: Uint8Array, offset: number): Awaitable<number>
  /** Returns the number of bytes written, which may be fewer than given. The caller may reuse `bytes` afterwards. */
  pwrite(handle: number, bytes: Uint8Array, offset: number): Awaitable<number>
  truncate(handle: number, size: number): Awaitable<void>
  /** Data and size are on the disk when it resolves. */
  fsync(handle: number): Promise<void>
  /** `links` is 0 when the file was removed while it was open. */
  stat(handle: number): Awaitable<{ readonly size: number; readonly links: number }>
  close(handle: number): Awaitable<void>
  rename(from: string, to: string): Awaitable<void>
  unlink(file: string): Awaitable<void>
  /** Names in a folder; none when it is missing. */
  list(folder: string): Awaitable<string[]>
  /** Makes a folder and its parents, 0700; they are on the disk when it resolves. */
  mkdir(folder: string): Awaitable<void>
  fsyncDir(folder: string): Promise<void>
  /** Excludes other programs that use SQLite from a database until the handle is closed. */
  exclude?(handle: number): Awaitable<Exclusion>
}

const { O_CREAT, O_RDWR, O_TRUNC, O_WRONLY } = fs.constants
const HOW: Readonly<Record<OpenMode, OpenFileOptions>> = {
  read: {},
  update: { flags: O_RDWR },
  create: { flags: O_RDWR | O_CREAT },
  replace: { flags: O_WRONLY | O_CREAT | O_TRUNC, links: 'refuse' },
}
/** Up to this size a write to the page cache is faster than a call through the thread pool. */
const SYNCHRONOUS_BYTES = 256 * 1024

const write = promisify(fs.write)
const fdatasync = promisify(fs.fdatasync)

const syncFolder = (folder: string) => runAsync(syncingFolder(asyncCalls, folder))

/** The file system of this machine. */
export function systemDisk(): Disk {
  return {
    open: (file, mode, permissions) =>
      openRegularFile(file, { ...HOW[mode], ...(permissions && { mode: permissions }) }),
    read: asyncCalls.read,
    pwrite: (handle, bytes, offset) =>
      bytes.length <= SYNCHRONOUS_BYTES
        ? fs.writeSync(handle, bytes, 0, bytes.length, offset)
        : write(handle, bytes, 0, bytes.length, offset).then(result => result.bytesWritten),
    truncate: (handle, size) => promisify(fs.ftruncate)(handle, size),
    fsync: fdatasync,
    stat: handle => {
      const { size, nlink } = fs.fstatSync(handle)
      return { size, links: nlink }
    },
    close: asyncCalls.close,
    rename: asyncCalls.rename,
    unlink: promisify(fs.unlink),
    list: async folder => (await missing(fs.promises.readdir(folder))) ?? [],
    mkdir: async folder => {
      const made = await fs.promises.mkdir(folder, { recursive: true, mode: 0o700 })
      for (let at = folder; made !== undefined && at.length >= made.length; at = path.dirname(at)) {
        await syncFolder(path.dirname(at))
      }
    },
    fsyncDir: syncFolder,
    exclude: excludeOthers,
  }
}

/** Fills `into` from `offset` on; returns the number of bytes read. */
export async function readInto(disk: Disk, handle: number, into: Uint8Array, offset: number): Promise<number> {
  let filled = 0
  while (filled < into.length) {
    const count = await disk.read(handle, into.subarray(filled), offset + filled)
    if (count === 0) break
    filled += count
  }
  return filled
}

/** The result of a call, or undefined for a missing file. */
export async function missing<V>(found: Promise<V>): Promise<V | undefined> {
  try {
    return await found
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** How a whole file is read; sizes in bytes. */
export interface WholeOptions {
  /** Gives zeroed memory for a file of this size; what is longer stays reserved behind it. */
  readonly allocate?: (size: number) => Uint8Array
  /** A larger file is refused unread, unless it begins with `begins`. */
  readonly maxBytes: number
  readonly begins?: Uint8Array
}

/** The whole file at its size when opened; empty when it is missing. @throws Fault `file_not_regular`, `file_too_large` */
export async function readWhole(disk: Disk, file: string, options: WholeOptions): Promise<Uint8Array> {
  return (await readIfThere(disk, file, options)) ?? new Uint8Array(0)
}

/** Like {@link readWhole}; undefined when the file is missing. */
export async function readIfThere(
  disk: Disk,
  file: string,
  { allocate = length => new Uint8Array(length), maxBytes, begins }: WholeOptions,
): Promise<Uint8Array | undefined> {
  const handle = await missing(Promise.resolve(disk.open(file, 'read')))
  if (handle === undefined) return undefined
  try {
    const { size } = await disk.stat(handle)
    if (size > maxBytes && !(begins && (await beginsWith(disk, handle, begins)))) {
      const what = begins ? ' and does not begin like a file of svc' : `, at most ${maxBytes} are read`
      const next = `move ${file} away, or restore it from a backup`
      throw FileErrors.file_too_large(`${file} has ${size} bytes${what}`, { next })
    }
    const buffer = allocate(size)
    return buffer.subarray(0, await readInto(disk, handle, buffer.subarray(0, size), 0))
  } finally {
    await disk.close(handle)
  }
}

async function beginsWith(disk: Disk, handle: number, bytes: Uint8Array): Promise<boolean> {
  const found = new Uint8Array(bytes.length)
  return (await readInto(disk, handle, found, 0)) === bytes.length && Buffer.compare(found, bytes) === 0
}

/**
 * Replaces a file so that a crash leaves the old or the new one: temporary file, sync, rename, sync of the folder. One writer per
 * file at a time.
 * @param move gives the temporary file its final name
 */
export function replaceFile(
  disk: Disk,
  file: string,
  bytes: Uint8Array,
  permissions = 0o600,
  room: Room = noReserve,
  move: (temporary: string) => Awaitable<void> = temporary => disk.rename(temporary, file),
): Promise<void> {
  const calls = {
    create: (temporary: string) => disk.open(temporary, 'replace', permissions),
    write: async (handle: number, all: Uint8Array) => {
      await writeAll(disk, handle, all, 0, room)
      return all.length
    },
    sync: (handle: number) => syncing(() => disk.fsync(handle)),
    close: (handle: number) => disk.close(handle),
    rename: move,
    remove: (temporary: string) => disk.unlink(temporary),
    *syncFolder(folder: string) {
      yield syncing(() => disk.fsyncDir(folder))
    },
  }
  return runAsync(replacing(calls, file, bytes))
}
