import { command } from '../../../../kernel/kit/commands/command-line.js'
import type { Provenance } from '../../installer/api.js'
import type { InstalledExtension } from '../api.js'
import { ExtensionErrors } from '../errors.js'
import { type Brought, beyond } from './brought.js'

/** Items that an error names. */
const NAMED = 5

/** The store of the consents to installed extensions. */
interface Consents {
  provenance(name: string): Provenance | undefined
}

/**
 * Refuses an extension from a catalog that brings more than was consented to: its folder was changed, or a version
 * without consents installed it. @throws Fault `extension_consent_required`
 */
export function checkConsent(
  consents: Consents,
  { name, tier }: InstalledExtension,
  brought: readonly Brought[],
): void {
  if (tier !== 'marketplace') return
  const more = beyond(brought, consents.provenance(name)?.brings ?? [])
  if (more.length > 0)
    throw ExtensionErrors.extension_consent_required(
      `${name} contains parts in its folder without your consent: ${namesOf(more)}`,
      { next: command('extension update', name) },
    )
}

/** Names of the first items, for an error. */
export function namesOf(brought: readonly Brought[]): string {
  const names = brought.slice(0, NAMED).map(({ kind, name }) => `${kind} ${name}`)
  return [...names, ...(brought.length > NAMED ? [`${brought.length - NAMED} more`] : [])].join(', ')
}
