import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { messageOf, type RecordScope } from '../../../../kernel/plugin.js'
import { isInside } from '../../workspaces/api.js'
import { type DecodedLayout, decodeLayout, MAX_LAYOUT_BYTES } from './kind.js'

/**
 * Reads a layout from a package, at a path relative to its root. The path is checked after resolving symlinks: a path outside the
 * root, a non-file, an oversized file, or a file that is not JSON yields one diagnostic.
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
  const text = await readRegularFile(file, { maxBytes: MAX_LAYOUT_BYTES }).catch(messageOf)
  if (typeof text !== 'object') return invalid('path', text ?? 'there is no such file')
  try {
    return decodeLayout(JSON.parse(text.toString()), scope)
  } catch (error) {
    return invalid('json', `not valid JSON: ${(error as Error).message}`)
  }
}
