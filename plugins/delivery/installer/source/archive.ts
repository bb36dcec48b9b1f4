import { gunzip } from 'node:zlib'
import { Header, Pax } from 'tar'
import { messageOf } from '../../../../kernel/plugin.js'
import { refused } from '../errors.js'
import { limits } from './limits.js'
import { type Tree, TreeBuilder } from './tree.js'

const BLOCK = 512

/** Allowed keys of an extended header. All but the path are ignored. */
const PAX_KEYS =
  /^(path|[acm]time|[ug]id|[ug]name|comment|charset|LIBARCHIVE\.(creationtime|xattr\..+)|SCHILY\.(dev|ino|nlink|fflags|xattr\..+|acl\..+))$/

/**
 * Reads the tree of a `.tar.gz` in memory and checks it as a whole: a refused entry means that nothing was written. The
 * library decodes each header; the order of headers and the end of the archive are checked here, because tar readers
 * differ in exactly these.
 * @throws Fault `extension_content_refused`
 */
export async function readArchive(packed: Uint8Array, isRoot: (path: string) => boolean): Promise<Tree> {
  const bytes = await unzip(packed)
  const tree = new TreeBuilder()
  let pax: Pax | undefined
  let at = 0
  for (;;) {
    const header = headerAt(bytes, at, pax)
    if (header === undefined) break
    const { path = '', type, size = 0 } = header
    const body = bytes.subarray(at + BLOCK, at + BLOCK + size)
    if (body.length < size) throw refused('truncated', 'the archive ends within it', path)
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK
    if (type === 'ExtendedHeader' || type === 'GlobalExtendedHeader' || type === 'NextFileHasLongPath') {
      if (pax !== undefined) throw refused('extended_header', 'one extended header follows another', path)
      pax = extended(type, body)
      continue
    }
    pax = undefined
    take(tree, header, path, body)
  }
  if (pax !== undefined) throw refused('truncated', 'an extended header describes no entry')
  checkEnd(bytes, at)
  return tree.build(isRoot)
}

function take(tree: TreeBuilder, { type, mode = 0 }: Header, path: string, body: Buffer): void {
  switch (type) {
    case 'File':
    case 'OldFile':
      tree.expect(path, body.length)
      tree.add(path, (mode & 0o100) !== 0, body)
      return
    case 'Directory':
      tree.folder(path)
      return
    case 'SymbolicLink':
      throw refused('link', 'a symbolic link', path)
    case 'Link':
      throw refused('hard_link', 'a hard link', path)
    default:
      throw refused('special_file', `neither a file nor a folder but ${type}`, path)
  }
}

/** The header of the next entry; undefined at a zero block, which ends the archive. */
function headerAt(bytes: Buffer, at: number, pax: Pax | undefined): Header | undefined {
  if (at + BLOCK > bytes.length) throw refused('truncated', 'the archive has no end')
  if (isZero(bytes.subarray(at, at + BLOCK))) return undefined
  let header: Header
  try {
    header = new Header(bytes, at, pax)
  } catch (error) {
    throw refused('header', `a header cannot be read: ${messageOf(error)}`)
  }
  const { path = '', size, type, cksumValid } = header
  if (!cksumValid) throw refused('header', 'the check sum of a header is wrong', path)
  if (path === '' || path.includes('\0')) throw refused('header', 'a header names nothing', path)
  if (size === undefined || !Number.isSafeInteger(size)) throw refused('header', 'a header has no size', path)
  // The library reads a folder's size as zero; other readers skip that many bytes.
  if (type === 'Directory' && !/^[\s\0]*0*[\s\0]*$/.test(bytes.toString('latin1', at + 124, at + 136)))
    throw refused('header', 'a folder has a size', path)
  if (header.linkpath && type !== 'SymbolicLink' && type !== 'Link')
    throw refused('header', 'an entry that is not a link has a link target', path)
  return header
}

/** Parses an extended header; unusual headers are refused because readers interpret them differently. */
function extended(type: string, body: Buffer): Pax | undefined {
  if (body.length > limits.paxBytes) throw refused('extended_header', `it has more than ${limits.paxBytes} bytes`)
  if (type === 'NextFileHasLongPath') {
    const end = body.indexOf(0)
    return new Pax({ path: textOf(end === -1 ? body : body.subarray(0, end)) })
  }
  const text = textOf(body)
  const keys = new Set<string>()
  for (const line of text.replace(/\n$/, '').split('\n')) {
    const [, length, key = ''] = /^(\d+) ([^=\0]+)=[^\0]*$/.exec(line) ?? []
    if (Number(length) !== Buffer.byteLength(line) + 1) throw refused('extended_header', 'it cannot be read')
    if (keys.has(key)) throw refused('extended_header', `it has ${key} twice`)
    if (!PAX_KEYS.test(key)) throw refused('extended_header', `it says ${key}`)
    keys.add(key)
  }
  if (type === 'ExtendedHeader') return Pax.parse(text)
  // A global header applies to all following entries: git stores its commit there. Its other keys are ignored.
  if (keys.has('path')) throw refused('extended_header', 'it gives all entries one path')
  return undefined
}

function textOf(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw refused('extended_header', 'it is not valid UTF-8')
  }
}

/** The archive must end with two zero blocks and only zeros after them. */
function checkEnd(bytes: Buffer, at: number): void {
  if (bytes.length < at + 2 * BLOCK) throw refused('truncated', 'the archive has no end')
  if (!isZero(bytes.subarray(at))) throw refused('trailing_data', 'the archive has data after its end')
}

function isZero(bytes: Buffer): boolean {
  return bytes.equals(Buffer.alloc(bytes.length))
}

async function unzip(packed: Uint8Array): Promise<Buffer> {
  if (packed.length > limits.archiveBytes)
    throw refused('too_large', `the archive has more than ${limits.archiveBytes} bytes`)
  if (packed[0] !== 0x1f || packed[1] !== 0x8b) throw refused('not_an_archive', 'it is not a .tar.gz file')
  const most = Math.min(limits.treeBytes * 1.25, Math.max(limits.ratioFrom, packed.length * limits.ratio))
  return new Promise((resolve, reject) => {
    const options = { maxOutputLength: most, info: true }
    gunzip(packed, options, (error: NodeJS.ErrnoException | null, result: unknown) => {
      if (error?.code === 'ERR_BUFFER_TOO_LARGE')
        return reject(refused('bomb', `unpacked it has more than ${most} bytes, of ${packed.length} packed`))
      if (error) return reject(refused('truncated', `it does not unpack: ${error.message}`))
      const { buffer, engine } = result as { buffer: Buffer; engine: { bytesWritten: number } }
      if (engine.bytesWritten !== packed.length)
        return reject(refused('trailing_data', 'the archive has data after its end'))
      resolve(buffer)
    })
  })
}
