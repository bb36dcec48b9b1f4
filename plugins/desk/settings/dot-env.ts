import { stat } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { defineErrors } from '../../../kernel/plugin.js'

const MOST_BYTES = 256 * 1024
const LINE = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$/

export const DotEnvErrors = defineErrors({
  env_file_open: { status: 422, message: 'other users can read this file, which contains secrets' },
  env_file_invalid: { status: 422, message: 'a line of this file is no NAME=value' },
})

/**
 * Reads the variables of `.env` in a folder, one `NAME=value` per line. A value may be quoted; a line that starts with `#` is a
 * comment. Values are not expanded. Without the file there are no variables.
 * @throws Fault `env_file_open` unless only its owner can read it; `env_file_invalid` with the line number, never its text;
 * `file_not_regular`, `file_too_large`, `file_unreadable`
 */
export async function readDotEnv(folder: string): Promise<Readonly<Record<string, string>>> {
  const file = path.join(folder, '.env')
  const bytes = await readRegularFile(file, { maxBytes: MOST_BYTES, links: 'refuse' })
  if (!bytes) return {}
  const { mode } = await stat(file)
  if ((mode & 0o077) !== 0)
    throw DotEnvErrors.env_file_open(`${file} has permissions ${(mode & 0o777).toString(8)}, so it is not read`, {
      next: `chmod 600 ${file}`,
    })
  const variables: Record<string, string> = {}
  for (const [at, line] of bytes.toString().split('\n').entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue
    const [, name, text = ''] = LINE.exec(line) ?? []
    if (name === undefined || text.includes('\0'))
      throw DotEnvErrors.env_file_invalid(`${file}, line ${at + 1}: expected NAME=value`, { next: `edit ${file}` })
    variables[name] = /^(["'])(.*)\1$/.exec(text)?.[2] ?? text
  }
  return variables
}
