import * as v from 'valibot'
import { LIMITS } from '../archive/limits.js'
import { sha256 } from '../archive/manifest.js'
import type { Chunk } from './store.js'

/** Second entry of a backup with chunks; it can be read without the rest of the backup. */
export const CHUNKS_NAME = 'svc-chunks.json'

const Entry = v.object({
  path: v.pipe(v.string(), v.maxLength(LIMITS.path)),
  /** The chunks of the file's beginning; its remaining bytes are in the backup itself. */
  chunks: v.pipe(
    v.array(
      v.tuple([
        v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
        v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(LIMITS.fileBytes)),
      ]),
    ),
    v.minLength(1),
  ),
})
const Signed = v.object({ files: v.array(Entry), sha256: v.string() })

/** The chunks of each file, by path. */
export type ChunkIndex = ReadonlyMap<string, readonly Chunk[]>

/** Bytes of the entry: the index and its hash. */
export function indexBytes(index: ChunkIndex): Buffer {
  const files = [...index].map(([path, chunks]) => ({ path, chunks }))
  return Buffer.from(`${JSON.stringify({ files, sha256: sha256(JSON.stringify(files)) })}\n`)
}

/** Reads the index; undefined if it was modified or cannot be read. */
export function readIndex(bytes: Uint8Array): ChunkIndex | undefined {
  let found: unknown
  try {
    found = JSON.parse(Buffer.from(bytes).toString())
  } catch {
    return undefined
  }
  const read = v.safeParse(Signed, found)
  if (!read.success) return undefined
  const { files, sha256: sum } = read.output
  if (sha256(JSON.stringify(files)) !== sum) return undefined
  const index = new Map(files.map(({ path, chunks }) => [path, chunks]))
  return index.size === files.length ? index : undefined
}

/** Sizes of all chunks of an index, by name, without duplicates. */
export function chunksOf(index: ChunkIndex): ReadonlyMap<string, number> {
  return new Map([...index.values()].flat())
}

export const sizeOf = (chunks: readonly Chunk[]): number => chunks.reduce((sum, [, bytes]) => sum + bytes, 0)
