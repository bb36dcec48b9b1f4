import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { ExtensionErrors } from '../errors.js'
import { parseManifest } from '../manifest.js'
import { type Form, filesOf } from './templates.js'

/**
 * Writes a new extension; the folder is there with all of its files or not at all.
 * @param folder absolute; it is not there, or empty
 * @returns its files, relative
 * @throws Fault `extension_exists`, `extension_manifest_invalid` for a name that no manifest may have
 */
export async function writeExtension(folder: string, form: Form, name: string): Promise<string[]> {
  const files = filesOf(form, name)
  // Before anything is written: what the name is to be is said by the manifest's own rules.
  parseManifest(files['extension.toml'], 'extension.toml')
  const there = await readdir(folder).catch(error => {
    if ((error as { code?: string }).code === 'ENOENT') return []
    throw ExtensionErrors.extension_exists(`${folder} is not a folder`)
  })
  if (there.length > 0) throw ExtensionErrors.extension_exists(`${folder} is there already and is not empty`)
  const staged = `${folder}.part`
  try {
    for (const [file, text] of Object.entries(files)) {
      const at = path.join(staged, file)
      await mkdir(path.dirname(at), { recursive: true })
      await writeFile(at, text)
    }
    await rename(staged, folder)
  } finally {
    await rm(staged, { recursive: true, force: true })
  }
  return Object.keys(files)
}
