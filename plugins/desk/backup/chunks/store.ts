import fs from 'node:fs/promises'
import path from 'node:path'
import { replaceDurably } from '../../../../kernel/kit/durable-file.js'
import { FileErrors, readRegularFile } from '../../../../kernel/kit/read-file.js'
import { systemDisk } from '../../../../kernel/platform.js'
import { messageOf } from '../../../../kernel/plugin.js'
import { sha256 } from '../archive/manifest.js'

/** Folder beside the backups that holds their shared chunks. */
export const CHUNKS_FOLDER = 'chunks'
/** Files are cut at multiples of this, so that a journal that grew differs only in its last chunk. */
export const CHUNK_BYTES = 1024 * 1024
/** A shorter part is stored in the backup itself. */
export const LEAST_BYTES = 16 * 1024
/** Largest chunk that is read. */
const MOST_BYTES = 16 * CHUNK_BYTES
const NAME = /^[0-9a-f]{64}$/

/** The SHA-256 of a chunk's bytes, which is its name, and its size in bytes. */
export type Chunk = readonly [sha256: string, bytes: number]

/** Why a chunk cannot be used. */
export class ChunkProblem extends Error {}

/** Immutable pieces of files, each stored once under the SHA-256 of its bytes. */
export class ChunkStore {
  /** Bytes written by {@link put}. */
  written = 0

  constructor(readonly folder: string) {}

  /** The store of the backups of a folder. */
  static forFolder(backups: string): ChunkStore {
    return new ChunkStore(path.join(backups, CHUNKS_FOLDER))
  }

  async make(): Promise<void> {
    await fs.mkdir(this.folder, { recursive: true, mode: 0o700 })
    await systemDisk().fsyncDir(path.dirname(this.folder))
  }

  /** Names of all chunks; none if there is no store. */
  async names(): Promise<Set<string>> {
    const names = await fs.readdir(this.folder).catch(unlessGone)
    return new Set(names.filter(name => NAME.test(name)))
  }

  /** Stores a chunk unless it exists. Resolves once the bytes are on disk and were read back. */
  async put(bytes: Uint8Array): Promise<Chunk> {
    const chunk: Chunk = [sha256(bytes), bytes.length]
    // A damaged chunk is replaced.
    if (await this.holds(chunk)) return chunk
    await replaceDurably(path.join(this.folder, chunk[0]), bytes)
    this.written += bytes.length
    if (!(await this.holds(chunk))) throw new Error('the data read back differs from the data written')
    return chunk
  }

  /** @throws ChunkProblem when it is missing or damaged */
  async get([name, size]: Chunk): Promise<Buffer> {
    const file = path.join(this.folder, name)
    const bytes = await readRegularFile(file, { maxBytes: MOST_BYTES, links: 'refuse' }).catch(error => {
      if (error.code === FileErrors.file_unreadable.code) throw error
      throw new ChunkProblem(`its chunk ${name} was changed: ${messageOf(error)}`)
    })
    if (bytes === undefined) throw new ChunkProblem(`its chunk ${name} is missing`)
    if (bytes.length !== size || sha256(bytes) !== name) throw new ChunkProblem(`its chunk ${name} was changed`)
    return bytes
  }

  /** Removes unnamed chunks and temporary files of killed processes. Returns the number of freed bytes. */
  async keepOnly(names: ReadonlySet<string>): Promise<number> {
    let freed = 0
    for (const name of await fs.readdir(this.folder).catch(unlessGone)) {
      const isLeftover = /^\.[0-9a-f]{64}\.tmp$/.test(name)
      if (!isLeftover && (!NAME.test(name) || names.has(name))) continue
      const file = path.join(this.folder, name)
      // A failed removal is tried again by the next collection.
      const size = await fs.lstat(file).then(
        found => found.size,
        () => 0,
      )
      const isGone = await fs.rm(file, { recursive: true, force: true }).then(
        () => true,
        () => false,
      )
      if (isGone) freed += size
    }
    return freed
  }

  private async holds(chunk: Chunk): Promise<boolean> {
    return this.get(chunk).then(
      () => true,
      () => false,
    )
  }
}

function unlessGone(error: NodeJS.ErrnoException): string[] {
  if (error.code === 'ENOENT') return []
  throw error
}
