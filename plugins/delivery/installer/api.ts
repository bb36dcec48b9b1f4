import { type Actor, type Db, type Fault, type Tx, token } from '../../../kernel/plugin.js'
import type { RemoveExtensionQuery } from '../../../schemas/extensions/install.js'
import type * as wire from '../../../schemas/extensions.js'
import type { Brought, InstalledExtension } from '../extensions/api.js'
import type { Packed } from './packing.js'
import type { Provenance } from './provenance.js'
import type { Tree } from './source/tree.js'

export { installedTier, isUnderWay } from './boot.js'
export { ExtensionInstalled, ExtensionRemoved } from './events.js'
export { type Files as InstallFiles, systemFiles, writeTree } from './files.js'
export { installMigrations } from './provenance.js'
export {
  type AuthorOf,
  type CuratedArchive,
  type CuratedCatalog,
  CuratedCatalogs,
  findCurated,
  signedExtension,
} from './source/curated.js'
export { Unsandboxed } from './trust.js'
export type { Packed, Provenance, Tree }

/**
 * Unpacks a `.tar.gz` in memory and returns its files. Paths that lead out, links and content over the limits are
 * refused. @throws Fault `extension_content_refused`
 */
export async function readArchive(bytes: Uint8Array, isRoot: (path: string) => boolean): Promise<Tree> {
  // Imported on first use: a start of the daemon needs no archive code.
  return (await import('./source/archive.js')).readArchive(bytes, isRoot)
}

/**
 * Packs the folder of an extension for `svc extension install`; the same files give the same bytes.
 * @param file of the archive, absolute, replaced atomically; archives of this name in the folder itself are left out
 * @throws Fault `extension_content_refused` for content that no installation accepts
 */
export async function packFolder(root: string, name: string, file: string): Promise<Packed> {
  return (await import('./packing.js')).packFolder(root, name, file)
}

/** Loads extensions and keeps what they store, for the installer. */
export interface InstallTarget {
  /** Database of the plugin that has the tables of {@link installMigrations}. */
  readonly db: Db
  /** Reason why the extension cannot be removed: its dependents. */
  readonly disabling: (name: string) => Promise<Fault | undefined>
  /** Applies the folder of that name to the running extension. */
  readonly placed: (name: string) => Promise<void>
  /** Whether all parts of the extension run. */
  readonly runs: (name: string) => boolean
  /**
   * Loads the new files of an update; returns why they do not start.
   * @param ran whether the earlier version ran, as far as known: then its process must be ready as well
   */
  readonly tryOut: (name: string, ran: boolean | undefined) => Promise<Fault | undefined>
  /** Kinds that its current or earlier code declares. */
  readonly kinds: (name: string) => readonly string[]
  /** Reads from a folder of files everything that an extension brings. */
  readonly brought: (extension: InstalledExtension) => Promise<readonly Brought[]>
  /** Deletes rows about the extension in other tables, in the transaction that removes it. */
  readonly forget: (t: Tx, name: string, purge: boolean, kinds: readonly string[]) => void
  /** Purges tables and cache before that transaction. Safe to repeat. */
  readonly purge: (name: string) => Promise<void>
  /** Whether a removed extension left records, tables or bindings. */
  readonly hasLeft: (name: string) => boolean
  /** Wire form of an extension. */
  readonly show: (name: string) => wire.Extension
  /** Restarts the process of an extension. */
  readonly restart: (name: string) => Promise<void>
  /**
   * Removes the developer's link that a request refers to; returns its folder, undefined if the request means the
   * installed extension. @throws Fault `extension_not_found`, `extension_in_use`
   */
  readonly unlink: (name: string, request: RemoveExtensionQuery, actor: Actor) => Promise<string | undefined>
}

/** The installed extensions of the home. */
export interface Installations {
  /** Rolls the changes of an earlier daemon forward; runs before anything is loaded. */
  start(): Promise<void>
  /**
   * Finishes updates that a crash interrupted, once the installed extensions are loaded: they are kept, or reverted if
   * they did not start.
   */
  conclude(): Promise<void>
  /**
   * Provenance of an installed extension, or of one whose installation has begun: it is known before the files are in
   * place.
   */
  provenance(name: string): Provenance | undefined
  /** Wire form of the provenance. */
  shown(name: string): wire.Provenance | undefined
  /** Whether the files of that extension are being replaced: between two renames there are none. */
  isPlacing(name: string): boolean
}

export interface InstallerApi {
  /** Installs for this target until the signal aborts. */
  open(target: InstallTarget, signal: AbortSignal): Installations
}

export const ExtensionInstaller = token<InstallerApi>('installer@1')
