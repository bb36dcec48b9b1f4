import { lstat } from 'node:fs/promises'
import path from 'node:path'
import * as v from 'valibot'
import { type Manifest, RelativePath, readManifest } from '../manifest/manifest.js'

/**
 * Names that are never part of an extension: version control, program links, generated types, leftovers of systems and
 * editors.
 */
const LEFT_OUT: readonly string[] = ['.git', '.hg', '.svn', '.DS_Store', '.bin', '.svc', '__pycache__']
/** Packages that the daemon provides to extensions, so that both use one instance. */
export const SHARED: readonly string[] = ['svc', 'valibot']
const PACKAGES = 'node_modules'

/** Whether a path below the folder of an extension, with `/`, is left out. */
export type LeftOut = (relative: string) => boolean

/**
 * The script that an extension runs, relative: `main`, else the script of a process `node <script>`. Undefined if there
 * is none or it is outside the folder.
 */
export function scriptOf({ main, subprocess }: Pick<Manifest, 'main' | 'subprocess'>): string | undefined {
  if (main !== undefined || subprocess?.command !== 'node') return main
  const script = subprocess.args.find(arg => !arg.startsWith('-'))?.replace(/^\{\{config_dir\}\}\//, '')
  return v.is(RelativePath, script) ? script : undefined
}

/**
 * The TypeScript source that {@link scriptOf} is bundled from, relative: `main.ts` for `main.js`. Undefined if `main`
 * is written by hand.
 * @param root folder of the extension, absolute
 */
export async function sourceOfMain(
  root: string,
  manifest: Pick<Manifest, 'main' | 'subprocess'>,
): Promise<string | undefined> {
  const main = scriptOf(manifest)
  const source = main?.replace(/\.m?js$/, '.ts')
  if (source === undefined || source === main) return undefined
  const found = await lstat(path.join(root, source)).catch(() => undefined)
  return found?.isFile() ? source : undefined
}

/**
 * Paths that are not part of the extension, for packing, installing, hashing and copying. Packages linked for their
 * types lead out of the folder, and a bundle already contains all others.
 */
export async function leftOutOf(root: string): Promise<LeftOut> {
  const manifest = await readManifest(root).catch(() => undefined)
  const isBundled = manifest !== undefined && (await sourceOfMain(root, manifest)) !== undefined
  return relative => {
    const parts = relative.split('/')
    const name = parts.at(-1) as string
    if (LEFT_OUT.includes(name)) return true
    if (name === PACKAGES) return isBundled
    return parts.length === 2 && parts[0] === PACKAGES && SHARED.includes(name)
  }
}
