import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import type { FeedKind, MarketplaceDetail, MarketplaceEntry, Trust } from '../../../schemas/marketplace.js'
import { finding } from '../../desk/daemon/api.js'
import { isNewer } from '../extensions/api.js'
import { type Entry, newestOf } from './feed.js'
import { type Base, isInsecure } from './fetch.js'
import type { InstalledThing } from './installed.js'

export interface WireFacts {
  readonly registry: string
  readonly allowsUnverified: boolean
  readonly base: Base
  /** Pinned key of an installed skill. */
  readonly pinned: (slug: string) => string | undefined
}

/** Wire form of an entry. */
export function toWire(
  kind: FeedKind,
  entry: Entry,
  installed: InstalledThing | undefined,
  facts: WireFacts,
): MarketplaceEntry {
  const version = entry.version ?? newestOf(entry)?.version
  const { author, downloads, published_at, updated_at, tier, mcp } = entry
  return {
    entry_id: entry.id,
    kind,
    name: entry.name,
    description: entry.description,
    source: facts.registry,
    install_slug: entry.id,
    installed: installed !== undefined,
    update_available: isNewer(version, installed?.version),
    trust: trustOf(kind, entry, facts),
    ...(version !== undefined && { version }),
    ...(author !== undefined && { author }),
    ...(downloads !== undefined && { downloads }),
    ...(published_at !== undefined && { published_at }),
    ...(updated_at !== undefined && { updated_at }),
    ...(tier !== undefined && { tier }),
    ...(mcp && { transport: mcp.transport }),
    ...(installed && { installed_name: installed.name }),
    ...(installed?.version !== undefined && { installed_version: installed.version }),
  }
}

/** Trust in an entry. `refused`: the current policy does not allow its installation. */
function trustOf(kind: FeedKind, entry: Entry, facts: WireFacts): Trust {
  const newest = newestOf(entry)
  const hasChecksum =
    kind === 'skill' ? newest?.sha256 !== undefined : kind === 'extension' && entry.digest_sha256 !== undefined
  const isSigned = entry.public_key !== undefined && newest?.signature !== undefined
  const pinned = facts.pinned(entry.id)
  const isOther = kind === 'skill' && pinned !== undefined && (!isSigned || pinned !== entry.public_key)
  const warn = (code: string, severity: 'info' | 'warning' | 'error', title: string, message: string): DiagnosticItem =>
    finding({ id: `marketplace.${kind}.${entry.id}.${code}`, code, category: 'marketplace', severity, title, message })
  const warnings = [
    ...(isOther
      ? [
          warn(
            'marketplace_author_changed',
            'error',
            'The author has changed',
            'it was signed with another key when it was installed',
          ),
        ]
      : []),
    ...(kind !== 'mcp' && !hasChecksum
      ? [warn('marketplace_no_checksum', 'warning', 'No checksum', 'the archive cannot be verified')]
      : []),
    ...(kind === 'skill' && !isSigned
      ? [warn('marketplace_unsigned', 'info', 'Not signed', 'it has no signature of an author')]
      : []),
    ...(isInsecure(facts.base)
      ? [warn('marketplace_insecure', 'warning', 'Not encrypted', 'the catalog can be changed in transit')]
      : []),
  ]
  const isRefused = isOther || (kind === 'skill' && !hasChecksum && !facts.allowsUnverified)
  return {
    allow_unverified: facts.allowsUnverified,
    checksum_verified: hasChecksum,
    decision: isRefused ? 'refused' : warnings.some(({ severity }) => severity !== 'info') ? 'warn' : 'allowed',
    registry_tier: 'marketplace',
    ...(warnings.length > 0 && { warnings }),
  }
}

/** Details of one kind. */
export function detailOf(kind: FeedKind, entry: Entry, base: Base): Omit<MarketplaceDetail, 'entry'> {
  const { repository, display_name, license, readme, tags, versions } = entry
  switch (kind) {
    case 'mcp':
      return { mcp: entry.mcp ?? null }
    case 'extension':
      return {
        extension:
          entry.artifact_url === undefined || entry.digest_sha256 === undefined
            ? null
            : {
                artifact_url: addressOf(base, entry.artifact_url),
                digest_sha256: entry.digest_sha256,
                install_slug: entry.id,
                ...(repository !== undefined && { repository }),
              },
      }
    case 'skill':
      return {
        skill: {
          install_slug: entry.id,
          versions: versions.map(({ version }) => version),
          tags: [...tags],
          ...(repository !== undefined && { repository }),
          ...(display_name !== undefined && { display_name }),
          ...(license !== undefined && { license }),
          ...(readme !== undefined && { readme }),
        },
      }
  }
}

/** Address or path of a file in the catalog. */
export function addressOf(base: Base, name: string): string {
  if (base.kind === 'http') return new URL(name, base.url).href
  return URL.canParse(name) ? name : `${base.folder.replace(/\/$/, '')}/${name}`
}
