import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { messageOf } from '../../../../kernel/plugin.js'
import { ExtensionErrors } from '../errors.js'
import { packageRoot } from '../load/package.js'
import { type Manifest, parseManifest } from '../manifest/manifest.js'
import { type BridgeLibraries, bridgeFiles, type Language } from './bridge-template.js'
import { type Form, filesOf } from './templates.js'
import { developmentPackages, writeTypes } from './types.js'

const MAX_LIBRARY_BYTES = 4 * 1024 * 1024

/**
 * Writes a new extension atomically: the folder has all files or does not exist.
 * @param folder absolute; missing or empty
 * @returns its files, relative
 * @throws Fault `extension_exists`, `extension_name_invalid`
 */
export async function writeExtension(
  folder: string,
  form: Form,
  name: string,
  language: Language = 'ts',
): Promise<string[]> {
  const isTyped = form === 'typescript' || (form === 'bridge' && language === 'ts')
  const packages = isTyped ? await developmentPackages() : {}
  const files =
    form === 'bridge' ? bridgeFiles(name, language, await libraries(), packages) : filesOf(form, name, packages)
  // The name is validated by the manifest's own rules, before anything is written.
  let manifest: Manifest
  try {
    manifest = parseManifest(files['extension.toml'], 'extension.toml')
  } catch (error) {
    throw badName(form, name, messageOf(error))
  }
  const there = await readdir(folder).catch(error => {
    if ((error as { code?: string }).code === 'ENOENT') return []
    throw ExtensionErrors.extension_exists(`${folder} is not a folder`)
  })
  if (there.length > 0) throw ExtensionErrors.extension_exists(`${folder} already exists and is not empty`)
  const staged = `${folder}.part`
  try {
    for (const [file, text] of Object.entries(files)) {
      const at = path.join(staged, file)
      await mkdir(path.dirname(at), { recursive: true })
      await writeFile(at, text)
    }
    if (isTyped) await writeTypes(staged, manifest)
    await rename(staged, folder)
  } finally {
    await rm(staged, { recursive: true, force: true })
  }
  return Object.keys(files)
}

/** The adapter libraries of this program. */
async function libraries(): Promise<BridgeLibraries> {
  const read = async (file: string) => {
    const text = await readRegularFile(path.join(packageRoot(), 'dist', file), { maxBytes: MAX_LIBRARY_BYTES })
    return `${text ?? ''}`
  }
  return { node: await read('bridge.js'), python: await read('bridge/svc_bridge.py') }
}

/** The violated rule, with a similar valid name. */
function badName(form: Form, name: string, violation: string) {
  const [vendor = '', ...rest] = name
    .toLowerCase()
    .split('.')
    .map(part => part.replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, ''))
    .filter(part => part !== '')
  const things = rest.join('-') || vendor || 'things'
  const better =
    rest.length > 0 ? `${vendor}.${things}` : form === 'plugin' || form === 'typescript' ? `acme.${things}` : things
  const rule = violation.replace(/^extension\.toml:\d+: name: /, '')
  const option = form === 'plugin' ? [] : ['--form', form]
  return ExtensionErrors.extension_name_invalid(`${JSON.stringify(name)} is not a valid extension name: ${rule}`, {
    next: command('extension init', better, ...option),
  })
}
