import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { lstat, mkdir, readdir, realpath, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { readRegularFile } from '../../../../kernel/kit/read-file.js'
import { Serial } from '../../../../kernel/kit/serial.js'
import { KernelErrors, type Plugin } from '../../../../kernel/plugin.js'
import { ExtensionErrors } from '../errors.js'
import { API_VERSION, API_VERSIONS, type ApiVersion, type Manifest } from '../manifest/manifest.js'
import { namespaceProblems } from '../manifest/namespace.js'
import { resolveInside } from '../manifest/paths.js'
import { formProblems } from './form-problems.js'
import { importModule } from './import-module.js'
import { leftOutOf } from './left-out.js'
import { linkPackages } from './package.js'
import { formerUses, fromVersionOne } from './version-one.js'
import { wrappedPlugin } from './wrapped.js'

/** Limits of a folder with code for the daemon. */
const MAX_FILES = 20_000
const MAX_BYTES = 256 * 1024 * 1024

interface SourceFile {
  /** Relative to the root, with `/`. */
  readonly relative: string
  readonly absolute: string
  /** Its permissions. */
  readonly mode: number
}

/** The files of an extension's folder, by path. @throws Fault `extension_path_escape`, `extension_too_large` */
export async function filesOf(root: string): Promise<SourceFile[]> {
  const isLeftOut = await leftOutOf(root)
  const files: SourceFile[] = []
  let bytes = 0
  const walk = async (below: string): Promise<void> => {
    const entries = await readdir(path.join(root, below), { withFileTypes: true })
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const relative = below === '' ? entry.name : `${below}/${entry.name}`
      if (isLeftOut(relative)) continue
      const absolute = entry.isSymbolicLink() ? await resolveInside(root, relative) : path.join(root, relative)
      const found = await lstat(absolute)
      if (found.isDirectory()) {
        // A link to a folder of the same tree could form a cycle; the files are read under their own path.
        if (!entry.isSymbolicLink()) await walk(relative)
        continue
      }
      if (!found.isFile()) continue
      bytes += found.size
      files.push({ relative, absolute, mode: found.mode & 0o777 })
      if (files.length > MAX_FILES || bytes > MAX_BYTES) {
        throw ExtensionErrors.extension_too_large(
          `${root} has more than ${MAX_FILES} files or ${MAX_BYTES / 1024 / 1024} MiB, with ${relative}`,
        )
      }
    }
  }
  await walk('')
  return files
}

/** Reads a listed file; a link or another file type in its place is refused. */
async function readPart(root: string, absolute: string): Promise<Buffer> {
  const bytes = await readRegularFile(absolute, { maxBytes: MAX_BYTES, links: 'refuse' })
  if (!bytes) throw ExtensionErrors.extension_changing(`${root} changed while it was read`)
  return bytes
}

/** SHA-256, hex, of the paths and bytes of a folder: the identity of a generation of code. */
export async function hashTree(root: string, files?: readonly SourceFile[]): Promise<string> {
  const hash = createHash('sha256')
  for (const { relative, absolute } of files ?? (await filesOf(root))) {
    const content = createHash('sha256')
      .update(await readPart(root, absolute))
      .digest('hex')
    hash.update(`${relative}\n${content}\n`)
  }
  return hash.digest('hex')
}

/** Content-hashed copies of code, below `$SVC_HOME/cache/extensions`. */
export class CodeCache {
  /** Folders by API version, each with a resolvable `svc` package. */
  readonly #linked = new Map<ApiVersion, Promise<void>>()
  /** Reference counts of copies that are loaded or about to be. */
  readonly #references = new Map<string, number>()
  #spent = false
  readonly #copies = new Set<Promise<unknown>>()
  #hasEnded = false
  readonly #sweeps = new Serial()
  readonly #links = new Serial()

  constructor(private readonly dir: string) {}

