import { lstat } from 'node:fs/promises'
import path from 'node:path'
import * as v from 'valibot'
import { type Manifest, RelativePath, readManifest } from '../manifest/manifest.js'

/** Names that are never part of an extension: history, links to programs, generated types, what systems and editors leave. */
const LEFT_OUT: readonly string[] = ['.git', '.hg', '.svn', '.DS_Store', '.bin', '.svc', '__pycache__']
/** Packages that the daemon hands to extensions, so that both have one instance of each. */
export const SHARED: readonly string[] = ['svc', 'valibot']
const PACKAGES = 'node_modules'

/** Judges a path below the folder of an extension, with `/`: whether it stays behind. */
export type LeftOut = (relative: string) => boolean

/**
 * The script that an extension runs, relative: `main`, else that of a process which is `node <script>`. Undefined where there is none,
 * or it lies elsewhere.
 */
export function scriptOf({ main, subprocess }: Pick<Manifest, 'main' | 'subprocess'>): string | undefined {
  if (main !== undefined || subprocess?.command !== 'node') return main
  const script = subprocess.args.find(arg => !arg.startsWith('-'))?.replace(/^\{\{config_dir\}\}\//, '')
  return v.is(RelativePath, script) ? script : undefined
}

/**
 * The TypeScript that {@link scriptOf} is bundled from, relative: `main.ts` beside `main.js`. Undefined where `main` is written by hand.
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
 * What of a folder is no part of the extension, wherever it is read: to be packed, installed, hashed or copied. Packages that
 * are linked for their types lead out of the folder, and a bundle has the others in it already.
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
