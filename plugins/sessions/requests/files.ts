import { constants } from 'node:fs'
import { Fault, readBounded } from '../../../kernel/plugin.js'
import { notPossible } from '../acp/error.js'
import { openInside } from './open-inside.js'

/** Bytes of a file that is looked at, and of the text that is handed to an agent. */
const MAX_FILE_BYTES = 32 * 1024 * 1024
const MAX_REPLY_BYTES = 4 * 1024 * 1024

/**
 * The text of a file for `fs/read_text_file`; `line` counts from 1, `limit` counts lines.
 * @param canonical judged already, symlinks resolved
 */
export async function readTextFile(canonical: string, line?: number | null, limit?: number | null): Promise<string> {
  const handle = await openInside(canonical, constants.O_RDONLY, false)
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw notPossible('not_a_file', `${canonical} is not a regular file`)
    const bytes = await readBounded(handle.fd, canonical, MAX_FILE_BYTES).catch(error => {
      throw error instanceof Fault ? notPossible(error.code, error.message) : error
    })
    const text = cut(bytes.toString(), line ?? 1, limit ?? undefined)
    if (Buffer.byteLength(text) > MAX_REPLY_BYTES) {
      throw notPossible('file_too_large', `more than ${MAX_REPLY_BYTES} bytes; ask for a part with line and limit`)
    }
    return text
  } finally {
    await handle.close()
  }
}

/** Writes a file for `fs/write_text_file`, with the folders it lies in. */
export async function writeTextFile(canonical: string, content: string): Promise<void> {
  const handle = await openInside(canonical, constants.O_WRONLY | constants.O_CREAT, true)
  try {
    if (!(await handle.stat()).isFile()) throw notPossible('not_a_file', `${canonical} is not a regular file`)
    await handle.truncate(0)
    await handle.writeFile(content)
  } finally {
    await handle.close()
  }
}

/** Lines `line` to `line + limit - 1`, with their ends. */
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
