import { readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { isInside } from '../../desk/workspaces/api.js'
import { stringsIn } from './names.js'

/** Most base folders for relative paths in one file. */
const MOST_BASES = 16

/** Entry files of a folder that is used as a program. */
const ENTRY = /^(?:package\.json|(?:index|main|__main__|__init__)\.\w+|(?:GNU)?[Mm]akefile|[Jj]ustfile)$/
/** Programs that run such an entry file. */
const RUNS_ENTRY = /^(?:npm|pnpm|yarn|bun|make|gmake|just)$/
const MODULE = /^\w+(?:\.\w+)+$/

/** The location of a file that refers to others. */
interface Namer {
  /** Canonical. */
  readonly root: string
  readonly folder: string
}

/**
 * Files below the root that a file refers to: by a path from the root, from its own folder, or from a folder that it names. A
 * program may be named without its extension or as a module. For a named folder, the files directly in it count.
 */
export async function namedBy(strings: readonly string[], { root, folder }: Namer): Promise<Set<string>> {
  const search = new Search(root)
  const bases = new Set([root, folder])
  for (const one of strings) {
    for (const base of [root, folder]) {
      const location = search.locate(base, one)
      if (location && bases.size < MOST_BASES && (await search.kindOf(location)) === 'folder') bases.add(location)
    }
  }
  for (const base of bases) for (const one of strings) await search.take(base, one)
  return search.found
}

class Search {
  readonly found = new Set<string>()
  readonly #kinds = new Map<string, 'file' | 'folder' | undefined>()
  readonly #names = new Map<string, readonly string[]>()

  constructor(private readonly root: string) {}

  /** The path that a text may mean; undefined if it is not below the root. */
  locate(base: string, text: string): string | undefined {
    if (text.includes('\0')) return undefined
    const isOfRoot = path.isAbsolute(text) && isInside(path.normalize(text), this.root)
    // The part after a variable looks absolute, as in `${workspace}/tools/run.sh`.
    const location = isOfRoot ? path.normalize(text) : path.join(base, text)
    return isInside(location, this.root) ? location.replace(/(.)\/$/, '$1') : undefined
  }

  async take(base: string, text: string): Promise<void> {
    if (RUNS_ENTRY.test(text)) await this.#folder(base, ENTRY)
    const places = [
      this.locate(base, text),
      MODULE.test(text) ? this.locate(base, text.replaceAll('.', '/')) : undefined,
    ]
    for (const location of places) {
      if (location === undefined) continue
      const kind = await this.kindOf(location)
      if (kind === 'file') this.found.add(location)
      // For the root itself, and for a word that is also a folder (`npm run build`), only entry files count.
      if (kind === 'folder') await this.#folder(location, location === this.root || !/[/.]/.test(text) ? ENTRY : /^/)
      if (kind !== 'file' && location !== this.root) await this.#withEnding(location)
    }
  }

  async kindOf(location: string): Promise<'file' | 'folder' | undefined> {
    if (!this.#kinds.has(location)) {
      const found = await stat(location).catch(() => undefined)
      this.#kinds.set(location, found?.isDirectory() ? 'folder' : found && 'file')
    }
    return this.#kinds.get(location)
  }

  async #folder(folder: string, wanted: RegExp): Promise<void> {
    for (const name of await this.#namesIn(folder)) {
      const file = path.join(folder, name)
      if (!wanted.test(name) || (await this.kindOf(file)) !== 'file' || this.found.has(file)) continue
      this.found.add(file)
      if (name === 'package.json') await this.#package(file)
    }
  }

  /** The entry files and scripts of a package. */
  async #package(file: string): Promise<void> {
    const bytes = await readRegularFile(file, { maxBytes: 1024 * 1024 }).catch(() => undefined)
    for (const one of bytes ? stringsIn(file, bytes) : []) {
      const location = this.locate(path.dirname(file), one)
      if (location && (await this.kindOf(location)) === 'file') this.found.add(location)
    }
  }

  /** Files with this name and any extension. */
  async #withEnding(location: string): Promise<void> {
    const start = `${path.basename(location)}.`
    for (const name of await this.#namesIn(path.dirname(location))) {
      const file = path.join(path.dirname(location), name)
      if (name.startsWith(start) && (await this.kindOf(file)) === 'file') this.found.add(file)
    }
  }

  async #namesIn(folder: string): Promise<readonly string[]> {
    const known = this.#names.get(folder) ?? (await readdir(folder).catch(() => []))
    this.#names.set(folder, known)
    return known
  }
}
