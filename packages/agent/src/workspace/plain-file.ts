import { constants } from 'node:fs'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Refused } from './paths.js'

/**
 * A symlink or a pipe may have replaced the file since the check: O_NOFOLLOW refuses the link, O_NONBLOCK avoids waiting for a
 * writer of the pipe.
 */
async function openPlain(canonical: string, flags: number): Promise<FileHandle> {
  const file = await open(canonical, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o644).catch(error => {
    throw new Refused(`${canonical} cannot be opened (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`)
  })
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw new Refused(`${canonical} is not a regular file`)
}

/**
 * The bytes of a regular file.
 * @throws {Refused} Also if it has more than `max` bytes.
 */
export async function readPlain(canonical: string, max: number): Promise<Buffer> {
  await using file = await openPlain(canonical, constants.O_RDONLY)
  const { size } = await file.stat()
  if (size > max) throw new Refused(`${canonical} has ${size} bytes; ${max} can be read`)
  const buffer = Buffer.alloc(Math.min(size, max))
  const { bytesRead } = await file.read(buffer, 0, buffer.length, 0)
  return buffer.subarray(0, bytesRead)
}

/**
 * Writes a regular file and creates its folders.
 * @throws {Refused}
 */
export async function writePlain(canonical: string, text: string): Promise<void> {
  await mkdir(dirname(canonical), { recursive: true })
  await using file = await openPlain(canonical, constants.O_WRONLY | constants.O_CREAT)
  await file.truncate()
  await file.writeFile(text)
}
