import { createHash } from 'node:crypto'
import nodeFs from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { openRegularFile } from '../../../../kernel/kit/read-file.js'
import { isFull, systemDisk } from '../../../../kernel/platform.js'
import { Fault, messageOf } from '../../../../kernel/plugin.js'
import { BackupErrors } from '../api.js'
import {
  HEADER_NAME,
  type Header,
  HOME_PREFIX,
  MANIFEST_NAME,
  type Manifest,
  type ManifestFile,
  manifestBytes,
} from '../archive/manifest.js'
import { isSealing, type Sealing, sealed } from '../archive/seal.js'
import { END, headerOf, paddingOf, type TarEntry } from '../archive/tar.js'
import type { Contents, HomeFile } from './contents.js'

/** Everything that goes into one backup, as of one moment. */
export interface Material {
  readonly header: Header
  readonly contents: Contents
  /** The database, whole and without a log. */
  readonly database: string
  readonly migrations: Manifest['migrations']
  readonly tables: Manifest['tables']
  readonly vaultKey: boolean
}

export interface WriteOptions {
  readonly material: Material
  /** Absolute path of the file; one that is there is not replaced. */
  readonly output: string
  readonly sealing: Sealing
  readonly signal: AbortSignal
}

export interface Written {
  readonly bytes: number
  readonly files: number
}

const READ_BYTES = 256 * 1024
const PARTIAL = '.partial'
const read = promisify(nodeFs.read)
const close = promisify(nodeFs.close)

export const partialOf = (output: string): string =>
  path.join(path.dirname(output), `.${path.basename(output)}${PARTIAL}`)
export const isPartial = (name: string): boolean => name.startsWith('.svc-') && name.endsWith(PARTIAL)

/**
 * Writes a backup beside its place, reads it back, and puts it there: it is whole and on the disk when this resolves, and there is
 * none when it rejects or the process is killed.
 * @throws Fault `backup_output_exists`, `backup_output_invalid`, `backup_failed`, `disk_full`, `backup_recipient_invalid`
 */
export async function writeBackup({ material, output, sealing, signal }: WriteOptions): Promise<Written> {
  const partial = partialOf(output)
  let files = 0
  try {
    await fs.rm(partial, { force: true })
    const handle = await fs.open(partial, 'wx', 0o600)
    const hash = createHash('sha256')
    let bytes = 0
    try {
      const plain = archiveOf(material, count => {
        files = count
      })
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
      throw new Error('what was read back is not what was written')
    await put(partial, output)
    return { bytes, files }
  } catch (error) {
    await fs.rm(partial, { force: true }).catch(() => {})
    throw faultFor(error, output)
  }
}

function faultFor(error: unknown, output: string): unknown {
  if (error instanceof Fault) return error
  if (isFull(error))
    return new Fault('disk_full', 507, `the backup was not made: there is no room for ${output}`, { cause: error })
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EEXIST') return BackupErrors.backup_output_exists(`${output} is there already`)
  if (['EACCES', 'EPERM', 'EROFS', 'ENOENT', 'ENOTDIR', 'EISDIR'].includes(String(code)))
    return BackupErrors.backup_output_invalid(`the backup cannot be written to ${output}: ${messageOf(error)}`)
  return BackupErrors.backup_failed(`the backup was not made: ${messageOf(error)}`, { cause: error })
}

/** In its place unless there is a file by now. */
async function put(partial: string, output: string): Promise<void> {
  await fs.link(partial, output).catch(async error => {
    if (error.code === 'EEXIST') throw error
    // A file system without hard links.
    await fs.rename(partial, output)
  })
  await fs.rm(partial, { force: true })
  await systemDisk().fsyncDir(path.dirname(output))
}

/** @param done told of the number of files at the end */
async function* archiveOf(material: Material, done: (files: number) => void): AsyncGenerator<Uint8Array> {
  const { header, contents, database, migrations, tables, vaultKey } = material
  yield* entry({ path: HEADER_NAME, type: 'file', mode: 0o600 }, Buffer.from(`${JSON.stringify(header)}\n`))
  for (const folder of contents.folders)
    yield headerOf({ path: `${HOME_PREFIX}${folder}/`, type: 'folder', mode: 0o700, size: 0 })
  const { size } = await fs.stat(database)
  const all: readonly HomeFile[] = [{ path: 'svc.db', mode: 0o600, size, from: { file: database } }, ...contents.files]
  const files: ManifestFile[] = []
  for (const file of all) {
    yield headerOf({ path: `${HOME_PREFIX}${file.path}`, type: 'file', mode: file.mode, size: file.size })
    const hash = createHash('sha256')
    let read = 0
    for await (const piece of bytesOf(file)) {
      hash.update(piece)
      read += piece.length
      yield piece
    }
    if (read !== file.size) throw new Error(`${file.path} has become shorter while it was read`)
    yield Buffer.alloc(paddingOf(file.size))
    files.push({ path: file.path, size: file.size, mode: file.mode, sha256: hash.digest('hex') })
  }
  const manifest = { ...header, vault_key: vaultKey, migrations, tables, folders: contents.folders, files }
  yield* entry({ path: MANIFEST_NAME, type: 'file', mode: 0o600 }, manifestBytes(manifest))
  yield END
  done(files.length)
}

async function* entry(about: Omit<TarEntry, 'size'>, bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield headerOf({ ...about, size: bytes.length })
  yield bytes
  yield Buffer.alloc(paddingOf(bytes.length))
}

/** @throws Fault `backup_busy` for one that is written in place and was written meanwhile, such as a segment of an archive */
async function* bytesOf({ path: name, from, size }: HomeFile): AsyncGenerator<Uint8Array> {
  if ('bytes' in from) {
    yield from.bytes
    return
  }
  yield* piecesOf(from.file, { most: size, links: 'refuse' })
  if (from.stamp !== undefined && (await fs.stat(from.file, { bigint: true })).mtimeNs !== from.stamp)
    throw BackupErrors.backup_busy(`${name} was written while it was read; try again`)
}

/** The first bytes of a regular file, or all. */
export async function* piecesOf(
  file: string,
  { most = Number.POSITIVE_INFINITY, links = 'follow' as 'follow' | 'refuse' } = {},
): AsyncGenerator<Buffer> {
  const handle = await openRegularFile(file, { links })
  try {
    for (let at = 0; at < most; ) {
      const room = Buffer.allocUnsafe(Math.min(READ_BYTES, most - at))
      const { bytesRead } = await read(handle, room, 0, room.length, at)
      if (bytesRead === 0) return
      at += bytesRead
      yield room.subarray(0, bytesRead)
    }
  } finally {
    await close(handle)
  }
}

async function hashOf(file: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of piecesOf(file)) {
    signal.throwIfAborted()
    hash.update(piece)
  }
  return hash.digest('hex')
}
