import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Clock, messageOf, readRegularFile } from '../../kernel/plugin.js'
import { isInside } from '../workspaces/api.js'

const MAX_REDIRECTS = 3

/** Why something of a catalog cannot be had. */
export type FetchProblem = 'unreachable' | 'timeout' | 'too_large' | 'not_found' | 'insecure'

export class FetchError extends Error {
  constructor(
    readonly problem: FetchProblem,
    message: string,
  ) {
    super(message)
  }
}

/** Where a catalog lies: a folder of this machine, or an address. */
export type Base = { readonly kind: 'folder'; readonly folder: string } | { readonly kind: 'http'; readonly url: URL }

/** Undefined for what is neither an absolute path nor an address of http, https or file. */
export function baseOf(text: string): Base | undefined {
  if (path.isAbsolute(text)) return { kind: 'folder', folder: path.resolve(text) }
  if (!URL.canParse(text)) return undefined
  const url = new URL(text.endsWith('/') ? text : `${text}/`)
  if (url.protocol === 'file:') return { kind: 'folder', folder: fileURLToPath(url) }
  if (!['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.password !== '') return undefined
  return { kind: 'http', url }
}

/** Whether somebody on the way could change what comes from there. */
export const isInsecure = (base: Base) =>
  base.kind === 'http' &&
  base.url.protocol === 'http:' &&
  !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(base.url.hostname)

/**
 * The bytes of one file of a catalog.
 * @param name relative to the base; of a catalog at an address also an https address, or one of the same origin
 * @throws FetchError
 */
export async function fetchFrom(
  base: Base,
  name: string,
  { clock, maxBytes, timeoutMs }: { readonly clock: Clock; readonly maxBytes: number; readonly timeoutMs: number },
): Promise<Buffer> {
  if (base.kind === 'folder') return readFrom(base.folder, name, maxBytes)
  const url = new URL(name, base.url)
  if (url.protocol !== 'https:' && url.origin !== base.url.origin)
    throw new FetchError('insecure', `${url.host} is neither https nor where the catalog is`)
  const abort = new AbortController()
  const timer = clock.timeout(timeoutMs, () => abort.abort())
  try {
    return await body(await follow(url, abort.signal), maxBytes)
  } catch (error) {
    if (error instanceof FetchError) throw error
    if (abort.signal.aborted) throw new FetchError('timeout', `${url.host} did not send it within ${timeoutMs} ms`)
    const cause = (error as { cause?: unknown }).cause ?? error
    throw new FetchError('unreachable', `${url.host}: ${messageOf(cause)}`)
  } finally {
    timer.cancel()
    abort.abort()
  }
}

async function readFrom(folder: string, name: string, maxBytes: number): Promise<Buffer> {
  if (URL.canParse(name)) throw new FetchError('insecure', 'a catalog in a folder names files of that folder only')
  try {
    const root = await realpath(folder)
    const real = await realpath(path.resolve(root, name))
    if (!isInside(real, root)) throw new FetchError('insecure', `${name} leads out of ${folder}`)
    const bytes = await readRegularFile(real, { maxBytes, links: 'refuse' })
    if (bytes) return bytes
    throw new FetchError('not_found', `there is no ${name} in ${folder}`)
  } catch (error) {
    if (error instanceof FetchError) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') throw new FetchError('not_found', `there is no ${name} in ${folder}`)
    throw new FetchError(code === 'file_too_large' ? 'too_large' : 'unreachable', messageOf(error))
  }
}

async function follow(first: URL, signal: AbortSignal): Promise<Response> {
  let url = first
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const response = await fetch(url, { redirect: 'manual', credentials: 'omit', signal })
    const location = response.headers.get('location')
    if (response.ok) return response
    await response.body?.cancel()
    if (response.status === 404 || response.status === 410)
      throw new FetchError('not_found', `${url.href} is not there`)
    if (response.status < 300 || response.status >= 400 || location === null)
      throw new FetchError('unreachable', `${url.host} answers ${response.status}`)
    const next = new URL(location, url)
    if (next.protocol !== 'https:' && next.origin !== first.origin)
      throw new FetchError('insecure', `${url.host} leads on to ${next.host}, which is not as safe`)
    url = next
  }
  throw new FetchError('unreachable', `${first.host} leads on and on`)
}

async function body(response: Response, maxBytes: number): Promise<Buffer> {
  const tooLarge = () => new FetchError('too_large', `more than ${maxBytes} bytes`)
  if (Number(response.headers.get('content-length')) > maxBytes) throw tooLarge()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > maxBytes) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
