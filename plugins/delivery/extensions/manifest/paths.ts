import { createHash } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import type { InstalledExtension } from '../api.js'
import { ExtensionErrors } from '../errors.js'

/**
 * Resolves a path of a manifest to an absolute path without symlinks.
 * @param root folder of the extension, absolute
 * @throws Fault `extension_path_escape` if the target is outside `root` or does not exist
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
 * Reads a regular file of the extension. The path is resolved first: a link that then appears in its place is refused.
 * @throws Fault `extension_path_escape`, `file_not_regular`, `file_too_large`, `file_unreadable`
 */
export async function readInside(root: string, relative: string, max: number): Promise<Uint8Array> {
  const bytes = await readRegularFile(await resolveInside(root, relative), { maxBytes: max, links: 'refuse' })
  if (!bytes) throw ExtensionErrors.extension_path_escape(`${relative} of ${root} does not exist`)
  return bytes
}

/** Reads a text file of the extension like {@link readInside}. Throws if it is not UTF-8. */
export async function readText(root: string, relative: string, max: number): Promise<string> {
  return new TextDecoder('utf-8', { fatal: true }).decode(await readInside(root, relative, max))
}

/** Derives the record id of a named item of an extension: the same item always has the same id. */
export function shippedId(prefix: string, { name, workspace = '' }: InstalledExtension, called: string): string {
  const text = [name, called, ...(workspace === '' ? [] : [workspace])].join('\n')
  return `${prefix}_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
}

/** Expands `{{config_dir}}` to the extension's folder; variables are expanded when a program is started. */
const inFolder = ({ root }: InstalledExtension, text: string): string => text.replaceAll('{{config_dir}}', root)

/**
 * The program of a manifest: a bare name is found in the PATH, a path is below the extension and made absolute.
 * @throws Fault `extension_path_escape`
 */
async function programOf(extension: InstalledExtension, command: string): Promise<string> {
  const program = inFolder(extension, command)
  if (!program.includes('/') || program.startsWith('{{') || path.isAbsolute(program)) return program
  return resolveInside(extension.root, program)
}

/**
 * The command, arguments and variables of a manifest with paths resolved in the extension's folder.
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
