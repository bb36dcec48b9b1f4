import { iso } from '../../../kernel/plugin.js'
import type { InstallExtensionBody, UpdateAllReply, UpdateExtensionBody } from '../../../schemas/extensions/install.js'
import type * as wire from '../../../schemas/extensions.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'

import type { Provenance } from './provenance.js'
import type { BatchItem, InstallRequest, Updated, UpdateRequest } from './requests.js'
import { addressOf } from './source/source.js'

export function requestOf(body: InstallExtensionBody): InstallRequest {
  const { allow_unverified: allowUnverified, tree_digest: treeDigest, consent_digest: consentDigest, ...rest } = body
  return { ...rest, allowUnverified, treeDigest, consentDigest }
}

export function updateRequestOf(body: Omit<UpdateExtensionBody, 'check_only'>): UpdateRequest {
  const { allow_unverified: allowUnverified, tree_digest: treeDigest, consent_digest: consentDigest } = body
  const { path, version, checksum, allow } = body
  return { path, version, checksum, allow, allowUnverified, treeDigest, consentDigest }
}

export function provenanceToWire(provenance: Provenance): wire.Provenance {
  const { source, archiveDigest, commit } = provenance
  return {
    ...trustToWire(provenance),
    checksum_sha256: provenance.treeDigest,
    ...(archiveDigest === undefined ? {} : { archive_digest_sha256: archiveDigest }),
    installed_at: iso(provenance.installedAt),
    installed_by: provenance.installedBy,
    installed_from: source.kind,
    permissions: [...provenance.permissions],
    ...('slug' in source ? { slug: source.slug } : {}),
    // The commit is part of the origin, and the contract has no member for it.
    source_url: commit === undefined ? addressOf(source) : `${addressOf(source)}#${commit}`,
    trust: { ...trustToWire(provenance), decision: provenance.decision },
  }
}

function trustToWire({ allowUnverified, checksumVerified, tier, decision, name }: Provenance) {
  const warnings: DiagnosticItem[] =
    decision === 'unverified_allowed'
      ? [
          {
            id: `extension_unverified:${name}`,
            code: 'extension_unverified',
            category: 'extensions',
            severity: 'warning',
            title: 'The origin of these files is not verified',
            message: `${name} was installed without the digest of its author`,
            data_freshness: 'live',
          },
        ]
      : []
  return { allow_unverified: allowUnverified, checksum_verified: checksumVerified, registry_tier: tier, warnings }
}

/** @param path folder of the installed extension */
export function updateToWire(
  { status, previous, current }: Updated,
  path: string,
): wire.UpdateExtensionReply['update'] {
  const { name, source } = current
  return {
    name,
    path,
    status,
    current_version: status === 'updated' ? current.version : previous.version,
    latest_version: current.version,
    registry: source.kind,
    slug: 'slug' in source ? source.slug : '',
  }
}

export function batchToWire(items: readonly BatchItem[]): UpdateAllReply {
  return {
    updates: items.map(item => {
      const { name, status } = item
      if (item.status === 'failed') return { name, status, code: item.fault.code, error: item.fault.message }
      return { name, status, current_version: item.previous.version, latest_version: item.current.version }
    }),
  }
}