  /**
   * Copies the folder of an extension to `<sha>/<name>/`, so that exactly the checked files run, and stack traces
   * contain the extension's name.
   * @param unique a name that was never used before
   * @param api version of the API that the code is written for, which decides what `svc` means in the copy
   * @returns the hash, and the copy's folder
   * @throws Fault `shutting_down` after {@link end}
   */
  async copy(
    name: string,
    root: string,
    unique: string,
    api: ApiVersion = API_VERSION,
  ): Promise<{ hash: string; folder: string }> {
    if (this.#hasEnded) throw KernelErrors.shutting_down()
    const copy = this.#copy(name, root, unique, api).finally(() => this.#copies.delete(copy))
    this.#copies.add(copy)
    return copy
  }

  /** Refuses new copies; resolves when the last one has finished or was given up, and the home is no longer written to. */
  async end(): Promise<void> {
    this.#hasEnded = true
    await Promise.allSettled(this.#copies)
    await this.#sweeps.idle()
  }

  async #copy(name: string, root: string, unique: string, api: ApiVersion): Promise<{ hash: string; folder: string }> {
    const linked = this.#linked.get(api) ?? this.#links.run(() => this.#link(api))
    this.#linked.set(api, linked)
    await linked
    const files = await filesOf(root)
    const hash = await hashTree(root, files)
    const folder = path.join(this.#dirOf(api), hash, name)
    this.keep(hash)
    await this.#sweeps.idle()
    if (existsSync(folder)) return { hash, folder }
    const staged = path.join(this.dir, `.${unique}`)
    this.keep(`.${unique}`)
    const fresh = path.join(staged, name)
    try {
      for (const { relative, absolute, mode } of files) {
        const to = path.join(fresh, relative)
        await mkdir(path.dirname(to), { recursive: true, mode: 0o700 })
        await writeFile(to, await readPart(root, absolute), { flag: 'wx', mode })
      }
      if ((await hashTree(fresh)) !== hash)
        throw ExtensionErrors.extension_changing(`${root} changed while it was read`)
      await mkdir(path.dirname(folder), { recursive: true, mode: 0o700 })
      await rename(fresh, folder)
    } catch (error) {
      this.release(hash)
      throw error
    } finally {
      await rm(staged, { recursive: true, force: true })
      this.release(`.${unique}`)
    }
    return { hash, folder }
  }

  /** Folder of an extension's copy; undefined if there is none. */
  folderOf(hash: string, name: string): string | undefined {
    return API_VERSIONS.map(api => path.join(this.#dirOf(api), hash, name)).find(folder => existsSync(folder))
  }

  /** Increments the reference count of an existing copy. */
  keep(hash: string): void {
    this.#references.set(hash, (this.#references.get(hash) ?? 0) + 1)
  }

  /** Decrements the reference count of a copy whose code has ended. */
  release(hash: string): void {
    const left = (this.#references.get(hash) ?? 1) - 1
    if (left > 0) this.#references.set(hash, left)
    else this.#spent = this.#references.delete(hash) || this.#spent
  }

  /** Sweeps if copies were released since the last sweep. */
  async tidy(): Promise<void> {
    if (this.#spent) await this.sweep()
  }

  /** Removes unreferenced copies: of an earlier daemon, or released ones. */
  sweep(): Promise<void> {
    this.#spent = false
    if (this.#hasEnded) return Promise.resolve()
    return this.#sweeps.run(() => this.#sweep())
  }

  async #sweep(): Promise<void> {
    for (const dir of API_VERSIONS.map(api => this.#dirOf(api))) {
      const there = await readdir(dir).catch(() => [])
      for (const name of there.filter(name => /^[0-9a-f]{64}$|^\./.test(name))) {
        if (this.#references.has(name)) continue
        // A copy that cannot be removed is harmless; the next sweep retries.
        await rm(path.join(dir, name), { recursive: true, force: true }).catch(() => {})
      }
    }
  }

  async #link(api: ApiVersion): Promise<void> {
    await mkdir(this.dir, { recursive: true, mode: 0o700 })
    // The package.json makes main.js a module for extensions without a package.json.
    const about = path.join(this.dir, 'package.json')
    await rm(about, { recursive: true, force: true })
    await writeFile(about, '{ "type": "module" }\n', { flag: 'wx', mode: 0o600 })
    await linkPackages(this.#dirOf(api), api)
  }

  /** Copies for API version 1 stay in the folder that older daemons use. */
  #dirOf(api: ApiVersion): string {
    return api === 1 ? this.dir : path.join(this.dir, `api-${api}`)
  }
}

/** Imports the plugin of a copy. @throws Fault `extension_load_failed` if the export is not the plugin of the manifest */
export async function importPlugin(folder: string, manifest: Manifest): Promise<{ plugin: Plugin; module: string }> {
  const { name, version, main = '' } = manifest
  const file = await realpath(await resolveInside(folder, main))
  const bad = (what: string) => ExtensionErrors.extension_load_failed(`${main} of ${name}: ${what}`)
  if (await isNoModule(folder, file)) throw bad(NO_MODULE)
  const module = (await importModule(pathToFileURL(file).href)) as { default?: unknown }
  const plugin = module.default as Partial<Plugin> | undefined
  if (typeof plugin !== 'object' || plugin === null || typeof plugin.apply !== 'function' || !plugin.surface) {
    throw bad('its default export is not a plugin, { name, version, requires, surface, apply }')
  }
  const problems: string[] = []
  for (const [key, want] of Object.entries({ name, version, replaces: manifest.replaces })) {
    const has = plugin[key as 'name' | 'version' | 'replaces']
    if (has !== want)
      problems.push(`the plugin has ${key} ${has ?? 'nothing'}, but the manifest has ${want ?? 'nothing'}`)
  }
  const wrapped = wrappedPlugin(plugin.surface)
  if (wrapped !== undefined) throw bad(`its surface is that of the plugin ${wrapped}; ${NO_WRAPPER}`)
  const prefix = `/api/ext/${name}`
  const astray = (plugin.surface.routes ?? []).filter(
    ({ path }) => manifest.replaces === undefined && path !== prefix && !path.startsWith(`${prefix}/`),
  )
  problems.push(...astray.map(route => `the route ${route.path} is not below ${prefix}/`))
  const isOld = manifest.apiVersion === 1
  const today = isOld ? fromVersionOne(plugin as Plugin) : (plugin as Plugin)
  if (!isOld) problems.push(...formProblems(today))
  const misnamed = namespaceProblems(today)
  problems.push(...misnamed.map(one => `${one}; names in an extension must begin with its vendor`))
  if (isOld && problems.length > 0) problems.push(...(await formerUses(await filesOf(folder))))
  const [first, ...others] = problems
  if (first !== undefined)
    throw bad(
      others.length === 0
        ? first
        : `${problems.length} faults: ${problems.map((text, n) => `(${n + 1}) ${text}`).join('; ')}`,
    )
  return { plugin: today, module: file }
}

const NO_WRAPPER = 'a replacement declares its own routes; an addition taps hooks instead, see docs/extensions.md'
const NO_MODULE = 'it is a module, and package.json beside it does not say "type": "module"; npm pkg set type=module'

/** Whether a package.json without `"type": "module"`, as npm writes it, makes ES module code CommonJS. */
async function isNoModule(folder: string, file: string): Promise<boolean> {
  const text = await readRegularFile(path.join(folder, 'package.json'), { maxBytes: MAX_BYTES })
  if (text === undefined || !file.endsWith('.js') || /"type"\s*:\s*"module"/.test(text.toString())) return false
  return /^\s*(?:import\s*[\w{*'"]|export\s)/m.test((await readPart(folder, file)).toString())
}
