import { command } from '../../../../kernel/kit/commands/command-line.js'
import { parseSecretRef } from '../../../../kernel/kit/secret-ref.js'
import { vaultPath } from '../../../access/vault/api.js'
import { ExtensionErrors } from '../errors.js'
import type { Provenance } from '../install/provenance.js'
import { secretFolders } from '../secret-path.js'
import { type Brought, beyond, consentDigest } from './brought.js'
import { namesOf } from './check.js'

/** Whether a person has to say yes to what it brings: they do where it comes from a catalog and brings more than they know of. */
export function needsConsent(
  { tier, brings = [] }: Pick<Provenance, 'tier' | 'brings'>,
  before: Pick<Provenance, 'brings'> | undefined,
): boolean {
  return tier === 'marketplace' && beyond(brings, before?.brings ?? []).length > 0
}

/**
 * Refuses what a request does not consent to.
 * @param digest of what a person was shown
 * @throws Fault `extension_consent_required`
 */
export function checkAgreed(next: Provenance, before: Provenance | undefined, digest: string | undefined): void {
  const { name, brings = [] } = next
  const wanted = consentDigest(brings)
  if (digest === wanted || (digest === undefined && !needsConsent(next, before))) return
  const more = beyond(brings, before?.brings ?? [])
  throw ExtensionErrors.extension_consent_required(
    digest === undefined
      ? `${name} brings what nobody consented to: ${namesOf(more)}`
      : `${name} does not bring what was looked at: ${namesOf(brings)}`,
    {
      details: { consent_digest: wanted },
      next: before ? command('extension update', name) : 'look at it with POST /api/extensions/preview',
    },
  )
}

/** Refuses references to secrets that are not its own: none of them would be resolved. @throws Fault `extension_secret_foreign` */
export function checkForeign(name: string, brings: readonly Brought[]): void {
  const folders = secretFolders(name)
  for (const { kind, name: called, given = [] } of brings)
    for (const reference of given) {
      if (parseSecretRef(reference)?.scheme !== 'vault') continue
      // What is no path of the vault, as one with `..`, is not its own either.
      const path = vaultPath(reference)
      if (path !== undefined && folders.some(folder => path.startsWith(folder))) continue
      throw ExtensionErrors.extension_secret_foreign(
        `${kind} ${called} of ${name} names ${reference}, which is not below vault:${folders[0]}`,
        { next: 'ask the author of the extension for one without it' },
      )
    }
}
