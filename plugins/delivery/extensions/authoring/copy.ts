import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { CodeCache } from '../load/code.js'
import type { Manifest } from '../manifest/manifest.js'

/** A copy of an extension in the form that the daemon imports: `svc` and `valibot` resolve from it. */
export interface Copy {
  readonly folder: string
  /** The parent folder, which this copy alone uses. */
  readonly above: string
}

/** Runs `work` on a copy of an extension's folder and removes the copy. */
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
