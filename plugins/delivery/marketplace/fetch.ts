import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { type Clock, messageOf } from '../../../kernel/plugin.js'
import { isInside } from '../../desk/workspaces/api.js'
import { DownloadError, download } from '../extensions/api.js'

/** Location of a catalog: a local folder or an address. */
export type Base = { readonly kind: 'folder'; readonly folder: string } | { readonly kind: 'http'; readonly url: URL }

/** Undefined for anything but an absolute path or an http, https or file address. */
export function baseOf(text: string): Base | undefined {
  if (path.isAbsolute(text)) return { kind: 'folder', folder: path.resolve(text) }
  if (!URL.canParse(text)) return undefined
  const url = new URL(text.endsWith('/') ? text : `${text}/`)
  if (url.protocol === 'file:') return { kind: 'folder', folder: fileURLToPath(url) }
  if (!['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.password !== '') return undefined
  return { kind: 'http', url }
}

/** Whether content could be modified in transit. */
export const isInsecure = (base: Base) =>
  base.kind === 'http' &&
  base.url.protocol === 'http:' &&
  !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(base.url.hostname)

/**
 * The bytes of one file of a catalog.
 * @param name relative to the base; of a catalog at an address also an https address, or one of the same origin
 * @throws DownloadError
 */
export async function fetchFrom(
  base: Base,
  name: string,
  { clock, maxBytes, timeoutMs }: { readonly clock: Clock; readonly maxBytes: number; readonly timeoutMs: number },
): Promise<Buffer> {
  if (base.kind === 'folder') return readFrom(base.folder, name, maxBytes)
  const url = new URL(name, base.url)
  if (url.protocol !== 'https:' && url.origin !== base.url.origin)
    throw new DownloadError('insecure', `${url.host} uses neither https nor the host of the catalog`)
  // A catalog of a public host must not lead to addresses inside this machine or its networks.
  return download(url, { clock, maxBytes, timeoutMs, named: base.url })
}

async function readFrom(folder: string, name: string, maxBytes: number): Promise<Buffer> {
  if (URL.canParse(name))
    throw new DownloadError('insecure', 'a catalog in a folder may refer only to files in that folder')
  try {
    const root = await realpath(folder)
    const real = await realpath(path.resolve(root, name))
    if (!isInside(real, root)) throw new DownloadError('insecure', `${name} leads out of ${folder}`)
    const bytes = await readRegularFile(real, { maxBytes, links: 'refuse' })
    if (bytes) return bytes
    throw new DownloadError('not_found', `there is no ${name} in ${folder}`)
  } catch (error) {
    if (error instanceof DownloadError) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR')
      throw new DownloadError('not_found', `there is no ${name} in ${folder}`)
    throw new DownloadError(code === 'file_too_large' ? 'too_large' : 'unreachable', messageOf(error))
  }
}
