import nodeFs from 'node:fs'
import fs from 'node:fs/promises'
import { promisify } from 'node:util'
import { openRegularFile } from '../../../../kernel/kit/read-file.js'
import { BackupErrors } from '../api.js'
import type { HomeFile } from './contents.js'

const READ_BYTES = 256 * 1024
const read = promisify(nodeFs.read)
const close = promisify(nodeFs.close)

/**
 * The bytes of a file of the home from an offset on.
 * @throws Fault `backup_busy` if a file that is written in place, such as a segment of an archive, changed while it was read
 */
export async function* bytesOf({ path: name, from, size }: HomeFile, begin = 0): AsyncGenerator<Uint8Array> {
  if ('bytes' in from) {
    yield from.bytes.subarray(begin)
    return
  }
  yield* piecesOf(from.file, { begin, end: size, links: 'refuse' })
  if (from.stamp !== undefined && (await fs.stat(from.file, { bigint: true })).mtimeNs !== from.stamp)
    throw BackupErrors.backup_busy(`${name} was written while it was read; try again`)
}

/** The bytes of a regular file between two offsets, or all of them. */
export async function* piecesOf(
  file: string,
  { begin = 0, end = Number.POSITIVE_INFINITY, links = 'follow' as 'follow' | 'refuse' } = {},
): AsyncGenerator<Buffer> {
  const handle = await openRegularFile(file, { links })
  try {
    for (let at = begin; at < end; ) {
      const room = Buffer.allocUnsafe(Math.min(READ_BYTES, end - at))
      const { bytesRead } = await read(handle, room, 0, room.length, at)
      if (bytesRead === 0) return
      at += bytesRead
      yield room.subarray(0, bytesRead)
    }
  } finally {
    await close(handle)
  }
}
