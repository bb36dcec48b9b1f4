import type { Fault } from '../../../kernel/plugin.js'
import type { InstallPreview } from '../../../schemas/extensions/install.js'
import { type Brought, beyond, type Consentable, consentableOf, consentDigest, typeOf } from '../extensions/api.js'
import { needsConsent } from './consent.js'
import type { Provenance } from './provenance.js'
import { type Candidate, dropped } from './source/candidate.js'
import { addressOf, tierOf } from './source/source.js'
import { decide } from './trust.js'

/** Preview of an installation or update, for the person who has to confirm it. Does not throw: objections of the trust policy are part of the preview. */
export function previewOf(
  candidate: Candidate & { readonly brings: readonly Brought[] },
  installed: Provenance | undefined,
  request: Parameters<typeof decide>[0] & {
    takenByHand: boolean
    unsandboxed: readonly string[]
    consents: readonly Consentable[]
  },
): InstallPreview {
  const { manifest, source, tree, commit, archiveDigest, treeDigest, brings } = candidate
  const { name, description = '', version } = manifest
  const tier = tierOf(source)
  const permissions = manifest.permissions.requires
  const before = installed?.permissions ?? []
  return {
    ...{ name, description, version },
    type: typeOf(manifest),
    action: actionOf(candidate, installed, request.takenByHand),
    ...(installed ? { previous_version: installed.version } : {}),
    registry_tier: tier,
    source_url: addressOf(source),
    ...(commit === undefined ? {} : { commit }),
    ...(archiveDigest === undefined ? {} : { archive_digest_sha256: archiveDigest }),
    tree_digest: treeDigest,
    files: tree.length,
    bytes: tree.reduce((sum, file) => sum + file.bytes.length, 0),
    permissions: [...permissions],
    permissions_added: permissions.filter(method => !before.includes(method)),
    permissions_removed: before.filter(method => !permissions.includes(method)),
    permissions_dropped: [...dropped(candidate, request.consents)],
    consents_asked: tier === 'marketplace' ? consentableOf(manifest) : [],
    consents_given: [...request.consents],
    requires_env: [...manifest.requires_env],
    brings: brings.map(broughtToWire),
    new_brings: beyond(brings, installed?.brings ?? []).map(broughtToWire),
    consent_digest: consentDigest(brings),
    consent_required: needsConsent({ tier, brings }, installed),
    sandboxed: tier === 'marketplace' && !request.unsandboxed.includes(name),
    ...(manifest.subprocess ? { command: [manifest.subprocess.command, ...manifest.subprocess.args].join(' ') } : {}),
    ...trustOf(request),
  }
}

const broughtToWire = ({ reaches, given, ...one }: Brought): InstallPreview['brings'][number] => ({
  ...one,
  ...(reaches === undefined ? {} : { reaches: [...reaches] }),
  ...(given === undefined ? {} : { given: [...given] }),
})

function actionOf(
  { treeDigest }: Candidate,
  installed: Provenance | undefined,
  byHand: boolean,
): InstallPreview['action'] {
  if (byHand) return 'taken'
  if (installed === undefined) return 'install'
  return installed.treeDigest === treeDigest && installed.brings !== undefined ? 'none' : 'update'
}

function trustOf(request: Parameters<typeof decide>[0]): Pick<InstallPreview, 'decision' | 'refusal'> {
  try {
    return { decision: decide(request) }
  } catch (error) {
    const { code, message } = error as Fault
    return { decision: 'refused', refusal: { code, error: message } }
  }
}
