import { stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { shellWord } from '../../../../kernel/kit/commands/command-line.js'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { ExtensionErrors } from '../errors.js'
import { importModule } from '../load/import-module.js'
import { scriptOf, sourceOfMain } from '../load/left-out.js'
import type { Manifest } from '../manifest/manifest.js'

/** Limit for a source file and for its bundle. */
const MAX_SOURCE_BYTES = 16 * 1024 * 1024

/** Files of a main module in TypeScript, relative to the folder. */
export interface BundledMain {
  readonly source: string
  /** Absent: nothing was bundled, because the script is newer than the source and the folder has no bundler. */
  readonly script?: string
}

/**
 * Bundles `main` from the TypeScript beside it, for example `main.js` from `main.ts`, with the bundler installed in the
 * folder.
 * @returns the source, and the script if it was bundled; undefined if `main` has no TypeScript source
 * @throws Fault `extension_bundler_missing`; `extension_build_failed` with file, line and column
 */
export async function bundleMain(root: string, manifest: Manifest): Promise<BundledMain | undefined> {
  const source = await sourceOfMain(root, manifest)
  const script = scriptOf(manifest)
  if (source === undefined || script === undefined) return undefined
  const file = path.join(root, script)
  // A new adapter runs without installed packages: its script is bundled only after its source changes.
  if (manifest.main === undefined && !hasBundler(root) && (await isNewer(file, path.join(root, source))))
    return { source }
  const text = await bundleSource(root, source)
  // An unchanged file is not written, so that watchers of the folder do not fire.
  const before = await readRegularFile(file, { maxBytes: MAX_SOURCE_BYTES })
  if (before?.toString() !== text) await writeFile(file, text)
  return { source, script }
}

/**
 * Bundles a TypeScript file and its imports into one module; modules that the daemon provides stay imports.
 * @param source relative to `root`
 * @throws Fault `extension_bundler_missing`; `extension_build_failed` with file, line and column
 */
export async function bundleSource(root: string, source: string): Promise<string> {
  const { build } = await bundlerOf(root, source)
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [path.join(root, source)],
    outfile: path.join(root, 'bundle.js'),
    write: false,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: ['svc', 'svc/*', 'valibot'],
    logLevel: 'silent',
  }).catch((error: BuildFailure) => {
    throw invalid(source, error)
  })
  return outputFiles[0]?.text ?? ''
}

/** The rejection of esbuild; columns start at 0. */
interface BuildFailure extends Error {
  readonly errors?: readonly {
    readonly text: string
    readonly location: { readonly file: string; readonly line: number; readonly column: number } | null
  }[]
}

/** One error with the place of the first problem and the number of the others. */
function invalid(source: string, { message, errors = [] }: BuildFailure) {
  const [first] = errors
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : ''
  if (!first?.location) return ExtensionErrors.extension_build_failed(`${source}: ${first?.text ?? message}${more}`)
  const { file, line, column } = first.location
  return ExtensionErrors.extension_build_failed(`${file}:${line}:${column + 1}: ${first.text}${more}`, {
    details: { file, line: String(line) },
    next: `edit ${file}, line ${line}`,
  })
}

/** The used part of esbuild's API. */
interface Bundler {
  build(options: object): Promise<{ readonly outputFiles: readonly { readonly text: string }[] }>
}

/** Path of the bundler that a folder has installed; throws where it has none. */
const pathOfBundler = (root: string) => createRequire(path.join(root, 'package.json')).resolve('esbuild')

function hasBundler(root: string): boolean {
  try {
    return pathOfBundler(root) !== ''
  } catch {
    return false
  }
}

/** Whether a file exists and is at least as new as another one. */
async function isNewer(file: string, than: string): Promise<boolean> {
  const [one, other] = await Promise.all([file, than].map(at => stat(at).catch(() => undefined)))
  return one !== undefined && other !== undefined && one.mtimeMs >= other.mtimeMs
}

async function bundlerOf(root: string, source: string): Promise<Bundler> {
  let resolved: string
  try {
    resolved = pathOfBundler(root)
  } catch {
    throw ExtensionErrors.extension_bundler_missing(`${source} must be bundled, but ${root} has no esbuild`, {
      next: `npm install --save-dev esbuild --prefix ${shellWord(root)}`,
    })
  }
  const module = await importModule(pathToFileURL(resolved).href)
  return (module.default ?? module) as Bundler
}
