import { ExtensionErrors } from '../errors.js'
import { type Manifest, requirementDigest } from '../manifest/manifest.js'

/**
 * What an extension requires of the network has to be agreed to, by the digest of exactly that.
 * @param agreed digests that somebody agrees or has agreed to
 * @param command what is repeated with the digest to agree
 * @throws Fault `extension_network_unconfirmed`
 */
export function checkAgreed(wanted: Manifest, agreed: readonly (string | undefined)[], command: string): void {
  const digest = requirementDigest(wanted)
  if (digest === '' || agreed.includes(digest)) return
  const scopes = wanted.network_participation?.channel_scopes ?? []
  const where = scopes.length === 0 ? '' : `, in ${scopes.join(', ')}`
  throw ExtensionErrors.extension_network_unconfirmed(
    `${wanted.name} takes part in the network${where}, which was not agreed to`,
    {
      details: { confirm_network_digest: digest },
      next: `${command} --confirm-network-digest ${digest}`,
    },
  )
}
