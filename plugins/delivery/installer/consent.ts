import { command } from '../../../kernel/kit/commands/command-line.js'
import { parseSecretRef } from '../../../kernel/kit/secret-ref.js'
import { vaultPath } from '../../access/vault/api.js'
import { type Brought, beyond, consentDigest, ExtensionErrors, namesOf, secretFolders } from '../extensions/api.js'
import type { Provenance } from './provenance.js'

/** Whether a person must consent: the extension is from a catalog and brings more than was agreed to before. */
export function needsConsent(
  { tier, brings = [] }: Pick<Provenance, 'tier' | 'brings'>,
  before: Pick<Provenance, 'brings'> | undefined,
): boolean {
  return tier === 'marketplace' && beyond(brings, before?.brings ?? []).length > 0
}

/**
 * Refuses an installation without the needed consent.
 * @param digest of the list that the person was shown
 * @throws Fault `extension_consent_required`
 */
export function checkAgreed(next: Provenance, before: Provenance | undefined, digest: string | undefined): void {
  const { name, brings = [] } = next
  const wanted = consentDigest(brings)
  if (digest === wanted || (digest === undefined && !needsConsent(next, before))) return
  const more = beyond(brings, before?.brings ?? [])
  throw ExtensionErrors.extension_consent_required(
    digest === undefined
      ? `${name} contains parts without your consent: ${namesOf(more)}`
      : `the contents of ${name} differ from the preview: ${namesOf(brings)}`,
    {
      details: { consent_digest: wanted },
      next: before ? command('extension update', name) : 'preview it with POST /api/extensions/preview',
    },
  )
}

/** Refuses references to secrets of others, which would not be resolved. @throws Fault `extension_secret_foreign` */
export function checkForeign(name: string, brings: readonly Brought[]): void {
  const folders = secretFolders(name)
  for (const { kind, name: called, given: references = [] } of brings)
    for (const reference of references) {
      if (parseSecretRef(reference)?.scheme !== 'vault') continue
      // A reference that is not a valid vault path, for example with `..`, is refused as well.
      const path = vaultPath(reference)
      if (path !== undefined && folders.some(folder => path.startsWith(folder))) continue
      throw ExtensionErrors.extension_secret_foreign(
        `${kind} ${called} of ${name} names ${reference}, which is not below vault:${folders[0]}`,
        { next: 'ask the author of the extension for one without it' },
      )
    }
}
