import fs, { constants, fstatSync, type Stats } from 'node:fs'
import { promisify } from 'node:util'
import type { Awaitable } from '../contract/basics.js'
import { defineErrors, Fault, messageOf } from '../contract/errors.js'
import { codeOf } from './system-calls.js'

/** Errors of files that cannot be read; each text names the path. */
export const FileErrors = defineErrors({
  file_not_regular: { status: 422, message: 'this is not a regular file' },
  file_too_large: { status: 422, message: 'the file is too large' },
  file_unreadable: { status: 422, message: 'the file cannot be read' },
})

export interface OpenFileOptions {
  /** `refuse`: a symbolic link as the last part of the path counts as not regular. Default `follow`. */
  readonly links?: 'follow' | 'refuse'
  /** Flags of open(2), default O_RDONLY. */
  readonly flags?: number
  /** Permissions of a created file, default 0600. */
  readonly mode?: number
}

export interface ReadFileOptions extends Pick<OpenFileOptions, 'links'> {
  /** A larger file is refused, by its size before the read and by its bytes during the read. */
  readonly maxBytes: number
}

/** Opening never blocks (a pipe would, until its other end opens), and no terminal becomes the controlling one. */
const ALWAYS = constants.O_NONBLOCK | constants.O_NOCTTY

/**
 * Opens a regular file and nothing else, without blocking: a call that hangs in open(2) occupies one of the four threads that every
 * durable write needs.
 * @returns the descriptor, which the caller closes
 * @throws Fault `file_not_regular`; the system's own error otherwise, `ENOENT` for a missing file
 */
export function openRegularFile(file: string, options: OpenFileOptions = {}): Promise<number> {
  return runAsync(opening(asyncCalls, file, options))
}

/** {@link openRegularFile} for synchronous callers: the lock, the log, the command line. */
export function openRegularFileSync(file: string, options: OpenFileOptions = {}): number {
  return runSync(opening(syncCalls, file, options))
}

function* opening(calls: FileCalls, file: string, { links, flags = 0, mode = 0o600 }: OpenFileOptions): Steps<number> {
  const refuses = links === 'refuse'
  let handle: number
  try {
    // Checked before it is opened as well: opening a device may have effects.
    mustBeRegular(file, yield refuses ? calls.lstat(file) : calls.stat(file))
  } catch (error) {
    // A file that will be created may be missing.
    if ((flags & constants.O_CREAT) === 0 || codeOf(error) !== 'ENOENT') throw error
  }
  try {
    handle = yield calls.open(file, flags | ALWAYS | (refuses ? constants.O_NOFOLLOW : 0), mode)
  } catch (error) {
    // A pipe or a socket without a listener replaced the file after the check.
    throw codeOf(error) === 'ENXIO' ? notRegular(file, 'a pipe or a socket', error) : error
  }
  try {
    mustBeRegular(file, fstatSync(handle))
    return handle
  } catch (error) {
    yield calls.close(handle)
    throw error
  }
}

/**
 * The bytes of a regular file from an untrusted source; undefined when it is missing.
 * @throws Fault `file_not_regular`, `file_too_large`, `file_unreadable`
 */
export function readRegularFile(file: string, options: ReadFileOptions): Promise<Buffer | undefined> {
  return runAsync(reading(asyncCalls, file, options))
}

/** {@link readRegularFile} for synchronous callers. */
export function readRegularFileSync(file: string, options: ReadFileOptions): Buffer | undefined {
  return runSync(reading(syncCalls, file, options))
}

function* reading(calls: FileCalls, file: string, options: ReadFileOptions): Steps<Buffer | undefined> {
  try {
    const handle = yield* opening(calls, file, options)
    try {
      return yield* bounded(calls, handle, file, options.maxBytes)
    } finally {
      yield calls.close(handle)
    }
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error))) return undefined
    throw unreadable(file, error)
  }
}

/**
 * The content of an open file from its beginning; `file` names it in errors.
 * @throws Fault `file_too_large`; the system's own error otherwise
 */
export function readBounded(handle: number, file: string, maxBytes: number): Promise<Buffer> {
  return runAsync(bounded(asyncCalls, handle, file, maxBytes))
}

/** One page: enough for the files of /proc, which report a size of 0. */
const LEAST_BUFFER = 4096

