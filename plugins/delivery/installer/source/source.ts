import { stat } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import { messageOf } from '../../../../kernel/plugin.js'
import type { SourceTier } from '../../extensions/api.js'
import { InstallErrors } from '../errors.js'

/** The source of an extension; `kind` is `installed_from` in its provenance. */
export type Source =
  | { readonly kind: 'local_path'; readonly form: 'folder' | 'archive'; readonly path: string }
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'git'; readonly url: string; readonly ref?: string | undefined }
  | {
      readonly kind: 'github'
      readonly slug: string
      readonly ref?: string | undefined
      readonly asset?: string | undefined
    }
  | {
      readonly kind: 'curated'
      readonly slug: string
      /** Address of the archive in the catalog when it was read; empty before. */
      readonly address: string
    }

/** The members of a request that name a source. */
export interface SourceRequest {
  readonly source?: string | undefined
  readonly path?: string | undefined
  readonly slug?: string | undefined
  readonly version?: string | undefined
  readonly asset?: string | undefined
}

/** A branch, tag or commit that git cannot take for an option, a range or a special ref. */
const REF = /^(?!.*(\.\.|\/\/|@\{|\.lock(\/|$)))[A-Za-z0-9_][A-Za-z0-9._/@+-]{0,199}(?<![./])$/
const SLUG = /^[A-Za-z0-9][A-Za-z0-9-]{0,38}\/[A-Za-z0-9_.][A-Za-z0-9_.-]{0,99}$/
const ENTRY = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const ASSET = /^[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}\.(tar\.gz|tgz)$/
const SCP = /^[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.-]*:(?!-)[^\s:\\]{1,1000}$/
const ARCHIVE = /\.(tar\.gz|tgz)$/i

/**
 * The source that a request names; its kind is inferred if the request has none. @throws Fault
 * `extension_source_invalid`
 */
export async function sourceOf(request: SourceRequest): Promise<Source> {
  const { source, path: location, slug, version: ref, asset } = request
  if (location !== undefined && slug !== undefined) throw invalid('give either path or slug')
  if (ref !== undefined && !REF.test(ref)) throw invalid(`${safely(ref)} is not a branch, tag or commit`)
  switch (source ?? guess(location, slug)) {
    case 'local_path':
      if (ref !== undefined) throw invalid('a folder or archive has no versions to choose from')
      return local(location ?? '')
    case 'url':
      return { kind: 'url', url: checkedUrl(location ?? '', ['http:', 'https:']) }
    case 'git':
      return { kind: 'git', url: await repository(location ?? slug ?? ''), ref }
    case 'github':
      return gitHub(slug ?? location ?? '', ref, asset)
    case 'curated':
      return curated(slug ?? location ?? '', ref)
    default:
      throw invalid(`${safely(source ?? '')} is not a source; use local_path, url, git, github or curated`)
  }
}

/** The source tier, which limits the permissions that an extension may be granted. */
export function tierOf({ kind }: Source): SourceTier {
  return kind === 'local_path' ? 'user' : 'marketplace'
}

/** The address for people and for the provenance, without the query, which may contain a secret. */
export function addressOf(source: Source): string {
  switch (source.kind) {
    case 'local_path':
      return source.path
    case 'github':
      return `https://github.com/${source.slug}`
    case 'curated':
      return source.address
    case 'url':
    case 'git':
      return source.url
  }
}

/**
 * The same source at another branch, tag or commit. @throws Fault `extension_source_invalid` for a source without
 * versions
 */
export function withVersion(source: Source, version: string | undefined): Source {
  // The catalog may have moved its archives.
  if (version === undefined && source.kind === 'curated') return { ...source, address: '' }
  if (version === undefined) return source
  if (source.kind === 'git' || source.kind === 'github') return { ...source, ref: version }
  throw invalid('only an extension from a repository has versions to choose from')
}

function guess(location: string | undefined, slug: string | undefined): string {
  if (location === undefined) return slug === undefined ? 'local_path' : 'github'
  if (/^https?:/i.test(location)) return ARCHIVE.test(location) ? 'url' : 'git'
  return /^(ssh|file|git|ext)[:+]/i.test(location) || SCP.test(location) || /\.git$/.test(location)
    ? 'git'
    : 'local_path'
}

async function local(location: string): Promise<Source> {
  const absolute = checkedPath(location)
  const found = await statOf(absolute)
  if (found.isDirectory()) return { kind: 'local_path', form: 'folder', path: absolute }
  if (found.isFile() && ARCHIVE.test(absolute)) return { kind: 'local_path', form: 'archive', path: absolute }
  throw invalid(`${absolute} is neither a folder nor a .tar.gz`)
}

function gitHub(slug: string, ref: string | undefined, asset: string | undefined): Source {
  if (!SLUG.test(slug)) throw invalid(`${safely(slug)} does not have the form owner/repository`)
  if (asset !== undefined && !ASSET.test(asset)) throw invalid(`the asset ${safely(asset)} is no .tar.gz`)
  if (asset !== undefined && ref === undefined) throw invalid('an asset belongs to a release: give its tag as version')
  return { kind: 'github', slug, ref, asset }
}

function curated(slug: string, ref: string | undefined): Source {
  if (!ENTRY.test(slug)) throw invalid(`${safely(slug)} is not the id of a catalog entry`, command('extension search'))
  if (ref !== undefined) throw invalid('a catalog has one version of an extension, its newest')
  return { kind: 'curated', slug, address: '' }
}

async function repository(location: string): Promise<string> {
  if (SCP.test(location)) return location
  if (/^[a-z+]+:/i.test(location)) return checkedUrl(location, ['http:', 'https:', 'ssh:'])
  const absolute = checkedPath(location)
  await statOf(absolute)
  return absolute
}

const statOf = (absolute: string) =>
  stat(absolute).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw invalid(`${absolute} cannot be read: ${messageOf(error)}`)
    const name = path.basename(absolute)
    // Perhaps the ID of a catalog entry without `--from curated`.
    const next = /\.(?:tgz|gz)$/.test(name) ? undefined : command('extension search', name)
    throw invalid(`${absolute} does not exist`, next)
  })

function checkedPath(location: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no path may hold one
  if (!path.isAbsolute(location) || /[\x00-\x1f]/.test(location))
    throw invalid(`${safely(location)} is not an absolute path`)
  return path.resolve(location)
}

function checkedUrl(address: string, protocols: readonly string[]): string {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (!url || !protocols.includes(url.protocol))
    throw invalid(`${safely(address)} is not an address with one of the protocols ${protocols.join(', ')}`)
  if (url.hostname === '' || url.hostname.startsWith('-')) throw invalid(`${safely(address)} names no host`)
  if (url.password !== '' || (url.username !== '' && url.protocol !== 'ssh:') || url.username.startsWith('-'))
    throw invalid('an address with credentials would be stored: use one without, or use ssh')
  if (url.search !== '' || url.hash !== '')
    throw invalid(
      'an address with ? or # may contain a secret and would be stored: download the archive and install the file',
    )
  return url.href
}

/** The given address without possible passwords and tokens. */
export function withoutSecrets(text: string): string {
  return text.replace(/\/\/[^/]*@/, '//').replace(/[?#].*$/s, '')
}

const safely = (text: string) => shown(withoutSecrets(text))

function invalid(text: string, next?: string) {
  return InstallErrors.extension_source_invalid(text, next === undefined ? {} : { next })
}
