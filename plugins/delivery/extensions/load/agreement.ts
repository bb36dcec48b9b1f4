import { ExtensionErrors } from '../errors.js'
import { type Manifest, requirementDigest } from '../manifest/manifest.js'

/**
 * Checks that the network requirement of an extension was agreed to, by its digest.
 * @param agreed digests of past and present agreements
 * @param command the command to repeat with the digest
 * @throws Fault `extension_network_unconfirmed`
 */
export function checkAgreed(wanted: Manifest, agreed: readonly (string | undefined)[], command: string): void {
  const digest = requirementDigest(wanted)
  if (digest === '' || agreed.includes(digest)) return
  const scopes = wanted.network_participation?.channel_scopes ?? []
  const where = scopes.length === 0 ? '' : `, in ${scopes.join(', ')}`
  throw ExtensionErrors.extension_network_unconfirmed(
    `${wanted.name} takes part in the network${where}, which was not confirmed`,
    {
      details: { confirm_network_digest: digest },
      next: `${command} --confirm-network-digest ${digest}`,
    },
  )
}
