import {
  HEADER_NAME,
  type Header,
  HOME_PREFIX,
  MANIFEST_NAME,
  type Manifest,
  manifestBytes,
  WHOLE_FORMAT,
} from '../archive/manifest.js'
import { type Part, partsOf } from '../archive/read.js'
import type { Sealing } from '../archive/seal.js'
import { END, headerOf, paddingOf } from '../archive/tar.js'
import { entry, writeArchive } from '../make/write-backup.js'

export interface ExportOptions {
  readonly file: string
  /** Absolute path of a file that does not exist yet. */
  readonly output: string
  readonly sealing: Sealing
  readonly signal: AbortSignal
}

/**
 * Writes a self-contained copy of a backup and compares every file with the manifest. Returns its size.
 * @throws Fault those of `partsOf` and `writeArchive`
 */
export async function exportBackup({ file, output, sealing, signal }: ExportOptions): Promise<number> {
  return writeArchive({ plain: whole(partsOf({ file, opening: { identities: [] }, signal })), output, sealing, signal })
}

async function* whole(parts: AsyncIterable<Part>): AsyncGenerator<Uint8Array> {
  for await (const part of parts) {
    if ('header' in part) {
      const header: Header = { ...part.header, format: WHOLE_FORMAT }
      yield* entry({ path: HEADER_NAME, type: 'file', mode: 0o600 }, Buffer.from(`${JSON.stringify(header)}\n`))
    } else if ('folder' in part)
      yield headerOf({ path: `${HOME_PREFIX}${part.folder}/`, type: 'folder', mode: 0o700, size: 0 })
    else if ('file' in part) {
      const { path: at, mode, size } = part.file
      yield headerOf({ path: `${HOME_PREFIX}${at}`, type: 'file', mode, size })
      yield* part.bytes
      yield Buffer.alloc(paddingOf(size))
    } else {
      const manifest: Manifest = { ...part.manifest, format: WHOLE_FORMAT }
      yield* entry({ path: MANIFEST_NAME, type: 'file', mode: 0o600 }, manifestBytes(manifest))
      yield END
    }
  }
}
