import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { Fault, messageOf } from '../../../../kernel/plugin.js'
import { BackupErrors } from '../api.js'
import { CHUNKS_NAME, type ChunkIndex, chunksOf, readIndex, sizeOf } from '../chunks/index-entry.js'
import { type Chunk, ChunkProblem, ChunkStore } from '../chunks/store.js'
import { piecesOf } from '../make/home-bytes.js'
import { LIMITS } from './limits.js'
import {
  CHUNKED_FORMAT,
  HEADER_NAME,
  type Header,
  HOME_PREFIX,
  MANIFEST_NAME,
  type Manifest,
  type ManifestFile,
  readHeader,
  readManifest,
} from './manifest.js'
import { AGE_BEGIN, type Opening, opened } from './seal.js'
import { ByteReader, entriesOf, type OpenEntry, TarProblem } from './tar.js'

/** Receives each file of the home in a backup. */
export type Take = (
  file: { readonly path: string; readonly mode: number },
  bytes: AsyncIterable<Uint8Array>,
) => Promise<void>

export interface ReadOptions {
  readonly file: string
  readonly opening: Opening
  readonly take?: Take
  readonly folder?: (path: string) => Promise<void>
  readonly signal?: AbortSignal | undefined
}

/**
 * Reads a whole backup and compares every file with the manifest. Received files are verified only once this resolves.
 * @throws Fault those of {@link partsOf}
 */
export async function readBackup({ take, folder, ...options }: ReadOptions): Promise<Manifest> {
  let manifest: Manifest | undefined
  for await (const part of partsOf(options)) {
    if ('manifest' in part) manifest = part.manifest
    else if ('folder' in part) await folder?.(part.folder)
    else if ('file' in part) await take?.(part.file, part.bytes)
  }
  // The manifest is the last part; reading fails without it.
  return manifest as Manifest
}

/** A part of a backup, in archive order. The manifest comes last and is yielded only if all earlier parts match it. */
export type Part =
  | { readonly header: Header }
  | { readonly folder: string }
  | {
      readonly file: { readonly path: string; readonly mode: number; readonly size: number }
      /** Bytes from chunks, then from the archive. Unread content is skipped. */
      readonly bytes: AsyncIterable<Uint8Array>
    }
  | { readonly manifest: Manifest }

/**
 * Reads a backup part by part.
 * @throws Fault `backup_not_found`, `backup_unreadable`, `backup_not_one`, `backup_damaged`, `backup_newer`, `backup_encrypted`,
 * `backup_key_wrong`, `backup_incomplete`
 */
export async function* partsOf({
  file,
  opening,
  signal,
}: Pick<ReadOptions, 'file' | 'opening' | 'signal'>): AsyncGenerator<Part> {
  const reader = new ByteReader(await openArchive(file, opening))
  try {
    const files = new Map<string, FileFacts>()
    const folders = new Set<string>()
    let header: Header | undefined
    let index: ChunkIndex | undefined
    let manifest: Manifest | undefined
    const store = ChunkStore.forFolder(path.dirname(file))
    for await (const entry of entriesOf(reader)) {
      signal?.throwIfAborted()
      if (header === undefined) {
        header = headerIn(await firstBytes(entry, LIMITS.headerBytes), entry, file)
        yield { header }
        continue
      }
      if (manifest !== undefined) throw new TarProblem('there are files after its manifest')
      if (header.format === CHUNKED_FORMAT && index === undefined) {
        index = await indexIn(entry)
        await checkComplete(index, store, file)
        continue
      }
      if (entry.path === MANIFEST_NAME) {
        manifest = manifestIn(await firstBytes(entry, LIMITS.manifestBytes), file)
        continue
      }
      if (!entry.path.startsWith(HOME_PREFIX))
        throw new TarProblem(`${JSON.stringify(entry.path)} is not below ${HOME_PREFIX}`)
      const at = entry.path.slice(HOME_PREFIX.length)
      if (files.has(at) || folders.has(at)) throw new TarProblem(`${JSON.stringify(at)} occurs twice in it`)
      if (files.size + folders.size >= LIMITS.entries) throw new TarProblem(`it has more than ${LIMITS.entries} files`)
      if (entry.type === 'folder') {
        folders.add(at)
        yield { folder: at }
      } else files.set(at, yield* fileIn(entry, { at, chunks: index?.get(at) ?? [], store, file }))
    }
    if (header === undefined || manifest === undefined) throw new TarProblem('its manifest is missing')
    compare(manifest, header, files, folders)
    yield { manifest }
  } catch (error) {
    throw readFault(error, file)
  } finally {
    await reader.close().catch(() => {})
  }
}

