import { createHash } from 'node:crypto'
import type { Contents, HomeFile } from '../make/contents.js'
import { bytesOf } from '../make/home-bytes.js'
import { CHUNK_BYTES, type Chunk, type ChunkStore, LEAST_BYTES } from './store.js'

/** A file whose beginning is stored in chunks. */
export interface Split {
  readonly chunks: readonly Chunk[]
  /** SHA-256 of the whole file. */
  readonly sha256: string
}

/**
 * Stores the large files of a home in chunks. The last part of a file is not stored if it is shorter than {@link LEAST_BYTES}.
 * @returns the stored part of each file, by path
 */
export async function split(
  { files }: Contents,
  store: ChunkStore,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Split>> {
  const found = new Map<string, Split>()
  for (const file of files)
    if ('file' in file.from && file.size >= LEAST_BYTES) found.set(file.path, await splitFile(file, store, signal))
  return found
}

async function splitFile(file: HomeFile, store: ChunkStore, signal: AbortSignal): Promise<Split> {
  const hash = createHash('sha256')
  const chunks: Chunk[] = []
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, file.size))
  let filled = 0
  let left = file.size
  for await (const piece of bytesOf(file)) {
    signal.throwIfAborted()
    hash.update(piece)
    left -= piece.length
    for (let at = 0; at < piece.length; ) {
      const taken = piece.subarray(at, at + buffer.length - filled)
      buffer.set(taken, filled)
      filled += taken.length
      at += taken.length
      const isLast = left === 0 && at === piece.length
      if (filled < CHUNK_BYTES && !(isLast && filled >= LEAST_BYTES)) continue
      chunks.push(await store.put(buffer.subarray(0, filled)))
      filled = 0
    }
  }
  if (left > 0) throw new Error(`${file.path} has become shorter while it was read`)
  return { chunks, sha256: hash.digest('hex') }
}
