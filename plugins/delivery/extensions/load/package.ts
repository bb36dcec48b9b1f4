import { existsSync } from 'node:fs'
import { lstat, mkdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { ExtensionErrors } from '../errors.js'
import type { ApiVersion } from '../manifest/manifest.js'
import { SHARED } from './left-out.js'

const MAX_BYTES = 1024 * 1024

/** An entry point of the package, with paths relative to its folder. */
interface Entry {
  readonly types: string
  readonly default: string
}

/** The used part of package.json. */
export interface PackageJson {
  readonly version: string
  readonly exports: Readonly<Record<string, Entry>>
  readonly devDependencies: Readonly<Record<string, string>>
}

const versionOne = (name: string): Entry => ({
  types: `./dist/types/plugins/delivery/extensions/version-one/${name}.d.ts`,
  default: `./dist/version-one/${name}.js`,
})

/** Entry points of `apiVersion = 1` that replace the current ones. */
const ENTRIES_OF_ONE: Readonly<Record<string, Entry>> = { '.': versionOne('svc'), './plugin': versionOne('plugin') }

/** Folder of the package with this code, built or not. */
export function packageRoot(): string {
  let folder = path.dirname(fileURLToPath(import.meta.url))
  while (!existsSync(path.join(folder, 'package.json')) && path.dirname(folder) !== folder)
    folder = path.dirname(folder)
  return folder
}

/** Folder of a package, resolved from another folder. */
export function findPackage(from: string, name: string): string | undefined {
  for (let folder = from; ; folder = path.dirname(folder)) {
    const found = path.join(folder, 'node_modules', name)
    if (existsSync(found)) return found
    if (path.dirname(folder) === folder) return undefined
  }
}

/** The package.json of this program, with the entry points of an API version. */
export async function packageFor(api: ApiVersion): Promise<PackageJson> {
  const file = path.join(packageRoot(), 'package.json')
  const bytes = await readRegularFile(file, { maxBytes: MAX_BYTES })
  if (!bytes) throw ExtensionErrors.extension_load_failed(`${file} is missing: the package of the daemon is incomplete`)
  const own = JSON.parse(bytes.toString()) as PackageJson
  return api === 1 ? { ...own, exports: { ...own.exports, ...ENTRIES_OF_ONE } } : own
}

/**
 * Makes the shared packages resolvable below a folder, for extensions of an API version. `svc` is a link to this
 * package; for `apiVersion = 1` it is a folder with other entry points to the same files.
 */
export async function linkPackages(dir: string, api: ApiVersion): Promise<void> {
  const folder = path.join(dir, 'node_modules')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const own = packageRoot()
  for (const name of SHARED) {
    const target = name === 'svc' ? own : findPackage(own, name)
    if (target === undefined) continue
    if (name === 'svc' && api === 1) await writePackage(path.join(folder, name), own)
    else await linkTo(path.join(folder, name), target)
  }
}

async function linkTo(link: string, target: string): Promise<void> {
  if ((await readlink(link).catch(() => '')) === target) return
  await rm(link, { recursive: true, force: true })
  await symlink(target, link, 'dir')
}

async function writePackage(folder: string, own: string): Promise<void> {
  // An earlier daemon created a link to its own package, which must not be written to.
  const found = await lstat(folder).catch(() => undefined)
  if (found && !found.isDirectory()) await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await linkTo(path.join(folder, 'dist'), path.join(own, 'dist'))
  const { version, exports } = await packageFor(1)
  const text = `${JSON.stringify({ name: 'svc', version, type: 'module', exports }, undefined, 2)}\n`
  const file = path.join(folder, 'package.json')
  const before = await readRegularFile(file, { maxBytes: MAX_BYTES }).catch(() => undefined)
  if (before?.toString() === text) return
  const fresh = `${file}.part`
  await rm(fresh, { recursive: true, force: true })
  await writeFile(fresh, text, { flag: 'wx', mode: 0o600 })
  await rename(fresh, file)
}
