import { Fault } from '../../../../kernel/plugin.js'
import {
  type Consent,
  ExtensionErrors,
  grantsOf,
  isAtLeast,
  leftOutOf,
  type Manifest,
  manifestFileNames,
  readManifest,
} from '../../extensions/api.js'
import { InstallErrors } from '../errors.js'
import type { CuratedArchive } from './curated.js'
import { download } from './download.js'
import { readFolder, readLocalArchive } from './folder.js'
import { type GitHost, readRepository } from './git.js'
import { limits } from './limits.js'
import { type Source, tierOf } from './source.js'
import { sha256, type Tree, treeDigest } from './tree.js'

/** Checked content of a source with its manifest; nothing of it is written yet. */
export interface Candidate {
  readonly source: Source
  readonly manifest: Manifest
  readonly tree: Tree
  readonly treeDigest: string
  readonly commit?: string | undefined
  readonly archiveDigest?: string | undefined
  /** Whether an expected digest was given and matches. */
  readonly verified: boolean
  /** Public key of the author's signature in the catalog entry, base64. */
  readonly authorKey?: string | undefined
}

/** Dependencies of reading a source. */
export interface Fetching {
  readonly host: GitHost
  /** A new folder that is removed afterwards; created on first use. */
  workFolder(): Promise<string>
  /** The archive of an entry in the catalog; throws without a catalog. */
  curated(slug: string): Promise<CuratedArchive>
  /** Version of the daemon. */
  readonly version: string
}

const DIGEST = /^[0-9a-f]+$/i
const isManifest = (path: string) => (manifestFileNames as readonly string[]).includes(path)

/**
 * Reads a source completely. The digest of an archive is compared before it is unpacked, that of a commit before a file
 * is read.
 * @param expected digest published by the author: SHA-256 of an archive, full id of a commit, or digest of a folder's
 *   tree
 * @throws Fault of `InstallErrors`, `extension_manifest_invalid`, `extension_manifest_missing`,
 * `extension_version_unsupported`, `extension_tier_refused`
 */
export async function readCandidate(fetching: Fetching, source: Source, expected?: string): Promise<Candidate> {
  if (source.kind === 'curated' && source.address === '') {
    const archive = await fetching.curated(source.slug)
    const { address, sha256: published, name, version, authorKey } = archive
    // The author signed the digest in the catalog: an archive with another digest is not signed.
    if (published !== undefined) compareDigest('the digest of the catalog', published, expected)
    // The checked entry is reused, because the catalog can change in between.
    const checked = { ...fetching, curated: async () => archive }
    const found = await readCandidate(checked, { ...source, address }, expected ?? published)
    const { manifest } = found
    if (manifest.name === name && (version === undefined || manifest.version === version))
      return { ...found, authorKey }
    throw InstallErrors.extension_catalog_mismatch(
      `the catalog says ${name} ${version ?? ''}, the archive is ${manifest.name} ${manifest.version}`,
    )
  }
  if (expected !== undefined && !(DIGEST.test(expected) && expected.length === digestLength(source, expected)))
    throw InstallErrors.extension_source_invalid(`the checksum is not ${digestName(source)}`)
  const content = await readContent(fetching, source, expected)
  const manifest = await manifestOf(content.tree)
  checkManifest(manifest, source, fetching.version)
  const found = { ...content, treeDigest: treeDigest(content.tree) }
  if (isFolder(source)) compareDigest('the digest of the folder', found.treeDigest, expected)
  return { ...found, source, manifest, verified: expected !== undefined }
}

/** Requested methods that an extension of this tier is not granted, given these consents. */
export function dropped(
  { manifest, source }: Pick<Candidate, 'manifest' | 'source'>,
  consents: readonly Consent[] = [],
): readonly string[] {
  return grantsOf({ manifest, tier: tierOf(source) }, { allowedKinds: [], maxScope: '' }, consents).dropped
}

async function readContent(
  fetching: Fetching,
  source: Source,
  expected: string | undefined,
): Promise<Pick<Candidate, 'tree' | 'commit' | 'archiveDigest'>> {
  const { host, workFolder } = fetching
  const archive = async (bytes: Uint8Array) => {
    const archiveDigest = sha256(bytes)
    compareDigest('the digest of the archive', archiveDigest, expected)
    // Imported on first use: a start of the daemon needs no archive code.
    const { readArchive } = await import('./archive.js')
    return { archiveDigest, tree: await readArchive(bytes, isManifest) }
  }
  switch (source.kind) {
    case 'local_path':
      return source.form === 'folder'
        ? { tree: await readFolder(source.path, await leftOutOf(source.path)) }
        : archive(await readLocalArchive(source.path))
    case 'url':
      return archive(await download(host.clock, source.url))
    case 'curated':
      return archive(await (await fetching.curated(source.slug)).read(limits.archiveBytes))
    case 'git':
      return readRepository(host, await workFolder(), { url: source.url, ref: source.ref, expected })
    case 'github': {
      const { slug, ref = '', asset } = source
      const url = `https://github.com/${slug}`
      if (asset === undefined)
        return readRepository(host, await workFolder(), { url: `${url}.git`, ref: source.ref, expected })
      return archive(await download(host.clock, `${url}/releases/download/${ref}/${asset}`))
    }
  }
}

async function manifestOf(tree: Tree): Promise<Manifest> {
  return readManifest('', async path => tree.find(file => file.path === path)?.bytes).catch(error => {
    if (error instanceof Fault && error.code === 'extension_manifest_missing')
      throw ExtensionErrors.extension_manifest_missing('there is no extension.toml and no extension.json in it')
    throw error
  })
}

function checkManifest(manifest: Manifest, source: Source, version: string): void {
  const { name, min_svc_version: floor } = manifest
  if (floor !== undefined && !isAtLeast(version, floor))
    throw ExtensionErrors.extension_version_unsupported(`${name} requires svc ${floor}, this is ${version}`)
  if (manifest.main !== undefined && tierOf(source) === 'marketplace')
    throw ExtensionErrors.extension_tier_refused(
      `${name} runs code inside the daemon, which is allowed only for an extension from this machine`,
      { next: 'fetch it, read it, and install its folder' },
    )
}

function compareDigest(what: string, actual: string, expected: string | undefined): void {
  if (expected === undefined || expected.toLowerCase() === actual) return
  throw InstallErrors.extension_archive_digest_mismatch(`${what} is ${actual}, not ${expected}`, {
    details: { expected, actual },
  })
}

const isFolder = (source: Source) => source.kind === 'local_path' && source.form === 'folder'
const isGit = (source: Source) => source.kind === 'git' || (source.kind === 'github' && source.asset === undefined)

function digestLength(source: Source, expected: string): number {
  // The id of a commit is a SHA-1 or a SHA-256, depending on its repository.
  return isGit(source) && expected.length === 40 ? 40 : 64
}

function digestName(source: Source): string {
  if (isGit(source)) return 'the full id of a commit, 40 or 64 hex digits'
  return `a SHA-256 in 64 hex digits, of ${isFolder(source) ? 'the tree' : 'the archive'}`
}
