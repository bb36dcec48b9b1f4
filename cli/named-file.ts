import { constants, openSync, readSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Socket } from 'node:net'
import { FileErrors, readRegularFile, unreadable } from '../kernel/kit/read-file.js'

/** Maximum bytes of a text named on the command line. */
const MAX_BYTES = 16 * 1024 * 1024

/**
 * The text of a file named on the command line, or of a pipe, such as `<(command)`.
 * @param path absolute
 * @throws Fault `file_not_regular`, `file_too_large`, `file_unreadable`
 */
export async function readNamedFile(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined)
  const bytes = found?.isFIFO() ? await readPipe(path) : await readRegularFile(path, { maxBytes: MAX_BYTES })
  if (!bytes) throw FileErrors.file_unreadable(`there is no file ${path}`, { next: 'name an existing file' })
  return bytes.toString()
}

/** Opened without blocking, because a pipe without a writer would block for ever. */
async function readPipe(path: string): Promise<Buffer> {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const chunks = [firstOf(fd, path)]
  let length = 0
  for await (const chunk of new Socket({ fd, readable: true, writable: false }) as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > MAX_BYTES) throw FileErrors.file_too_large(`${path} is larger than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The current content of a pipe; empty while its writer is busy. @throws Fault `file_unreadable` when it has no writer */
function firstOf(fd: number, path: string): Buffer {
  const chunk = Buffer.alloc(64 * 1024)
  try {
    const length = readSync(fd, chunk)
    if (length > 0) return chunk.subarray(0, length)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return Buffer.alloc(0)
    throw unreadable(path, error)
  }
  const next = 'start the program that writes to it first, or name a file'
  throw FileErrors.file_unreadable(`nothing is written to the pipe ${path}`, { next })
}
