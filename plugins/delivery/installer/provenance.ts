import { column, table } from '../../../kernel/kit/table.js'
import type { Actor, Migration } from '../../../kernel/plugin.js'
import type { Brought, Consentable, SourceTier } from '../extensions/api.js'
import type { Candidate } from './source/candidate.js'
import { type Source, tierOf } from './source/source.js'
import type { Decision } from './trust.js'

const { json, text } = column

/** The origin of an installed copy and the trust decision about it. */
export interface Provenance {
  readonly name: string
  readonly version: string
  readonly source: Source
  readonly tier: SourceTier
  /** `commit`: full id; `archiveDigest`: SHA-256 of the archive's bytes, hex. A folder has neither. */
  readonly commit?: string | undefined
  readonly archiveDigest?: string | undefined
  /** SHA-256 over paths, modes and bytes as installed, hex. */
  readonly treeDigest: string
  /** Whether the request had the author's digest and it matched. */
  readonly checksumVerified: boolean
  /** Whether the request allowed an installation without one. */
  readonly allowUnverified: boolean
  readonly decision: Decision
  /** Methods of the Host API that the manifest asks for. */
  readonly permissions: readonly string[]
  /** Methods granted by the operator's consent, beyond those of every extension of that tier. */
  readonly consents?: readonly Consentable[]
  /**
   * Everything that it brings, as shown to the person; absent if an earlier version, which did not store it, installed
   * the extension.
   */
  readonly brings?: readonly Brought[]
  /** Public key of the author's signature in the catalog entry, base64. */
  readonly authorKey?: string
  /** Epoch milliseconds of the last installation or update. */
  readonly installedAt: number
  /** Id of the actor. */
  readonly installedBy: string
}

export function provenanceFrom(
  { source, manifest, treeDigest, commit, archiveDigest, verified, authorKey }: Candidate,
  brings: readonly Brought[],
  decision: Decision,
  allowUnverified: boolean,
  installedAt: number,
  actor: Actor,
  consents: readonly Consentable[] = [],
): Provenance {
  return {
    name: manifest.name,
    version: manifest.version,
    source,
    tier: tierOf(source),
    ...(commit === undefined ? {} : { commit }),
    ...(archiveDigest === undefined ? {} : { archiveDigest }),
    treeDigest,
    checksumVerified: verified,
    allowUnverified,
    decision,
    permissions: manifest.permissions.requires,
    brings,
    ...(consents.length > 0 ? { consents } : {}),
    ...(authorKey === undefined ? {} : { authorKey }),
    installedAt,
    installedBy: actor.id,
  }
}

/** The tables of the installer; they belong to the plugin `extensions`, whose database it is given. */
export const installMigrations: readonly Migration[] = [
  {
    id: '010-install',
    // Homes store a digest of this text: not even whitespace may change.
    sql: `CREATE TABLE extensions_install (name TEXT NOT NULL PRIMARY KEY, provenance TEXT NOT NULL) STRICT;
    CREATE TABLE extensions_intent (name TEXT NOT NULL PRIMARY KEY, id TEXT NOT NULL, intent TEXT NOT NULL) STRICT;`,
  },
]

/** Provenance of the installed extensions. */
export const installs = table('extensions_install', { name: text(), provenance: json<Provenance>() })
