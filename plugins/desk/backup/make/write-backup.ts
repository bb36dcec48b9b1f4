import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { isFull, systemDisk } from '../../../../kernel/platform.js'
import { Fault, messageOf } from '../../../../kernel/plugin.js'
import { BackupErrors } from '../api.js'
import {
  CHUNKED_FORMAT,
  HEADER_NAME,
  type Header,
  HOME_PREFIX,
  MANIFEST_NAME,
  type Manifest,
  type ManifestFile,
  manifestBytes,
  WHOLE_FORMAT,
} from '../archive/manifest.js'
import { isSealing, type Sealing, sealed } from '../archive/seal.js'
import { END, headerOf, paddingOf, type TarEntry } from '../archive/tar.js'
import { CHUNKS_NAME, indexBytes, sizeOf } from '../chunks/index-entry.js'
import { type Split, split } from '../chunks/split.js'
import type { ChunkStore } from '../chunks/store.js'
import type { Contents, HomeFile } from './contents.js'
import { bytesOf, piecesOf } from './home-bytes.js'

/** The content of one backup, as of one moment. */
export interface Material {
  readonly header: Omit<Header, 'format'>
  readonly contents: Contents
  /** Path of the database copy, complete without a log. */
  readonly database: string
  readonly migrations: Manifest['migrations']
  readonly tables: Manifest['tables']
  readonly vaultKey: boolean
}

export interface WriteOptions {
  readonly material: Material
  /** Absolute path of the file; an existing file is not replaced. */
  readonly output: string
  readonly sealing: Sealing
  /** Stores the large files; without it the backup is self-contained. */
  readonly store?: ChunkStore | undefined
  readonly signal: AbortSignal
}

export interface Written {
  /** Size of the file. */
  readonly bytes: number
  readonly files: number
  /** Size in bytes of an equivalent self-contained backup. */
  readonly wholeBytes: number
}

/** An archive and its destination. */
export interface ArchiveOptions extends Pick<WriteOptions, 'output' | 'sealing' | 'signal'> {
  readonly plain: AsyncIterable<Uint8Array>
}

const PARTIAL = '.partial'

export const partialOf = (output: string): string =>
  path.join(path.dirname(output), `.${path.basename(output)}${PARTIAL}`)
/** Name of the archive that belongs to a partial file; undefined for any other file. */
export const ofPartial = (name: string): string | undefined =>
  name.startsWith('.') && name.endsWith(PARTIAL) ? name.slice(1, -PARTIAL.length) : undefined

/** Writes a backup of a home. @throws Fault those of {@link writeArchive} */
export async function writeBackup({ material, output, sealing, store, signal }: WriteOptions): Promise<Written> {
  const counted = { files: 0, chunked: 0 }
  const plain = archiveOf(material, { store, signal, counted })
  const bytes = await writeArchive({ plain, output, sealing, signal })
  return { bytes, files: counted.files, wholeBytes: bytes + counted.chunked }
}

/**
 * Writes an archive to a partial file, reads it back, and moves it to its place. When this resolves, the archive is complete and
 * on disk; when it rejects or the process is killed, there is no archive. Returns the size of the file.
 * @throws Fault `backup_output_exists`, `backup_output_invalid`, `backup_failed`, `disk_full`, `backup_recipient_invalid`
 */
export async function writeArchive({ plain, output, sealing, signal }: ArchiveOptions): Promise<number> {
  const partial = partialOf(output)
  try {
    await fs.rm(partial, { force: true })
    const handle = await fs.open(partial, 'wx', 0o600)
    const hash = createHash('sha256')
    let bytes = 0
    try {
      for await (const piece of isSealing(sealing) ? await sealed(plain, sealing) : plain) {
        signal.throwIfAborted()
        hash.update(piece)
        bytes += piece.length
        await handle.writeFile(piece)
      }
      await handle.sync()
    } finally {
      await handle.close()
    }
    if ((await hashOf(partial, signal)) !== hash.digest('hex'))
      throw new Error('the data read back differs from the data written')
    await put(partial, output)
    return bytes
  } catch (error) {
    await fs.rm(partial, { force: true }).catch(() => {})
    throw faultFor(error, output)
  }
}

