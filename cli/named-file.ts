import { constants, openSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Socket } from 'node:net'
import { FileErrors, readRegularFile } from '../kernel/kit/read-file.js'

/** Bytes of a text that is named on the command line. */
const MAX_BYTES = 16 * 1024 * 1024

/**
 * The text of a file that a person named on the command line, or of a pipe, such as `<(command)` makes one.
 * @param path absolute
 * @throws Fault `file_not_regular`, `file_too_large`, `file_unreadable`
 */
export async function readNamedFile(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined)
  const bytes = found?.isFIFO() ? await readPipe(path) : await readRegularFile(path, { maxBytes: MAX_BYTES })
  if (!bytes) throw FileErrors.file_unreadable(`there is no file ${path}`, { next: 'name a file that is there' })
  return bytes.toString()
}

/** Opened without waiting: with no writer there is nothing to wait for, and nobody could interrupt the wait. */
async function readPipe(path: string): Promise<Buffer> {
  const pipe = new Socket({
    fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK),
    readable: true,
    writable: false,
  })
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of pipe as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > MAX_BYTES) throw FileErrors.file_too_large(`${path} gives more than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  if (length > 0) return Buffer.concat(chunks)
  const next = 'start what writes into it first, or name a file'
  throw FileErrors.file_unreadable(`${path} is a pipe that nothing came out of`, { next })
}
