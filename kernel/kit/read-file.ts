import fs, { constants, type Stats } from 'node:fs'
import { promisify } from 'node:util'
import { defineErrors, Fault, messageOf } from '../contract/errors.js'

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

const open = promisify(fs.open)
const read = promisify(fs.read)
const close = promisify(fs.close)

/** Opening never blocks (a pipe would, until its other end opens), and no terminal becomes the controlling one. */
const ALWAYS = constants.O_NONBLOCK | constants.O_NOCTTY

/**
 * Opens a regular file and nothing else, without blocking: a call that hangs in open(2) occupies one of the four threads that every
 * durable write needs.
 * @returns the descriptor, which the caller closes
 * @throws Fault `file_not_regular`; the system's own error otherwise, `ENOENT` for a missing file
 */
export async function openRegularFile(file: string, options: OpenFileOptions = {}): Promise<number> {
  const inspect = options.links === 'refuse' ? fs.promises.lstat : fs.promises.stat
  // Checked before it is opened as well: opening a device may have effects.
  const found = await inspect(file).catch(absent(options))
  if (found) mustBeRegular(file, found)
  const handle = await open(file, flagsOf(options), options.mode ?? 0o600).catch(waited(file))
  try {
    mustBeRegular(file, fs.fstatSync(handle))
    return handle
  } catch (error) {
    await close(handle)
    throw error
  }
}

/** {@link openRegularFile} for synchronous callers: the lock, the log, the command line. */
export function openRegularFileSync(file: string, options: OpenFileOptions = {}): number {
  const inspect = options.links === 'refuse' ? fs.lstatSync : fs.statSync
  const found = attempt(() => inspect(file), absent(options))
  if (found) mustBeRegular(file, found)
  const handle = attempt(() => fs.openSync(file, flagsOf(options), options.mode ?? 0o600), waited(file))
  try {
    mustBeRegular(file, fs.fstatSync(handle))
    return handle
  } catch (error) {
    fs.closeSync(handle)
    throw error
  }
}

/**
 * The bytes of a regular file from an untrusted source; undefined when it is missing.
 * @throws Fault `file_not_regular`, `file_too_large`, `file_unreadable`
 */
export async function readRegularFile(file: string, options: ReadFileOptions): Promise<Buffer | undefined> {
  try {
    const handle = await openRegularFile(file, options)
    try {
      return await readBounded(handle, file, options.maxBytes)
    } finally {
      await close(handle)
    }
  } catch (error) {
    return absentOrFault(file, error)
  }
}

/** {@link readRegularFile} for synchronous callers. */
export function readRegularFileSync(file: string, options: ReadFileOptions): Buffer | undefined {
  try {
    const handle = openRegularFileSync(file, options)
    try {
      const bytes = new Bounded(file, fs.fstatSync(handle).size, options.maxBytes)
      while (bytes.took(fs.readSync(handle, bytes.room()))) {}
      return bytes.all()
    } finally {
      fs.closeSync(handle)
    }
  } catch (error) {
    return absentOrFault(file, error)
  }
}

/**
 * The content of an open file from its beginning; `file` names it in errors.
 * @throws Fault `file_too_large`; the system's own error otherwise
 */
export async function readBounded(handle: number, file: string, maxBytes: number): Promise<Buffer> {
  const bytes = new Bounded(file, fs.fstatSync(handle).size, maxBytes)
  for (let at = 0, more = true; more; ) {
    const room = bytes.room()
    const { bytesRead } = await read(handle, room, 0, room.length, at)
    at += bytesRead
    more = bytes.took(bytesRead)
  }
  return bytes.all()
}

/** One page: enough for the files of /proc, which report a size of 0. */
const LEAST_BUFFER = 4096

/** Bytes as they are read, up to a maximum. The reported size is only a hint: a file may grow, or report none. */
class Bounded {
  #buffer: Buffer
  #length = 0

  constructor(
    private readonly file: string,
    size: number,
    private readonly maxBytes: number,
  ) {
    if (size > maxBytes) throw tooLarge(file, maxBytes, size)
    // The extra byte shows whether the file exceeds the maximum.
    this.#buffer = Buffer.allocUnsafe(Math.min(Math.max(size, LEAST_BUFFER), maxBytes) + 1)
  }

  /** The free part of the buffer; never empty. */
  room(): Buffer {
    if (this.#length === this.#buffer.length) {
      const grown = Buffer.allocUnsafe(Math.min(this.#length * 2, this.maxBytes + 1))
      this.#buffer.copy(grown)
      this.#buffer = grown
    }
    return this.#buffer.subarray(this.#length)
  }

  /** @returns whether the file may have more bytes */
  took(count: number): boolean {
    this.#length += count
    if (this.#length > this.maxBytes) throw tooLarge(this.file, this.maxBytes)
    return count > 0
  }

  all(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }
}

const flagsOf = ({ links, flags = constants.O_RDONLY }: OpenFileOptions): number =>
  flags | ALWAYS | (links === 'refuse' ? constants.O_NOFOLLOW : 0)

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

/** A file that will be created may be missing. */
const absent =
  ({ flags = 0 }: OpenFileOptions) =>
  (error: NodeJS.ErrnoException): undefined => {
    if (error.code !== 'ENOENT' || (flags & constants.O_CREAT) === 0) throw error
  }

/** ENXIO: a pipe or a socket without a listener replaced the file after the check. */
const waited = (file: string) => (error: NodeJS.ErrnoException) => {
  throw error.code === 'ENXIO' ? notRegular(file, 'a pipe or a socket', error) : error
}

function absentOrFault(file: string, error: unknown): undefined {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
  throw unreadable(file, error)
}

/** The fault of a file that could not be opened or read: a fault itself, else `file_unreadable`. */
export function unreadable(file: string, error: unknown): Fault {
  if (error instanceof Fault) return error
  const next = `check that ${file} is a file that you may read`
  return FileErrors.file_unreadable(`${file} cannot be read: ${messageOf(error)}`, { next, cause: error })
}

function attempt<T, U>(fn: () => T, failed: (error: NodeJS.ErrnoException) => U): T | U {
  try {
    return fn()
  } catch (error) {
    return failed(error as NodeJS.ErrnoException)
  }
}
