import { createHash } from 'node:crypto'
import { readdir, realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { type Fault, faultOf, messageOf } from '../../../../kernel/plugin.js'
import { ExtensionErrors } from '../errors.js'
import { type Manifest, manifestFileNames, readManifestFile } from '../manifest/manifest.js'

/** The last read state of an extension's folder. */
export type Found =
  | { readonly folder: string; readonly root: string; readonly manifest: Manifest; readonly digest: string }
  | { readonly folder: string; readonly root: string; readonly fault: Fault }

/** Identity of a manifest file, to detect changes; all as decimal texts. */
interface Stamp {
  readonly path: string
  readonly mtime: string
  /** The change time cannot be set: a file from an archive may have the time, size and inode of its predecessor. */
  readonly ctime: string
  readonly size: string
  readonly inode: string
}

interface Entry {
  readonly stamp: Stamp
  readonly manifest: Manifest
  readonly digest: string
}

/**
 * Resolution of time stamps in milliseconds: a file younger than this can change again with the same stamp and is not
 * cached.
 */
const RACY_MS = 2000

/** The text of the cache, and where it is kept. */
export interface CacheFile {
  read(): Promise<string | undefined>
  write(text: string): Promise<void>
}

/** Reads extension folders; unchanged manifests are neither read nor parsed again, also after a restart. */
export class Catalog {
  #entries: Map<string, Entry> | undefined
  #changed = false

  constructor(
    private readonly file: CacheFile,
    private readonly now: () => number,
    /** Version of the daemon: another version may decode a manifest differently. */
    private readonly version: string,
  ) {}

  /**
   * Names of the possible extension folders below `dir`; none if it does not exist. Names with a leading dot are
   * ignored.
   */
  async folders(dir: string): Promise<string[]> {
    const entries = await readdir(dir, { withFileTypes: true }).catch(error => {
      if ((error as { code?: string }).code === 'ENOENT') return []
      throw error
    })
    return entries
      .filter(entry => !entry.name.startsWith('.') && (entry.isDirectory() || entry.isSymbolicLink()))
      .map(entry => entry.name)
      .sort()
  }

  /** Reads one folder; undefined if it does not exist. Never rejects: problems are in `fault`. */
  async read(folder: string): Promise<Found | undefined> {
    this.#entries ??= await this.#load()
    let root = folder
    try {
      root = await realpath(folder)
      const stamp = await stampOf(root)
      const known = stamp && this.#entries.get(stamp.path)
      if (known && same(known.stamp, stamp)) return { folder, root, manifest: known.manifest, digest: known.digest }
      const { manifest, path: at, text } = await readManifestFile(root)
      const digest = createHash('sha256').update(text).digest('hex')
      if (stamp?.path === at && this.now() - Number(BigInt(stamp.ctime) / 1_000_000n) > RACY_MS) {
        this.#entries.set(at, { stamp, manifest, digest })
        this.#changed = true
      }
      return { folder, root, manifest, digest }
    } catch (error) {
      if (await isGone(folder)) return undefined
      return { folder, root, fault: readFault(error, root) }
    }
  }

  /** Saves the manifests of these folders for the next start; a failed write only makes that start slower. */
  async save(isKept: (root: string) => boolean): Promise<void> {
    const entries = [...(this.#entries ?? [])].filter(([at]) => isKept(path.dirname(at)))
    if (!this.#changed && entries.length === this.#entries?.size) return
    this.#changed = false
    this.#entries = new Map(entries)
    await this.file.write(`${JSON.stringify({ version: this.version, entries })}\n`).catch(() => {})
  }

  async #load(): Promise<Map<string, Entry>> {
    try {
      const data = JSON.parse((await this.file.read()) ?? '{}') as { version?: string; entries?: [string, Entry][] }
      return new Map(data.version === this.version ? data.entries : [])
    } catch {
      return new Map()
    }
  }
}

async function stampOf(root: string): Promise<Stamp | undefined> {
  for (const name of manifestFileNames) {
    const at = path.join(root, name)
    const found = await stat(at, { bigint: true }).catch(() => undefined)
    if (!found) continue
    const [mtime, ctime] = [String(found.mtimeNs), String(found.ctimeNs)]
    return { path: at, mtime, ctime, size: String(found.size), inode: String(found.ino) }
  }
  return undefined
}

const same = (a: Stamp, b: Stamp) =>
  a.mtime === b.mtime && a.ctime === b.ctime && a.size === b.size && a.inode === b.inode

async function isGone(folder: string): Promise<boolean> {
  return stat(folder).then(
    found => !found.isDirectory(),
    error => (error as { code?: string }).code === 'ENOENT',
  )
}

function readFault(error: unknown, root: string): Fault {
  const fault = faultOf(error)
  if (fault.code !== 'internal') return fault
  return ExtensionErrors.extension_manifest_invalid(`${root} cannot be read: ${messageOf(error)}`)
}
