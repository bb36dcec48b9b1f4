import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { Header } from 'tar'

const BLOCK = 512
const zip = promisify(gzip)

/** A file of an archive. */
export interface Entry {
  readonly path: string
  readonly bytes: Buffer
}

/** The bytes of a `.tar.gz` of files that only its owner may read. */
export async function archiveOf(entries: readonly Entry[], at: number): Promise<Buffer> {
  const parts = entries.flatMap(({ path, bytes }) => {
    const block = Buffer.alloc(BLOCK)
    const mtime = new Date(at)
    new Header({ path, mode: 0o600, uid: 0, gid: 0, size: bytes.length, type: 'File', mtime }).encode(block, 0)
    return [block, bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)]
  })
  return zip(Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]))
}
