import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { CodeCache } from '../load/code.js'
import type { Manifest } from '../manifest/manifest.js'

/** A copy of an extension, as the daemon makes one before it imports the code: `svc` and `valibot` are found from there. */
export interface Copy {
  readonly folder: string
  /** A folder above it, of nobody else. */
  readonly above: string
}

/** Does something with a copy of the folder of an extension, which goes afterwards. */
export async function withCopy<T>(
  { name, apiVersion }: Pick<Manifest, 'name' | 'apiVersion'>,
  root: string,
  work: (copy: Copy) => Promise<T>,
): Promise<T> {
  const temporary = await mkdtemp(path.join(os.tmpdir(), 'svc-extension-'))
  try {
    const { folder } = await new CodeCache(temporary).copy(name, root, 'staged', apiVersion)
    return await work({ folder, above: path.dirname(folder) })
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}
