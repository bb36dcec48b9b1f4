import type { ProviderEntry } from '../../../schemas/settings/entries.js'
import type { Undo } from '../../desk/changes/api.js'
import { providerRequest } from '../../desk/settings/api.js'

const entryIn = (state: unknown): ProviderEntry | undefined => Object(state).provider

/** Undo of a choice for a model: restores the entry of its provider, which holds the choices. */
export const ofCuration: Undo = {
  by: 'custom',
  of: 'provider',
  compares: ['settings'],
  reads: ({ params }) => [providerRequest(params.provider_id ?? '')],
  request: ({ params, before }) => {
    const path = providerRequest(params.provider_id ?? '')
    const was = entryIn(before)
    const isWritten = was !== undefined && was.source_metadata.effective_source.kind !== 'builtin-provider'
    return isWritten ? { method: 'PUT', path, body: { settings: was.settings } } : { method: 'DELETE', path }
  },
}
