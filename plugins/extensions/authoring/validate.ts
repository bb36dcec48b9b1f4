import { readFile, realpath } from 'node:fs/promises'
import { messageOf } from '../../../kernel/plugin.js'
import { admit } from '../admission.js'
import { importPlugin } from '../code.js'
import { type Manifest, readManifestFile } from '../manifest.js'
import { type Copy, withCopy } from './copy.js'
import { surfaceProblems } from './surface-problems.js'

/** What is known of the folder of an extension without loading it. */
export interface Validation {
  readonly root: string
  readonly manifest: Manifest
  /** Of the plugin of `main`; nothing of it was applied. */
  readonly problems: readonly string[]
}

/** The manifest of a folder, and where that really is. @throws Fault of the manifest, with file, line and key */
export async function readFolderManifest(folder: string) {
  const { manifest, text } = await readManifestFile(folder, file => readFile(file))
  return { root: await realpath(folder), manifest, text }
}

/**
 * Reads the manifest of a folder, follows its paths and, where it has `main`, imports the plugin and looks at its surface.
 * @param leftOut names of what the code does not need
 * @throws Fault of the manifest, with file, line and key
 */
export async function validateFolder(folder: string, leftOut: readonly string[] = []): Promise<Validation> {
  const { root, manifest, text } = await readFolderManifest(folder)
  const { name, min_svc_version: daemonVersion = '0.0.0' } = manifest
  await admit({ folder, root, manifest, digest: text }, { name, tier: 'user', daemonVersion })
  return { root, manifest, problems: manifest.main === undefined ? [] : await codeProblems(manifest, root, leftOut) }
}

async function codeProblems(manifest: Manifest, root: string, leftOut: readonly string[]): Promise<string[]> {
  const look = async ({ folder }: Copy) => {
    try {
      return surfaceProblems((await importPlugin(folder, manifest)).plugin)
    } catch (error) {
      // A stack would name the copy, and what is to be edited is the original.
      return [messageOf(error).replaceAll(folder, root)]
    }
  }
  return withCopy(manifest.name, root, look, leftOut)
}
