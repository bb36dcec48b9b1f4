import * as v from 'valibot'
import { type PluginKernel, registry } from '../../../../../kernel/plugin.js'
import { InstallErrors } from '../errors.js'

/** The archive of an extension as a catalog has it. */
export interface CuratedArchive {
  /** Of the extension, as its manifest has to say as well. */
  readonly name: string
  readonly version: string | undefined
  /** An address or a path, for people and for the provenance. */
  readonly address: string
  /** Hex digest that the catalog gives; undefined: it gives none. */
  readonly sha256: string | undefined
  /** Key of its author, base64, whose signature of the entry was checked; undefined: it is not signed. */
  readonly authorKey: string | undefined
  /** Reads at most that many bytes. */
  readonly read: (maxBytes: number) => Promise<Buffer>
}

/** The key that the installed extension of a name was signed with; undefined where none is, or it is not signed. */
export type AuthorOf = (name: string) => string | undefined

/** Contributes a catalog that extensions are installed from by the id of an entry. */
export interface CuratedCatalog {
  /** Throws where there is no such entry, where its author is another one, and what keeps the catalog from being read. */
  readonly find: (slug: string, authorOf: AuthorOf) => Promise<CuratedArchive>
}

export const CuratedCatalogs = registry<CuratedCatalog>('extensions.curated@1', v.looseObject({ find: v.function() }))

/** What the author of an extension signs with Ed25519: no other name, version or archive has the same. */
export const signedExtension = (name: string, version: string, sha256: string) =>
  `svc-extension-v1\n${name}\n${version}\n${sha256.toLowerCase()}\n`

/** What the catalog has of an extension. @throws Fault `extension_source_invalid` where there is no catalog, and what that throws */
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
