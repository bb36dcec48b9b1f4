import { constants } from 'node:fs'
import { readBounded } from '../../../../kernel/kit/read-file.js'
import { Fault } from '../../../../kernel/plugin.js'
import { notPossible } from '../protocol/error.js'
import { openInside } from './open-inside.js'

/** Maximum bytes of a file that is read, and of the text that an agent gets. */
const MAX_FILE_BYTES = 32 * 1024 * 1024
const MAX_REPLY_BYTES = 4 * 1024 * 1024

/**
 * The text of a file for `fs/read_text_file`; `line` counts from 1, `limit` counts lines.
 * @param canonical already judged, symlinks resolved
 */
export async function readTextFile(canonical: string, line?: number | null, limit?: number | null): Promise<string> {
  const handle = await openInside(canonical, constants.O_RDONLY, false)
  try {
    const text = cut(await textOf(handle, canonical), line ?? 1, limit ?? undefined)
    if (Buffer.byteLength(text) > MAX_REPLY_BYTES) {
      throw notPossible('file_too_large', `more than ${MAX_REPLY_BYTES} bytes; ask for a part with line and limit`)
    }
    return text
  } finally {
    await handle.close()
  }
}

/** The whole text of a file before a write; undefined: the file does not exist. */
export async function textBefore(canonical: string): Promise<string | undefined> {
  const handle = await openInside(canonical, constants.O_RDONLY, false).catch(error => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!handle) return undefined
  try {
    return await textOf(handle, canonical)
  } finally {
    await handle.close()
  }
}

/**
 * Writes a file for `fs/write_text_file`, with missing parent folders.
 * @param shown the old text that a person approved, `undefined` in it for a new file; if the file has changed since, nothing is
 * written
 */
export async function writeTextFile(
  canonical: string,
  content: string,
  shown?: { readonly before: string | undefined },
): Promise<void> {
  const { O_CREAT, O_EXCL, O_RDWR, O_WRONLY } = constants
  const flags = !shown ? O_WRONLY | O_CREAT : shown.before === undefined ? O_WRONLY | O_CREAT | O_EXCL : O_RDWR
  const handle = await openInside(canonical, flags, true).catch(error => {
    throw shown && (error.code === 'EEXIST' || error.code === 'ENOENT') ? changed(canonical) : error
  })
  try {
    if (!(await handle.stat()).isFile()) throw notPossible('not_a_file', `${canonical} is not a regular file`)
    if (shown?.before !== undefined && (await textOf(handle, canonical)) !== shown.before) throw changed(canonical)
    await handle.truncate(0)
    const bytes = Buffer.from(content)
    for (let at = 0; at < bytes.length; ) at += (await handle.write(bytes, at, bytes.length - at, at)).bytesWritten
  } finally {
    await handle.close()
  }
}

const changed = (file: string) =>
  notPossible('file_changed', `${file} was changed while a person was asked; read it again and write it again`)

async function textOf(handle: Awaited<ReturnType<typeof openInside>>, canonical: string): Promise<string> {
  if (!(await handle.stat()).isFile()) throw notPossible('not_a_file', `${canonical} is not a regular file`)
  const bytes = await readBounded(handle.fd, canonical, MAX_FILE_BYTES).catch(error => {
    throw error instanceof Fault ? notPossible(error.code, error.message) : error
  })
  return bytes.toString()
}

/** Lines `line` to `line + limit - 1`, with their line ends. */
function cut(text: string, line: number, limit: number | undefined): string {
  if (line <= 1 && limit === undefined) return text
  let start = 0
  for (let skip = Math.max(1, line) - 1; skip > 0; skip--) {
    const end = text.indexOf('\n', start)
    if (end < 0) return ''
    start = end + 1
  }
  if (limit === undefined) return text.slice(start)
  let end = start
  for (let left = limit; left > 0 && end < text.length; left--) {
    const next = text.indexOf('\n', end)
    end = next < 0 ? text.length : next + 1
  }
  return text.slice(start, end)
}
