import * as v from 'valibot'
import { type PluginKernel, registry } from '../../../../kernel/plugin.js'
import { InstallErrors } from '../errors.js'

/** An extension's archive in a catalog. */
export interface CuratedArchive {
  /** Name of the extension, which the manifest has to match. */
  readonly name: string
  readonly version: string | undefined
  /** Address or path, for people and for the provenance. */
  readonly address: string
  /** Hex digest in the catalog; undefined: none. */
  readonly sha256: string | undefined
  /** Public key of the author whose signature of the entry was verified, base64; undefined: the entry is not signed. */
  readonly authorKey: string | undefined
  /** Reads up to that many bytes. */
  readonly read: (maxBytes: number) => Promise<Buffer>
}

/** Public key that signed the installed extension of a name; undefined if it is not installed or not signed. */
export type AuthorOf = (name: string) => string | undefined

/** Contributes a catalog: extensions are installed from it by entry id. */
export interface CuratedCatalog {
  /** Throws if there is no such entry, if its author changed, or if the catalog cannot be read. */
  readonly find: (slug: string, authorOf: AuthorOf) => Promise<CuratedArchive>
}

export const CuratedCatalogs = registry<CuratedCatalog>('extensions.curated@1', v.looseObject({ find: v.function() }))

/** The text that an author signs with Ed25519: unique to a name, version and archive. */
export const signedExtension = (name: string, version: string, sha256: string) =>
  `svc-extension-v1\n${name}\n${version}\n${sha256.toLowerCase()}\n`

/**
 * The catalog's archive of an entry. @throws Fault `extension_source_invalid` without a catalog, and those of the
 * catalog
 */
export async function findCurated(
  { collect }: Pick<PluginKernel, 'collect'>,
  slug: string,
  authorOf: AuthorOf,
): Promise<CuratedArchive> {
  const [catalog] = collect(CuratedCatalogs)
  if (catalog) return catalog.entry.find(slug, authorOf)
  throw InstallErrors.extension_source_invalid('there is no catalog to install from', {
    next: 'install it from its repository',
  })
}
