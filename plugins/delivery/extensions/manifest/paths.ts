import { createHash } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import type { InstalledExtension } from '../api.js'
import { ExtensionErrors } from '../errors.js'

/**
 * Where a path of a manifest leads, absolute, with all symlinks resolved.
 * @param root folder of the extension, absolute
 * @throws Fault `extension_path_escape` when that is outside of `root` or nowhere
 */
export async function resolveInside(root: string, relative: string): Promise<string> {
  const [realRoot, real] = await Promise.all([
    realpath(root),
    realpath(path.join(root, relative)).catch(() => {
      throw ExtensionErrors.extension_path_escape(`${relative} of ${root} does not exist`)
    }),
  ])
  if (real === realRoot || real.startsWith(realRoot + path.sep)) return real
  throw ExtensionErrors.extension_path_escape(`${relative} of ${root} leads out of it`)
}

/**
 * Bytes of a regular file of the extension. The path is resolved: a link that appears at its end now is refused.
 * @throws Fault `extension_path_escape`, `file_not_regular`, `file_too_large`, `file_unreadable`
 */
export async function readInside(root: string, relative: string, max: number): Promise<Uint8Array> {
  const bytes = await readRegularFile(await resolveInside(root, relative), { maxBytes: max, links: 'refuse' })
  if (!bytes) throw ExtensionErrors.extension_path_escape(`${relative} of ${root} does not exist`)
  return bytes
}

/** A text file of the extension, read by {@link readInside}. Throws when it is not UTF-8. */
export async function readText(root: string, relative: string, max: number): Promise<string> {
  return new TextDecoder('utf-8', { fatal: true }).decode(await readInside(root, relative, max))
}

/** Id of the record of something that is called so in an extension: the same thing has the same id. */
export function shippedId(prefix: string, { name, workspace = '' }: InstalledExtension, called: string): string {
  const text = [name, called, ...(workspace === '' ? [] : [workspace])].join('\n')
  return `${prefix}_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
}

/** `{{config_dir}}` is the folder of the extension; variables are looked up where a program is started. */
const inFolder = ({ root }: InstalledExtension, text: string): string => text.replaceAll('{{config_dir}}', root)

/**
 * The program of a manifest: a bare name is left to the PATH, a path is one of the extension, made absolute.
 * @throws Fault `extension_path_escape`
 */
async function programOf(extension: InstalledExtension, command: string): Promise<string> {
  const program = inFolder(extension, command)
  if (!program.includes('/') || program.startsWith('{{') || path.isAbsolute(program)) return program
  return resolveInside(extension.root, program)
}

/**
 * What a manifest has called, as it is in the folder of the extension; without a command it is none of a program.
 * @throws Fault `extension_path_escape`
 */
export async function callOf(
  extension: InstalledExtension,
  {
    command,
    args,
    env,
  }: { command?: string | undefined; args: readonly string[]; env: Readonly<Record<string, string>> },
) {
  return {
    ...(command === undefined ? {} : { command: await programOf(extension, command) }),
    args: args.map(arg => inFolder(extension, arg)),
    env: Object.fromEntries(Object.entries(env).map(([key, value]) => [key, inFolder(extension, value)])),
  }
}