/** Reads up to a maximum. The reported size is only a hint: a file may grow, or report none. */
function* bounded(calls: FileCalls, handle: number, file: string, maxBytes: number): Steps<Buffer> {
  const { size } = fstatSync(handle)
  if (size > maxBytes) throw tooLarge(file, maxBytes, size)
  // The extra byte shows whether the file exceeds the maximum.
  let buffer = Buffer.allocUnsafe(Math.min(Math.max(size, LEAST_BUFFER), maxBytes) + 1)
  for (let length = 0; ; ) {
    const count: number = yield calls.read(handle, buffer.subarray(length), length)
    if (count === 0) return buffer.subarray(0, length)
    length += count
    if (length > maxBytes) throw tooLarge(file, maxBytes)
    if (length === buffer.length) {
      const grown = Buffer.allocUnsafe(Math.min(length * 2, maxBytes + 1))
      buffer.copy(grown)
      buffer = grown
    }
  }
}

function mustBeRegular(file: string, found: Stats): void {
  if (!found.isFile()) throw notRegular(file, kindOf(found))
}

function kindOf(found: Stats): string {
  if (found.isDirectory()) return 'a folder'
  if (found.isFIFO()) return 'a named pipe'
  if (found.isSocket()) return 'a socket'
  if (found.isSymbolicLink()) return 'a symbolic link'
  return 'a device'
}

function notRegular(file: string, kind: string, cause?: unknown): Fault {
  const next = `move ${file} away, or put a regular file in its place`
  return FileErrors.file_not_regular(`${file} is ${kind}, not a regular file`, { next, cause })
}

function tooLarge(file: string, maxBytes: number, size?: number): Fault {
  const has = size === undefined ? 'is larger than its reported size' : `has ${size} bytes`
  const next = `move ${file} away, or put a smaller one in its place`
  return FileErrors.file_too_large(`${file} ${has}, at most ${maxBytes} are read`, { next })
}

/** The fault of a file that could not be opened or read: a fault itself, else `file_unreadable`. */
export function unreadable(file: string, error: unknown): Fault {
  if (error instanceof Fault) return error
  const next = `check that ${file} is a file that you may read`
  return FileErrors.file_unreadable(`${file} cannot be read: ${messageOf(error)}`, { next, cause: error })
}

/** Calls of the file system, for synchronous or asynchronous callers; errors carry the system's `code`. */
export interface FileCalls {
  open(file: string, flags: string | number, mode?: number): Awaitable<number>
  stat(file: string): Awaitable<Stats>
  lstat(file: string): Awaitable<Stats>
  /** Returns the number of bytes read, 0 at the end. */
  read(handle: number, into: Uint8Array, position: number): Awaitable<number>
  /** Writes from that byte of `bytes` on; returns the number of bytes written. */
  write(handle: number, bytes: Uint8Array, from: number): Awaitable<number>
  sync(handle: number): Awaitable<void>
  close(handle: number): Awaitable<void>
  rename(from: string, to: string): Awaitable<void>
  /** Removes a file or a folder; a missing one is no error. */
  remove(file: string): Awaitable<void>
}

/** Work with files, written once for both kinds of callers: each step is the result of a call, or its promise. */
export type Steps<T> = Generator<Awaitable<unknown>, T, never>

const ANYTHING = { recursive: true, force: true }
const [read, write] = [promisify(fs.read), promisify(fs.write)]

export const syncCalls: FileCalls = {
  open: fs.openSync,
  stat: fs.statSync,
  lstat: fs.lstatSync,
  read: (handle, into, position) => fs.readSync(handle, into, 0, into.length, position),
  write: (handle, bytes, from) => fs.writeSync(handle, bytes, from),
  sync: fs.fsyncSync,
  close: fs.closeSync,
  rename: fs.renameSync,
  remove: file => fs.rmSync(file, ANYTHING),
}

// Functions, because Node loads `fs.promises` with its first use, which takes a millisecond of a call of the command line.
export const asyncCalls: FileCalls = {
  open: promisify(fs.open),
  stat: file => fs.promises.stat(file),
  lstat: file => fs.promises.lstat(file),
  read: async (handle, into, position) => (await read(handle, into, 0, into.length, position)).bytesRead,
  write: async (handle, bytes, from) => (await write(handle, bytes, from)).bytesWritten,
  sync: promisify(fs.fsync),
  close: promisify(fs.close),
  rename: (from, to) => fs.promises.rename(from, to),
  remove: file => fs.promises.rm(file, ANYTHING),
}

/** Runs steps of synchronous calls. */
export function runSync<T>(steps: Steps<T>): T {
  let step = steps.next()
  while (!step.done) step = steps.next(step.value as never)
  return step.value
}

/** Runs steps, one after the other. */
export async function runAsync<T>(steps: Steps<T>): Promise<T> {
  let step = steps.next()
  while (!step.done) {
    step = await Promise.resolve(step.value).then(
      value => steps.next(value as never),
      error => steps.throw(error),
    )
  }
  return step.value
}
