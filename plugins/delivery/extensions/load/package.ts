import { existsSync } from 'node:fs'
import { lstat, mkdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { ExtensionErrors } from '../errors.js'
import type { ApiVersion } from '../manifest/manifest.js'
import { SHARED } from './left-out.js'

const MAX_BYTES = 1024 * 1024

/** One entry of the package, by files relative to its folder. */
interface Entry {
  readonly types: string
  readonly default: string
}

/** As much of the package.json as is used. */
export interface PackageJson {
  readonly version: string
  readonly exports: Readonly<Record<string, Entry>>
  readonly devDependencies: Readonly<Record<string, string>>
}

const versionOne = (name: string): Entry => ({
  types: `./dist/types/plugins/delivery/extensions/version-one/${name}.d.ts`,
  default: `./dist/version-one/${name}.js`,
})

/** Entries that extensions of `apiVersion = 1` have in place of those of today. */
const ENTRIES_OF_ONE: Readonly<Record<string, Entry>> = { '.': versionOne('svc'), './plugin': versionOne('plugin') }

/** Folder of the package that this code is part of, built or not. */
export function packageRoot(): string {
  let folder = path.dirname(fileURLToPath(import.meta.url))
  while (!existsSync(path.join(folder, 'package.json')) && path.dirname(folder) !== folder)
    folder = path.dirname(folder)
  return folder
}

/** Folder of a package as code in a folder finds it. */
export function findPackage(from: string, name: string): string | undefined {
  for (let folder = from; ; folder = path.dirname(folder)) {
    const found = path.join(folder, 'node_modules', name)
    if (existsSync(found)) return found
    if (path.dirname(folder) === folder) return undefined
  }
}

/** The package.json of this program, with the entries that extensions of a version of the API have. */
export async function packageFor(api: ApiVersion): Promise<PackageJson> {
  const file = path.join(packageRoot(), 'package.json')
  const bytes = await readRegularFile(file, { maxBytes: MAX_BYTES })
  if (!bytes) throw ExtensionErrors.extension_load_failed(`${file} is missing: the package of the daemon is not whole`)
  const own = JSON.parse(bytes.toString()) as PackageJson
  return api === 1 ? { ...own, exports: { ...own.exports, ...ENTRIES_OF_ONE } } : own
}

/**
 * Makes the packages that the daemon hands to extensions of a version of the API importable from below a folder. `svc` is a link to this
 * package; for `apiVersion = 1` it is a folder with other entries, whose files are those of this package.
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
  // A daemon of an earlier version left a link to its own package, which must not be written into.
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
