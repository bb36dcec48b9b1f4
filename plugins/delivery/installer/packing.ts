import { rename, rm } from 'node:fs/promises'
import { create } from 'tar'
import { ExtensionErrors, leftOutOf } from '../extensions/api.js'
import { readArchive } from './source/archive.js'
import { readFolder, readLocalArchive } from './source/folder.js'
import { sha256, treeDigest } from './source/tree.js'

export interface Packed {
  /** Absolute. */
  readonly file: string
  readonly bytes: number
  readonly files: number
  /** Hex SHA-256 of the archive, as `svc extension install --checksum` takes it. */
  readonly sha256: string
}

/** The work of `packFolder` of the API. */
export async function packFolder(root: string, name: string, file: string): Promise<Packed> {
  const stale = new RegExp(`^${name.replaceAll('.', '\\.')}-[^/]*\\.tar\\.gz(\\.part)?$`)
  const all = await readFolder(root, await leftOutOf(root))
  const tree = all.filter(({ path: at }) => !stale.test(at))
  const part = `${file}.part`
  // Opening a leftover pipe of that name would block.
  await rm(part, { force: true })
  const options = { cwd: root, file: part, gzip: { portable: true }, portable: true, mtime: new Date(0), prefix: name }
  try {
    await create(
      options,
      tree.map(({ path: at }) => at),
    )
    const bytes = await readLocalArchive(part)
    const unpacked = await readArchive(bytes, at => at.startsWith('extension.'))
    if (treeDigest(unpacked) !== treeDigest(tree))
      throw ExtensionErrors.extension_changing(`${root} changed during the operation`)
    await rename(part, file)
    return { file, bytes: bytes.length, files: tree.length, sha256: sha256(bytes) }
  } finally {
    await rm(part, { force: true })
  }
}