interface FileIn {
  readonly at: string
  readonly chunks: readonly Chunk[]
  readonly store: ChunkStore
  /** Path of the backup. */
  readonly file: string
}

/** Yields a file of a backup and returns its size, mode and hash. */
async function* fileIn(entry: OpenEntry, { at, chunks, store, file }: FileIn): AsyncGenerator<Part, FileFacts> {
  const { mode } = entry
  const size = sizeOf(chunks) + entry.size
  if (size > LIMITS.fileBytes) throw new TarProblem('a file in it is too large')
  const hash = createHash('sha256')
  const bytes = (async function* (): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of joined(chunks, entry, store)) {
        hash.update(piece)
        yield piece
      }
    } catch (error) {
      throw readFault(error, file)
    }
  })()
  // A consumer may stop early: the loop below reads the rest for the hash. The wrapper has no `return`, which would end the
  // generator.
  yield { file: { path: at, mode, size }, bytes: { [Symbol.asyncIterator]: () => ({ next: () => bytes.next() }) } }
  for await (const _ of bytes);
  return { size, mode, sha256: hash.digest('hex') }
}

async function* joined(chunks: readonly Chunk[], entry: OpenEntry, store: ChunkStore): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield await store.get(chunk)
  yield* entry.bytes()
}

async function indexIn(entry: OpenEntry): Promise<ChunkIndex> {
  const index = entry.path === CHUNKS_NAME ? readIndex(await firstBytes(entry, LIMITS.manifestBytes)) : undefined
  if (index === undefined) throw new TarProblem('its list of chunks cannot be read')
  return index
}

/** @throws Fault `backup_incomplete` before anything of the backup is taken */
async function checkComplete(index: ChunkIndex, store: ChunkStore, file: string): Promise<void> {
  const needed = [...chunksOf(index).keys()]
  const there = await store.names()
  const missing = needed.filter(name => !there.has(name)).length
  if (missing > 0)
    throw BackupErrors.backup_incomplete(
      `${path.basename(file)} is not complete: ${missing} of the ${needed.length} chunks that it needs are not in ${store.folder}. Where the chunks are, export a self-contained file and use that: svc backup export`,
    )
}

/** Size, mode and hash of a file that was read. */
type FileFacts = Pick<ManifestFile, 'size' | 'mode' | 'sha256'>

/** The header of a backup, without its content. */
export type BackupHead =
  | { readonly encrypted: true }
  | {
      readonly encrypted: false
      readonly header: Header
      /** Sizes in bytes of the required chunks, by name. */
      readonly chunks: ReadonlyMap<string, number>
      /** Bytes of all files that are stored in chunks. */
      readonly chunked: number
    }

/** Reads the header of a backup; undefined if the file is not a backup or cannot be read. */
export async function lookAt(file: string): Promise<BackupHead | undefined> {
  try {
    if ((await beginOf(file)).equals(AGE_BEGIN)) return { encrypted: true }
  } catch {
    return undefined
  }
  const again = new ByteReader(piecesOf(file))
  try {
    let header: Header | undefined
    for await (const entry of entriesOf(again)) {
      if (header === undefined) {
        if (entry.path !== HEADER_NAME) return undefined
        const read = readHeader(await firstBytes(entry, LIMITS.headerBytes))
        if (!('header' in read)) return undefined
        header = read.header
        if (header.format !== CHUNKED_FORMAT) return { encrypted: false, header, chunks: new Map(), chunked: 0 }
        continue
      }
      const index = await indexIn(entry)
      return { encrypted: false, header, chunks: chunksOf(index), chunked: sizeOf([...index.values()].flat()) }
    }
  } catch {
    return undefined
  } finally {
    await again.close().catch(() => {})
  }
  return undefined
}

