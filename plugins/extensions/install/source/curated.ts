import { type PluginKernel, registry } from '../../../../kernel/plugin.js'
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
  /** Reads at most that many bytes. */
  readonly read: (maxBytes: number) => Promise<Buffer>
}

/** Contributes a catalog that extensions are installed from by the id of an entry. */
export interface CuratedCatalog {
  /** Throws where there is no such entry, and what keeps the catalog from being read. */
  readonly find: (slug: string) => Promise<CuratedArchive>
}

export const CuratedCatalogs = registry<CuratedCatalog>('extensions.curated@1')

/** What the author of an extension signs with Ed25519: no other name, version or archive has the same. */
export const signedExtension = (name: string, version: string, sha256: string) =>
  `svc-extension-v1\n${name}\n${version}\n${sha256.toLowerCase()}\n`

/** What the catalog has of an extension. @throws Fault `extension_source_invalid` where there is no catalog, and what that throws */
export async function findCurated({ collect }: Pick<PluginKernel, 'collect'>, slug: string): Promise<CuratedArchive> {
  const [catalog] = collect(CuratedCatalogs)
  if (catalog) return catalog.entry.find(slug)
  throw InstallErrors.extension_source_invalid('there is no catalog to install from', {
    next: 'install it from its repository',
  })
}