function faultFor(error: unknown, output: string): unknown {
  if (error instanceof Fault) return error
  if (isFull(error))
    return new Fault('disk_full', 507, `the backup was not made: there is not enough disk space for ${output}`, {
      cause: error,
    })
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EEXIST') return BackupErrors.backup_output_exists(`${output} already exists`)
  if (['EACCES', 'EPERM', 'EROFS', 'ENOENT', 'ENOTDIR', 'EISDIR'].includes(String(code)))
    return BackupErrors.backup_output_invalid(`the backup cannot be written to ${output}: ${messageOf(error)}`)
  return BackupErrors.backup_failed(`the backup was not made: ${messageOf(error)}`, { cause: error })
}

/** Moves the archive to its place unless a file exists there by now. */
async function put(partial: string, output: string): Promise<void> {
  await fs.link(partial, output).catch(async error => {
    if (error.code === 'EEXIST') throw error
    // A file system without hard links.
    await fs.rename(partial, output)
  })
  await fs.rm(partial, { force: true })
  await systemDisk().fsyncDir(path.dirname(output))
}

interface ArchiveOf {
  readonly store: ChunkStore | undefined
  readonly signal: AbortSignal
  /** Receives the number of files and the bytes stored in chunks. */
  readonly counted: { files: number; chunked: number }
}

async function* archiveOf(
  { header: about, contents, database, migrations, tables, vaultKey }: Material,
  { store, signal, counted }: ArchiveOf,
): AsyncGenerator<Uint8Array> {
  // Chunks are written first: a backup never refers to a missing chunk.
  const stored = store && (await split(contents, store, signal))
  const header: Header = { ...about, format: stored ? CHUNKED_FORMAT : WHOLE_FORMAT }
  yield* entry({ path: HEADER_NAME, type: 'file', mode: 0o600 }, Buffer.from(`${JSON.stringify(header)}\n`))
  if (stored) {
    const index = new Map([...stored].map(([at, { chunks }]) => [at, chunks]))
    yield* entry({ path: CHUNKS_NAME, type: 'file', mode: 0o600 }, indexBytes(index))
  }
  for (const folder of contents.folders)
    yield headerOf({ path: `${HOME_PREFIX}${folder}/`, type: 'folder', mode: 0o700, size: 0 })
  const { size } = await fs.stat(database)
  const all: readonly HomeFile[] = [{ path: 'svc.db', mode: 0o600, size, from: { file: database } }, ...contents.files]
  const files: ManifestFile[] = []
  for (const file of all) files.push(yield* fileOf(file, stored?.get(file.path), counted))
  counted.files = files.length
  const manifest = { ...header, vault_key: vaultKey, migrations, tables, folders: contents.folders, files }
  yield* entry({ path: MANIFEST_NAME, type: 'file', mode: 0o600 }, manifestBytes(manifest))
  yield END
}

/** The part of a file that is not in chunks. */
async function* fileOf(
  file: HomeFile,
  stored: Split | undefined,
  counted: { chunked: number },
): AsyncGenerator<Uint8Array, ManifestFile> {
  const chunked = stored ? sizeOf(stored.chunks) : 0
  counted.chunked += chunked
  const size = file.size - chunked
  yield headerOf({ path: `${HOME_PREFIX}${file.path}`, type: 'file', mode: file.mode, size })
  const hash = createHash('sha256')
  let read = 0
  for await (const piece of bytesOf(file, chunked)) {
    hash.update(piece)
    read += piece.length
    yield piece
  }
  if (read !== size) throw new Error(`${file.path} has become shorter while it was read`)
  yield Buffer.alloc(paddingOf(size))
  return { path: file.path, size: file.size, mode: file.mode, sha256: stored?.sha256 ?? hash.digest('hex') }
}

export async function* entry(about: Omit<TarEntry, 'size'>, bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield headerOf({ ...about, size: bytes.length })
  yield bytes
  yield Buffer.alloc(paddingOf(bytes.length))
}

async function hashOf(file: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of piecesOf(file)) {
    signal.throwIfAborted()
    hash.update(piece)
  }
  return hash.digest('hex')
}