/** Whether a file begins like an unencrypted backup. A damaged backup still does. */
export async function beginsAsBackup(file: string): Promise<boolean> {
  return (await beginOf(file)).toString('latin1').startsWith(HEADER_NAME)
}

/** The first bytes of a file, enough to identify its format. */
async function beginOf(file: string): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of piecesOf(file, { end: AGE_BEGIN.length })) pieces.push(piece)
  return Buffer.concat(pieces)
}

async function openArchive(file: string, opening: Opening): Promise<AsyncIterable<Uint8Array>> {
  try {
    const found = await fs.stat(file)
    if (!found.isFile()) throw BackupErrors.backup_unreadable(`${file} is not a regular file`)
    const first = await beginOf(file)
    if (first.equals(AGE_BEGIN)) return await opened(piecesOf(file), opening)
    const text = first.toString('latin1')
    const isOne = text.startsWith(HEADER_NAME) || HEADER_NAME.startsWith(text)
    if (text === '' || !isOne) throw BackupErrors.backup_not_one(`${file} is not a backup of svc`)
    return piecesOf(file)
  } catch (error) {
    throw readFault(error, file)
  }
}

function compare(
  manifest: Manifest,
  header: Header,
  files: ReadonlyMap<string, FileFacts>,
  folders: ReadonlySet<string>,
): void {
  const same = (Object.keys(header) as (keyof Header)[]).every(key => header[key] === manifest[key])
  if (!same) throw new TarProblem('its first entry and its manifest differ')
  for (const { path: at, size, mode, sha256 } of manifest.files) {
    const found = files.get(at)
    if (!found) throw new TarProblem(`${JSON.stringify(at)} is missing`)
    if (found.size !== size || found.mode !== mode || found.sha256 !== sha256)
      throw new TarProblem(`${JSON.stringify(at)} was changed`)
  }
  if (files.size !== manifest.files.length || folders.size !== manifest.folders.length)
    throw new TarProblem('it has files that its manifest does not name')
  if (!files.has('svc.db')) throw new TarProblem('its database is missing')
}

function headerIn(bytes: Buffer, { path: at }: OpenEntry, file: string): Header {
  if (at !== HEADER_NAME) throw BackupErrors.backup_not_one(`${file} is not a backup of svc`)
  const read = readHeader(bytes)
  if ('header' in read) return read.header
  if (read.isNewer) throw BackupErrors.backup_newer(`${file} was made by a later version: ${read.problem}`)
  throw new TarProblem(read.problem)
}

function manifestIn(bytes: Buffer, file: string): Manifest {
  const read = readManifest(bytes)
  if ('manifest' in read) return read.manifest
  if (read.isNewer) throw BackupErrors.backup_newer(`${file} was made by a later version: ${read.problem}`)
  throw new TarProblem(read.problem)
}

async function firstBytes(entry: OpenEntry, most: number): Promise<Buffer> {
  if (entry.size > most)
    throw new TarProblem(`${JSON.stringify(entry.path)} in it has ${entry.size} bytes, at most ${most} are read`)
  const pieces: Uint8Array[] = []
  for await (const piece of entry.bytes()) pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces)
}

function readFault(error: unknown, file: string): unknown {
  if (error instanceof Fault) return error
  if (error instanceof TarProblem || error instanceof ChunkProblem)
    return BackupErrors.backup_damaged(`${path.basename(file)} is damaged: ${error.message}`)
  const { code, name } = error as NodeJS.ErrnoException
  if (name === 'AbortError') return error
  if (code === 'ENOENT') return BackupErrors.backup_not_found(`there is no file ${file}`)
  if (code === 'EACCES' || code === 'EPERM' || code === 'EISDIR')
    return BackupErrors.backup_unreadable(`${file} cannot be read: ${messageOf(error)}`)
  // Decryption fails at a modified piece.
  return BackupErrors.backup_damaged(`${path.basename(file)} is damaged: ${messageOf(error)}`)
}
