import path from 'node:path'
import { type Brought, type InstalledExtension, inOrder } from '../extensions/api.js'
import { checkForeign } from './consent.js'
import { InstallErrors } from './errors.js'
import { type Files, writeDraft } from './files.js'
import type { K } from './needs.js'
import type { InstallRequest } from './requests.js'
import { type Candidate, readCandidate } from './source/candidate.js'
import { type AuthorOf, findCurated } from './source/curated.js'
import { addressOf, type Source, sourceOf, tierOf } from './source/source.js'

/** A candidate with everything that it brings. */
export type Judged = Candidate & { readonly brings: readonly Brought[] }

/** Reads the candidate of a source with everything it brings. */
export class SourceReader {
  constructor(
    private readonly kernel: K,
    private readonly files: Files,
    private readonly options: {
      /** Folder for drafts that are only read. */
      readonly staging: string
      readonly authorOf: AuthorOf
      /** Reads from a folder of files everything that an extension brings. */
      readonly brought: (extension: InstalledExtension) => Promise<readonly Brought[]>
    },
  ) {}

  /** Reads a source in a work folder of its own, which is removed afterwards. */
  async read<T>(
    { source: named, ...request }: Omit<InstallRequest, 'source'> & { source?: string | Source | undefined },
    then: (source: Source, candidate: Judged) => Promise<T> | T,
  ): Promise<T> {
    const full = await this.kernel.needs.disk.refusal()
    if (full) throw full
    const source = typeof named === 'object' ? named : await sourceOf({ ...request, source: named })
    const folder = path.join(this.options.staging, this.kernel.ids.id('tmp'))
    let made: Promise<string> | undefined
    const workFolder = () => {
      made ??= this.files.makeFolder(folder).then(() => folder)
      return made
    }
    try {
      const { clock, env, needs } = this.kernel
      const fetching = {
        host: { clock, env, spawn: needs.processes.spawn },
        workFolder,
        curated: (slug: string) => findCurated(this.kernel, slug, this.options.authorOf),
        version: needs.host.version,
      }
      const candidate = await readCandidate(fetching, source, request.checksum)
      if (request.treeDigest !== undefined && request.treeDigest !== candidate.treeDigest)
        throw InstallErrors.extension_archive_digest_mismatch(
          `${addressOf(source)} has changed since the preview: its tree is ${candidate.treeDigest}`,
          { next: 'look at it again' },
        )
      const brings = await this.#broughtBy(candidate, path.join(await workFolder(), 'draft'))
      return await then(candidate.source, { ...candidate, brings })
    } finally {
      await this.files.remove(folder)
    }
  }

  /** Writes the tree to a folder, because the families read files as they do on a load. */
  async #broughtBy(candidate: Candidate, draft: string): Promise<readonly Brought[]> {
    const { manifest, tree, source, treeDigest } = candidate
    const { name, version } = manifest
    await writeDraft(tree, draft)
    const brings = inOrder(
      await this.options.brought({
        ...{ name, key: name, version, manifest, root: draft, digest: treeDigest },
        ...{ enabled: true, state: 'enabled', tier: tierOf(source) },
      }),
    )
    if (tierOf(source) === 'marketplace') checkForeign(name, brings)
    return brings
  }
}
