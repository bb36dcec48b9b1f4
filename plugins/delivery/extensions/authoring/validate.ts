import { realpath, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { Fault, type Plugin } from '../../../../kernel/plugin.js'
import { admit } from '../load/admission.js'
import { importPlugin } from '../load/code.js'
import { placed } from '../load/error-location.js'
import { shippedKeys } from '../load/families.js'
import { importModule } from '../load/import-module.js'
import { type Manifest, readManifestFile } from '../manifest/manifest.js'
import { type Copy, withCopy } from './copy.js'
import { surfaceProblems } from './surface-problems.js'

/** Results of the checks of an extension's folder, which is not loaded. */
export interface Validation {
  readonly root: string
  readonly manifest: Manifest
  /** Problems of the plugin in `main`, which is not applied, and of the shipped items. */
  readonly problems: readonly string[]
}

/** The manifest of a folder and the folder's real path. @throws Fault of the manifest, with file, line and key */
export async function readFolderManifest(folder: string) {
  const { manifest, text } = await readManifestFile(folder)
  return { root: await realpath(folder), manifest, text }
}

/**
 * Reads the manifest of a folder, checks its paths, imports the plugin of `main` and checks its surface, and checks the
 * shipped items with the daemon's own code.
 * @throws Fault of the manifest, with file, line and key
 */
export async function validateFolder(folder: string): Promise<Validation> {
  const { root, manifest, text } = await readFolderManifest(folder)
  const { name, min_svc_version: daemonVersion = '0.0.0' } = manifest
  await admit({ folder, root, manifest, digest: text }, { name, tier: 'user', daemonVersion })
  return { root, manifest, problems: await problemsOf(manifest, root) }
}

/**
 * Source of a module that is written next to the copy of the folder, where `svc` can be resolved. This plugin may not import
 * `svc/testing` itself, which builds on all plugins.
 */
const JUDGE = "export { replacementProblems, shippedProblems } from 'svc/testing'\n"

interface Judge {
  shippedProblems(folder: string): Promise<string[]>
  replacementProblems(plugin: Plugin): string[]
}

function problemsOf(manifest: Manifest, root: string): Promise<string[]> {
  const entries = manifest.leftOut ?? []
  const check = async ({ folder, above }: Copy) => {
    // Messages name files of the copy, but a person edits the original.
    const withOriginalPaths = (text: string) => text.replaceAll(folder, root)
    const code = manifest.main === undefined ? undefined : await readCode(folder, root, manifest)
    const found = code === undefined || 'problem' in code ? [code?.problem ?? []].flat() : surfaceProblems(code)
    const problems = [...entries, ...found]
    const replacement = code && 'surface' in code && code.replaces !== undefined ? code : undefined
    const isShipping = shippedKeys(manifest).length > 0
    if (!replacement && !isShipping) return problems.map(withOriginalPaths)
    const file = path.join(above, 'judge.mjs')
    await writeFile(file, JUDGE)
    const judge = (await importModule(pathToFileURL(file).href)) as unknown as Judge
    if (replacement) problems.push(...judge.replacementProblems(replacement))
    if (isShipping) problems.push(...(await judge.shippedProblems(folder)))
    return problems.map(withOriginalPaths)
  }
  return withCopy(manifest, root, check)
}

async function readCode(
  folder: string,
  root: string,
  manifest: Manifest,
): Promise<Plugin | { readonly problem: string }> {
  try {
    return (await importPlugin(folder, manifest)).plugin
  } catch (error) {
    const problem = placed(error, { folder, root })
    if (error instanceof Fault) return { problem }
    // Node shows the line of a syntax error only where it ends the process.
    const where =
      error instanceof SyntaxError ? `; to see where: node --check ${path.join(root, `${manifest.main}`)}` : ''
    return { problem: `${manifest.main} cannot be imported: ${problem}${where}` }
  }
}
