import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { Fault, messageOf } from '../../../../kernel/plugin.js'
import { BackupErrors } from '../api.js'
import { piecesOf } from '../make/write-backup.js'
import { LIMITS } from './limits.js'
import {
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

/** Takes each file of the home that is in a backup. */
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
 * Reads a whole backup and compares every file with the manifest. What was taken is right only when this resolves.
 * @throws Fault `backup_not_found`, `backup_unreadable`, `backup_not_one`, `backup_damaged`, `backup_newer`, `backup_encrypted`,
 * `backup_key_wrong`
 */
export async function readBackup({ file, opening, take, folder, signal }: ReadOptions): Promise<Manifest> {
  const reader = new ByteReader(await openArchive(file, opening))
  try {
    const seen = new Map<string, Seen>()
    const folders = new Set<string>()
    let header: Header | undefined
    let manifest: Manifest | undefined
    for await (const entry of entriesOf(reader)) {
      signal?.throwIfAborted()
      if (header === undefined) {
        header = headerIn(await firstBytes(entry, LIMITS.headerBytes), entry, file)
        continue
      }
      if (manifest !== undefined) throw new TarProblem('there are files behind its manifest')
      if (entry.path === MANIFEST_NAME) {
        manifest = manifestIn(await firstBytes(entry, LIMITS.manifestBytes), file)
        continue
      }
      if (!entry.path.startsWith(HOME_PREFIX))
        throw new TarProblem(`${JSON.stringify(entry.path)} is not below ${HOME_PREFIX}`)
      const at = entry.path.slice(HOME_PREFIX.length)
      if (seen.has(at) || folders.has(at)) throw new TarProblem(`${JSON.stringify(at)} is twice in it`)
      if (seen.size + folders.size >= LIMITS.entries) throw new TarProblem(`it has more than ${LIMITS.entries} files`)
      if (entry.type === 'folder') {
        folders.add(at)
        await folder?.(at)
      } else seen.set(at, { size: entry.size, mode: entry.mode, sha256: await taken(entry, at, take) })
    }
    if (header === undefined || manifest === undefined) throw new TarProblem('its manifest is missing')
    compare(manifest, header, seen, folders)
    return manifest
  } catch (error) {
    throw readFault(error, file)
  } finally {
    await reader.close().catch(() => {})
  }
}

/** What was read of a file. */
type Seen = Pick<ManifestFile, 'size' | 'mode' | 'sha256'>

/** Whether a file is encrypted; undefined when it is no backup. */
export async function lookAt(
  file: string,
): Promise<{ encrypted: true } | { encrypted: false; header: Header } | undefined> {
  try {
    if ((await beginOf(file)).equals(AGE_BEGIN)) return { encrypted: true }
  } catch {
    return undefined
  }
  const again = new ByteReader(piecesOf(file))
  try {
    for await (const entry of entriesOf(again)) {
      if (entry.path !== HEADER_NAME) return undefined
      const read = readHeader(await firstBytes(entry, LIMITS.headerBytes))
      return 'header' in read ? { encrypted: false, header: read.header } : undefined
    }
  } catch {
    return undefined
  } finally {
    await again.close().catch(() => {})
  }
  return undefined
}

/** As many bytes as say what it is. */
async function beginOf(file: string): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of piecesOf(file, { most: AGE_BEGIN.length })) pieces.push(piece)
  return Buffer.concat(pieces)
}

async function openArchive(file: string, opening: Opening): Promise<AsyncIterable<Uint8Array>> {
  try {
    const found = await fs.stat(file)
    if (!found.isFile()) throw BackupErrors.backup_unreadable(`${file} is no regular file`)
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

async function taken(entry: OpenEntry, at: string, take: Take | undefined): Promise<string> {
  const hash = createHash('sha256')
  const bytes = async function* (): AsyncGenerator<Uint8Array> {
    for await (const piece of entry.bytes()) {
      hash.update(piece)
      yield piece
    }
  }
  await take?.({ path: at, mode: entry.mode }, bytes())
  for await (const piece of entry.bytes()) hash.update(piece)
  return hash.digest('hex')
}

function compare(
  manifest: Manifest,
  header: Header,
  seen: ReadonlyMap<string, Seen>,
  folders: ReadonlySet<string>,
): void {
  const same = (Object.keys(header) as (keyof Header)[]).every(key => header[key] === manifest[key])
  if (!same) throw new TarProblem('its first entry and its manifest differ')
  for (const { path: at, size, mode, sha256 } of manifest.files) {
    const found = seen.get(at)
    if (!found) throw new TarProblem(`${JSON.stringify(at)} is missing`)
    if (found.size !== size || found.mode !== mode || found.sha256 !== sha256)
      throw new TarProblem(`${JSON.stringify(at)} was changed`)
  }
  if (seen.size !== manifest.files.length || folders.size !== manifest.folders.length)
    throw new TarProblem('it has files that its manifest does not name')
  if (!seen.has('svc.db')) throw new TarProblem('its database is missing')
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
  if (error instanceof TarProblem)
    return BackupErrors.backup_damaged(`${path.basename(file)} is damaged: ${error.message}`)
  const { code, name } = error as NodeJS.ErrnoException
  if (name === 'AbortError') return error
  if (code === 'ENOENT') return BackupErrors.backup_not_found(`there is no file ${file}`)
  if (code === 'EACCES' || code === 'EPERM' || code === 'EISDIR')
    return BackupErrors.backup_unreadable(`${file} cannot be read: ${messageOf(error)}`)
  // What decrypts fails at a piece that was changed.
  return BackupErrors.backup_damaged(`${path.basename(file)} is damaged: ${messageOf(error)}`)
}
