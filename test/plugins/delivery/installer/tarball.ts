import { gzipSync } from 'node:zlib'
import { Header, type HeaderData } from 'tar'

/** One entry of an archive as a test wants it, however wrong. */
export interface Entry {
  readonly path: string
  readonly body?: string | Uint8Array
  /** Type flag, `0` unless given. */
  readonly flag?: string
  readonly linkpath?: string
  readonly mode?: number
  /** What the header says of its size, where that is not the body's. */
  readonly size?: number
}

/** The blocks of one entry: header, body, zeros up to the next block. */
export function entry({ path, body = '', flag = '0', linkpath = '', mode = 0o644, size }: Entry): Buffer {
  const bytes = Buffer.from(body)
  const block = Buffer.alloc(512)
  const data: HeaderData = { path: path.slice(0, 100), mode, uid: 0, gid: 0, size: size ?? bytes.length, type: 'File' }
  new Header({ ...data, linkpath }).encode(block, 0)
  // The library writes no folder with a size and knows not all flags: the bytes are put in their places here.
  block.fill(0, 0, 100)
  block.write(path, 0, 100)
  block.write(flag, 156, 1, 'latin1')
  return Buffer.concat([sealed(block), bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)])
}

/** A header block with the check sum that it needs. */
export function sealed(block: Buffer, at = 0): Buffer {
  block.fill(' ', at + 148, at + 156)
  let sum = 0
  for (const byte of block.subarray(at, at + 512)) sum += byte
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, at + 148, 8, 'latin1')
  return block
}

/** An extended header, `x` for the next entry or `g` for all. */
export function pax(pairs: Readonly<Record<string, string>>, flag = 'x'): Buffer {
  const lines = Object.entries(pairs).map(([key, value]) => {
    const rest = ` ${key}=${value}\n`
    const bytes = Buffer.byteLength(rest)
    const digits = String(bytes + String(bytes).length).length
    return `${bytes + digits}${rest}`
  })
  return entry({ path: 'PaxHeader/x', flag, body: lines.join('') })
}

export const END = Buffer.alloc(1024)

export function tarball(...parts: readonly (Buffer | Entry)[]): Buffer {
  return gzipSync(Buffer.concat([...parts.map(part => (Buffer.isBuffer(part) ? part : entry(part))), END]), {
    level: 1,
  })
}

/** The manifest of a harmless extension. */
export function manifest(name = 'demo', version = '1.0.0', more = ''): string {
  return `[extension]\nname = "${name}"\nversion = "${version}"\n${more}`
}
