import { createHash } from 'node:crypto'
import { lstat, readdir, realpath } from 'node:fs/promises'
import path from 'node:path'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { messageOf } from '../../../kernel/plugin.js'
import { isInside, type Workspace } from '../../desk/workspaces/api.js'
import { TrustErrors } from './api.js'
import { namedBy } from './named-files.js'
import { stringsIn } from './names.js'

/** Bounds of what is looked at: more is not trusted. */
const MOST_FILES = 5000
const MOST_BYTES = 64 * 1024 * 1024
const DEEPEST = 16

/** Folders of which every file counts, unless it is {@link HARMLESS}. */
const FOLDERS = ['.svc', '.agents/skills', '.claude/skills']
/** Files beside them that say which programs are started. */
const FILES = ['.mcp.json']

/**
 * Paths that run nothing as long as no other file names them: the identity of the folder, memories, and texts that an agent is
 * only told. Each is matched whole, and only where it is no link.
 */
const HARMLESS: Readonly<Record<'file' | 'folder', RegExp>> = {
  file: /^\.svc\/(?:workspace\.toml|(?:agents\/[^/]+\/)?(?:SOUL|HEARTBEAT)\.md)$/,
  folder: /^\.svc\/memory$/,
}

/** The files of a workspace that may run code, and a digest over their names and contents. */
export interface TrustedFiles {
  readonly files: readonly string[]
  readonly digest: string
}

/**
 * Everything in the folders of a workspace that make code run, and every file of it that these name.
 * @param home the daemon's own folder: what lies in it belongs to no workspace, except for its folder `scratch`
 * @throws Fault `trust_unreadable`
 */
export async function filesOf(
  { rootDir, addDirs }: Pick<Workspace, 'rootDir' | 'addDirs'>,
  home: string,
): Promise<TrustedFiles> {
  const walk = new Walk(await realpath(home).catch(() => home))
  for (const [at, given] of [rootDir, ...addDirs].entries()) {
    const root = await realpath(given).catch(() => undefined)
    if (root === undefined) continue
    const shown = (inside: string) => (at === 0 ? inside : path.join(given, inside))
    for (const inside of FOLDERS) await walk.covered(path.join(root, inside), { root, inside, shown })
    // A server file counts in the folder of the workspace itself; nobody reads one elsewhere.
    for (const inside of at === 0 ? FILES : []) await walk.entry(path.join(root, inside), { root, inside, shown })
    await walk.named(root, shown)
  }
  return { files: walk.files, digest: `sha256:${walk.hash.digest('hex')}` }
}

/** Where a file is, seen from the root that it was found below. */
interface Where {
  readonly root: string
  /** Its path as it was come by; a link has the path of the link. */
  readonly inside: string
  /** How a path below the root is told. */
  readonly shown: (inside: string) => string
}

class Walk {
  readonly files: string[] = []
  readonly hash = createHash('sha256')
  /** Canonical paths that count already. */
  readonly #counted = new Set<string>()
  /** What files of the root that is looked at name. */
  #names: { readonly folder: string; readonly strings: readonly string[] }[] = []
  #bytes = 0

  constructor(private readonly home: string) {}

  /** One of {@link FOLDERS}; where it is a link that leads out of the root, what lies there counts. */
  async covered(folder: string, where: Where): Promise<void> {
    const real = await realpath(folder).catch(() => undefined)
    if (real === undefined || isInside(real, where.root)) return this.#folder(folder, where)
    this.#add(where, Buffer.from(real), 'link')
    return this.#folder(real, { ...where, root: real })
  }

  async #folder(folder: string, where: Where, depth = 0): Promise<void> {
    const { inside, shown } = where
    if (depth > DEEPEST) throw unreadable(`${shown(inside)} lies too deep, or leads back to itself`)
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
    // A link is followed as long as it stays inside, as those who read definitions follow it.
    const real = await realpath(file).catch(() => undefined)
    if (real !== undefined && this.#isOfDaemon(real, where)) return
    if (real === undefined || !isInside(real, where.root))
      return this.#add(where, Buffer.from(real ?? 'nowhere'), 'link')
    const target = await lstat(real)
    if (target.isDirectory()) return this.#folder(real, where, depth + 1)
    const bytes = await this.#file(real, where, target.isFile())
    if (bytes) this.#names.push({ folder: path.dirname(real), strings: stringsIn(where.inside, bytes) })
  }

  /** What the files so far name counts as well, wherever below the root it lies. */
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
    // Lengths come first: no two lists of files have the same bytes.
    this.hash.update(JSON.stringify([kind, shown(inside), bytes.length])).update(bytes)
  }

  /** A workspace that lies in the daemon's folder itself is looked at like any other. */
  #isOfDaemon(real: string, { root }: Where): boolean {
    if (!isInside(real, this.home) || isInside(root, this.home)) return false
    return !isInside(real, path.join(this.home, 'scratch'))
  }
}

const unreadable = (what: string) => TrustErrors.trust_unreadable(what)
const tooMuch = () =>
  unreadable(
    `more than ${MOST_FILES} files or ${MOST_BYTES / 1024 / 1024} MiB lie in ${FOLDERS.join(', ')} or are named there`,
  )
