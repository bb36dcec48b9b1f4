import { createHash } from 'node:crypto'
import { lstat, readdir, realpath } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { messageOf } from '../../../kernel/plugin.js'
import { isInside, type Workspace } from '../../desk/workspaces/api.js'
import { TrustErrors } from './api.js'
import { namedBy } from './named-files.js'
import { stringsIn } from './names.js'

/** Limits of the search; a workspace beyond them is not trusted. */
const MOST_FILES = 5000
const MOST_BYTES = 64 * 1024 * 1024
const DEEPEST = 16

/** Folders whose files all count, except {@link HARMLESS} ones. */
const FOLDERS = ['.svc', '.agents/skills', '.claude/skills']
/** Files in the root that define which programs are started. */
const FILES = ['.mcp.json']

/**
 * Paths that run no code unless another file refers to them: the identity of the folder, memories, and texts that are only shown
 * to an agent. Each is matched as a whole, and only if it is not a link.
 */
const HARMLESS: Readonly<Record<'file' | 'folder', RegExp>> = {
  file: /^\.svc\/(?:workspace\.toml|(?:agents\/[^/]+\/)?(?:SOUL|HEARTBEAT)\.md)$/,
  folder: /^\.svc\/memory$/,
}

/** The files of a workspace that may run code, with a digest of their names and contents. */
export interface TrustedFiles {
  readonly files: readonly string[]
  readonly digest: string
}

/**
 * Collects all files in the folders that can run code, and all files of the workspace that these refer to.
 * @param home the daemon's home; its files belong to no workspace, except those in its folder `scratch`
 * @throws Fault `trust_unreadable`
 */
export async function filesOf(
  { rootDir, addDirs }: Pick<Workspace, 'rootDir' | 'addDirs'>,
  home: string,
): Promise<TrustedFiles> {
  const walk = new Walk(await realpath(home).catch(() => home))
  for (const [at, dir] of [rootDir, ...addDirs].entries()) {
    const root = await realpath(dir).catch(() => undefined)
    if (root === undefined) continue
    const shown = (inside: string) => (at === 0 ? inside : path.join(dir, inside))
    for (const inside of FOLDERS) await walk.covered(path.join(root, inside), { root, inside, shown })
    // A server file counts only in the root of the workspace; it is not read elsewhere.
    for (const inside of at === 0 ? FILES : []) await walk.entry(path.join(root, inside), { root, inside, shown })
    await walk.named(root, shown)
  }
  return { files: walk.files, digest: `sha256:${walk.hash.digest('hex')}` }
}

/** A path relative to the root in which it was found. */
interface Where {
  readonly root: string
  /** Relative path as found; for a link, the path of the link itself. */
  readonly inside: string
  /** Formats a path below the root for display. */
  readonly shown: (inside: string) => string
}

class Walk {
  readonly files: string[] = []
  readonly hash = createHash('sha256')
  /** Canonical paths that were already counted. */
  readonly #counted = new Set<string>()
  /** Texts in files of the current root that may name other files. */
  #names: { readonly folder: string; readonly strings: readonly string[] }[] = []
  #bytes = 0

  constructor(private readonly home: string) {}

  /** Collects one of {@link FOLDERS}. If it is a link that leads out of the root, the files at its target count. */
  async covered(folder: string, where: Where): Promise<void> {
    const real = await realpath(folder).catch(() => undefined)
    if (real === undefined || isInside(real, where.root)) return this.#folder(folder, where)
    this.#add(where, Buffer.from(real), 'link')
    return this.#folder(real, { ...where, root: real })
  }

  async #folder(folder: string, where: Where, depth = 0): Promise<void> {
    const { inside, shown } = where
    if (depth > DEEPEST) throw unreadable(`${shown(inside)} is nested too deeply, or is a link to its own parent`)
    const real = await realpath(folder).catch(() => folder)
    if (this.#isOfDaemon(real, where)) return
    const names = await readdir(folder).catch(error => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
      throw unreadable(`${shown(inside)}: ${messageOf(error)}`)
    })
    for (const name of names.sort())
      await this.entry(path.join(folder, name), { ...where, inside: path.join(inside, name) }, depth)
  }

  async entry(file: string, where: Where, depth = 0): Promise<void> {
    const found = await lstat(file).catch(error => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
      throw unreadable(`${where.shown(where.inside)}: ${messageOf(error)}`)
    })
    if (!found) return
    const kind = found.isDirectory() ? 'folder' : found.isFile() ? 'file' : undefined
    if (kind && HARMLESS[kind].test(where.inside)) return
    // A link is followed while it stays within the root, as readers of definitions do.
    const real = await realpath(file).catch(() => undefined)
    if (real !== undefined && this.#isOfDaemon(real, where)) return
    if (real === undefined || !isInside(real, where.root))
      return this.#add(where, Buffer.from(real ?? 'nowhere'), 'link')
    const target = await lstat(real)
    if (target.isDirectory()) return this.#folder(real, where, depth + 1)
    const bytes = await this.#file(real, where, target.isFile())
    if (bytes) this.#names.push({ folder: path.dirname(real), strings: stringsIn(where.inside, bytes) })
  }

  /** Collects the files that earlier files refer to, anywhere below the root. */
  async named(root: string, shown: Where['shown']): Promise<void> {
    const found = new Set<string>()
    for (const { folder, strings } of this.#names) {
      for (const file of await namedBy(strings, { root, folder })) found.add(file)
      if (found.size > MOST_FILES) throw tooMuch()
    }
    this.#names = []
    for (const file of [...found].sort()) {
      const where = { root, inside: path.relative(root, file), shown }
      const real = await realpath(file).catch(() => undefined)
      if (real === undefined || this.#counted.has(real) || this.#isOfDaemon(real, where)) continue
      if (isInside(real, root)) await this.#file(real, where, (await lstat(real)).isFile())
      else this.#add(where, Buffer.from(real), 'link')
    }
  }

  async #file(real: string, where: Where, isRegular: boolean): Promise<Buffer | undefined> {
    this.#counted.add(real)
    if (!isRegular) {
      this.#add(where, Buffer.alloc(0), 'other')
      return undefined
    }
    const bytes = await readRegularFile(real, { maxBytes: MOST_BYTES, links: 'refuse' }).catch(error => {
      throw unreadable(`${where.shown(where.inside)}: ${messageOf(error)}`)
    })
    this.#add(where, bytes ?? Buffer.alloc(0), 'file')
    return bytes
  }

  #add({ inside, shown }: Where, bytes: Buffer, kind: string): void {
    this.files.push(shown(inside))
    this.#bytes += bytes.length
    if (this.files.length > MOST_FILES || this.#bytes > MOST_BYTES) throw tooMuch()
    // The length precedes the content, so that different lists of files never hash the same bytes.
    this.hash.update(JSON.stringify([kind, shown(inside), bytes.length])).update(bytes)
  }

  /** Whether a file belongs to the daemon. A workspace that itself lies in the daemon's home has no such files. */
  #isOfDaemon(real: string, { root }: Where): boolean {
    if (!isInside(real, this.home) || isInside(root, this.home)) return false
    return !isInside(real, path.join(this.home, 'scratch'))
  }
}

const unreadable = (what: string) => TrustErrors.trust_unreadable(what)
const tooMuch = () =>
  unreadable(
    `more than ${MOST_FILES} files or ${MOST_BYTES / 1024 / 1024} MiB are in ${FOLDERS.join(', ')} or referenced there`,
  )
