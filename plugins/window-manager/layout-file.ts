import { constants } from 'node:fs'
import { open, realpath } from 'node:fs/promises'
import path from 'node:path'
import type { RecordScope } from '../../kernel/plugin.js'
import { isInside } from '../workspaces/api.js'
import { type DecodedLayout, decodeLayout, MAX_LAYOUT_BYTES } from './layout-kind.js'

/**
 * Reads a layout that a package has at a path relative to its root. The path is judged after its symlinks are resolved: what
 * is not a file inside the root, is larger than a layout may be, or is not JSON, is one diagnostic.
 */
export async function readLayoutFile(root: string, relative: string, scope: RecordScope): Promise<DecodedLayout> {
  const invalid = (code: string, message: string): DecodedLayout => ({
    is: 'invalid',
    diagnostics: [{ code: `layout.${code}`, path: relative, message }],
  })
  if (path.isAbsolute(relative) || relative.includes('\0'))
    return invalid('path', 'a path relative to the package is wanted')
  const top = await realpath(root).catch(() => undefined)
  const file = top && (await realpath(path.resolve(top, relative)).catch(() => undefined))
  if (!top || !file) return invalid('path', 'there is no such file')
  if (!isInside(file, top) || file === top) return invalid('path', 'the file is outside the package')
  const text = await readBounded(file)
  if (text === undefined) return invalid('path', `it is not a file of at most ${MAX_LAYOUT_BYTES} bytes`)
  try {
    return decodeLayout(JSON.parse(text), scope)
  } catch (error) {
    return invalid('json', `not valid JSON: ${(error as Error).message}`)
  }
}

/** Opened without waiting: the file may be a pipe that nobody writes to. */
async function readBounded(file: string): Promise<string | undefined> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined)
  try {
    const facts = await handle?.stat()
    if (!handle || !facts?.isFile() || facts.size > MAX_LAYOUT_BYTES) return undefined
    return await handle.readFile('utf8')
  } finally {
    await handle?.close()
  }
}
